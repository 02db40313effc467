"""The Source's catalogue in one SQLite file."""

from resourcesync.adapters.catalogue.database import read_note
from resourcesync.adapters.catalogue.posted_catalogue import PostedCatalogue
from resourcesync.adapters.catalogue.sqlite_catalogue import (
    FileCatalogue,
    FileChangeLog,
    FileEntryReader,
)
from resourcesync.adapters.catalogue.versions import (
    FileVersionReader,
    FileVersions,
)

__all__ = [
    "FileCatalogue",
    "FileChangeLog",
    "FileEntryReader",
    "FileVersionReader",
    "FileVersions",
    "PostedCatalogue",
    "read_note",
]
