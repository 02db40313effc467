"""Answers of OAI-PMH 2.0 providers: read as they arrive, within limits."""
