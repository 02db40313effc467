"""Documents of Sources as the software of others writes them, rendered from what changed."""
