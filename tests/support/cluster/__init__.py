"""Engines and units of work for tests of pulls by many workers."""
