"""Discovery: from any address to a Source's lists (§6.3), for mirrors, the validator and push."""
