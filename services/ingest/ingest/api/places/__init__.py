"""Which places were visited, when, and by whom."""
