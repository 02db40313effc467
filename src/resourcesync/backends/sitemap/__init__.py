"""Plain sitemaps as an account: what a site publishes for search engines (ADR 0063)."""

from resourcesync.backends.sitemap.account import open_account

__all__ = ["open_account"]
