"""The connection to MongoDB, who of it answers, and its indexes."""
