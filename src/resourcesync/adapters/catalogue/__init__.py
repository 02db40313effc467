"""The Source's memory in one SQLite file."""

from resourcesync.adapters.catalogue.file import FileCatalogue
from resourcesync.adapters.catalogue.posting import Posted, PostedCatalogue

__all__ = ["FileCatalogue", "Posted", "PostedCatalogue"]
