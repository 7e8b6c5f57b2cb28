"""The stack without Docker: its parts, who supervises them, and the commands up, down, status."""
