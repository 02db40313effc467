"""The Source's memory in one SQLite file."""

from resourcesync.adapters.catalogue.file import FileCatalogue
from resourcesync.adapters.catalogue.looking import FileChangeLog
from resourcesync.adapters.catalogue.notes import read_note
from resourcesync.adapters.catalogue.posting import FEW, LossLimit, PostedCatalogue
from resourcesync.adapters.catalogue.versions import FileVersionReader, FileVersions

__all__ = [
    "FEW",
    "FileCatalogue",
    "FileChangeLog",
    "FileVersionReader",
    "FileVersions",
    "LossLimit",
    "PostedCatalogue",
    "read_note",
]
