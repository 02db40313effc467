"""Systems that are published from accounts of them: event streams, OAI-PMH, indexes and tables."""
