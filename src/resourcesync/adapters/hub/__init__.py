"""State of hubs and subscribers in SQLite."""

from resourcesync.adapters.hub.follower_store import FileFollowers
from resourcesync.adapters.hub.hub_store import FileHub

__all__ = ["FileFollowers", "FileHub"]
