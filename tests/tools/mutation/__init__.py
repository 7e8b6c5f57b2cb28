"""Small changes to the code, one at a time, that its tests have to notice: ./scripts/mutate."""
