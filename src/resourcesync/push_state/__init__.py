"""State of hubs and of subscribers, each in one SQLite file."""
