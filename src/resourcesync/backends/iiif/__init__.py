"""Streams of the IIIF Change Discovery API as an account: their objects are published."""

from resourcesync.backends.iiif.account import open_account

__all__ = ["open_account"]
