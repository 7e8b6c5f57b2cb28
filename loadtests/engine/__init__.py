"""Sends a plan's requests at their times, verifies each response, and notes a row of it."""
