"""Work by the clock."""
