"""State of a mirror: what a Destination stores between runs, in one SQLite file."""
