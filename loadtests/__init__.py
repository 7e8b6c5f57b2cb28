"""Load against the stack, on this machine only."""
