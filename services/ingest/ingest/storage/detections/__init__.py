"""The collection `staff`, and by which stamps a reader knows what is new in it."""
