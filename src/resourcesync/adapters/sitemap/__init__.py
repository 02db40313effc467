"""Plain sitemaps as an account: what a site tells search engines of itself (ADR 0063)."""

from resourcesync.adapters.sitemap.account import open_account

__all__ = ["open_account"]
