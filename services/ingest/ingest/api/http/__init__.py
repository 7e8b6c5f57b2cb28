"""What every operation of the API shares: bodies, parameters, problems, answers."""
