"""The stack without Docker: its parts, their supervisor, and the commands up, down, status."""
