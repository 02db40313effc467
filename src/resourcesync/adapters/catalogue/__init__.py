"""The Source's catalogue in one SQLite file."""

from resourcesync.adapters.catalogue.database import read_note
from resourcesync.adapters.catalogue.posted_catalogue import (
    MIN_ALLOWED_LOSS,
    LossLimit,
    PostedCatalogue,
)
from resourcesync.adapters.catalogue.sqlite_catalogue import FileCatalogue, FileChangeLog
from resourcesync.adapters.catalogue.versions import FileVersionReader, FileVersions

__all__ = [
    "MIN_ALLOWED_LOSS",
    "FileCatalogue",
    "FileChangeLog",
    "FileVersionReader",
    "FileVersions",
    "LossLimit",
    "PostedCatalogue",
    "read_note",
]
