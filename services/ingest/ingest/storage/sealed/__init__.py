"""History that is older than it changes, in blocks."""
