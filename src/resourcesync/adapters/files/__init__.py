"""A folder's files as the originals of a Source."""

from resourcesync.adapters.files.selection import FileSelection, PathFilter, RereadSchedule
from resourcesync.adapters.files.tree import FileTreeOriginals

__all__ = ["FileSelection", "FileTreeOriginals", "PathFilter", "RereadSchedule"]
