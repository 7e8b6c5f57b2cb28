"""Who may do what: tokens, checked without the database."""
