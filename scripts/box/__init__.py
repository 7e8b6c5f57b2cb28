"""What the Docker stack takes of its machine: the command ./scripts/budget, without packages."""
