"""The Source's memory in one SQLite file."""

from resourcesync.adapters.catalogue.file import FileCatalogue
from resourcesync.adapters.catalogue.notes import read_note
from resourcesync.adapters.catalogue.posting import PostedCatalogue

__all__ = ["FileCatalogue", "PostedCatalogue", "read_note"]
