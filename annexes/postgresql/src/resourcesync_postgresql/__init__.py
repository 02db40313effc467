"""Tables and queries of PostgreSQL as accounts (ADR 0060)."""

from resourcesync_postgresql.account import open_account

__all__ = ["open_account"]
