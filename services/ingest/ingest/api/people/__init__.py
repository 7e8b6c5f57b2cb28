"""Who is where, and who is lost."""
