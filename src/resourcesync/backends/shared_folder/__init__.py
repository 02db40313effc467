"""A folder that many processes, also on several machines, put copies into (``file:///FOLDER``)."""

from resourcesync.backends.shared_folder.store import FolderStore, open_store

__all__ = ["FolderStore", "open_store"]
