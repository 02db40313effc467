"""Systems that are published from accounts of them: feeds, OAI-PMH, indexes and tables."""
