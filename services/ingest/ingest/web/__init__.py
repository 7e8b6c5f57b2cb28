"""What speaks HTTP and knows no database."""
