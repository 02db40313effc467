"""Hostile input for everything that reads what others wrote; see README.md."""
