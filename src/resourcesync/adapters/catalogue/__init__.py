"""The Source's memory in one SQLite file."""

from resourcesync.adapters.catalogue.file import FileCatalogue

__all__ = ["FileCatalogue"]
