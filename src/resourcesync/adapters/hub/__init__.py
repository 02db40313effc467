"""What hubs and subscribers remember, in SQLite."""

from resourcesync.adapters.hub.followers import FileFollowers
from resourcesync.adapters.hub.subscriptions import FileHub

__all__ = ["FileFollowers", "FileHub"]
