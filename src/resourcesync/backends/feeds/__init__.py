"""Feeds of changes alone: a growing file, standard input, event streams, a Redis stream."""
