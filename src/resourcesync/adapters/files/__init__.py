"""A folder's files as the originals of a Source."""

from resourcesync.adapters.files.rereading import Rereading
from resourcesync.adapters.files.selection import Judge, Selection
from resourcesync.adapters.files.tree import FileTreeOriginals

__all__ = ["FileTreeOriginals", "Judge", "Rereading", "Selection"]
