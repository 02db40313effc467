"""Removal of copies: deletions within their limit, and the trash from which they come back."""
