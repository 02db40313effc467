"""Mere feeds of changes: a file that grows, standard input, streams of events, a Redis stream."""
