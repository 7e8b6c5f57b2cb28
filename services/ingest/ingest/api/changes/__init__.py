"""The feed of all changes."""
