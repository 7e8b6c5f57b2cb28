"""Histories of staff members, cached compressed and proved exact at each request."""
