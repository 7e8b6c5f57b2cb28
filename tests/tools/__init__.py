"""Tests of tools: of what makes, starts, measures and loads the product, and is not it."""
