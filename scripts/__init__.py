"""What a person types, and the Python behind it."""
