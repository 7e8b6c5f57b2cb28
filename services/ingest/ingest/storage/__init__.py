"""All that knows the MongoDB driver: one module per collection, errors in the service's words."""
