"""Tables and queries of PostgreSQL as accounts (ADR 0060)."""

from resourcesync.backends.postgresql.account import open_account

__all__ = ["open_account"]
