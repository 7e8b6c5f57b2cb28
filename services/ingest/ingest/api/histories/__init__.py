"""Where somebody was, as pages and as files."""
