"""The Source's memory in one SQLite file."""

from resourcesync.adapters.catalogue.file import FileCatalogue
from resourcesync.adapters.catalogue.looking import FileChangeLog
from resourcesync.adapters.catalogue.notes import read_note
from resourcesync.adapters.catalogue.posting import MIN_ALLOWED_LOSS, LossLimit, PostedCatalogue
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
