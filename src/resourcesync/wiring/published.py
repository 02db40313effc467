"""Which files of a published tree are published: what is served, and what is not."""

from collections.abc import Callable
from pathlib import Path

from resourcesync.adapters.catalogue import read_note
from resourcesync.adapters.files import Judge, Selection
from resourcesync.wiring import robots
from resourcesync.wiring.publishing import CATALOGUE, NOTE, Settings, decode_settings


def published_settings(root: Path) -> Settings:
    """Return how a tree was published the last time.

    Raises:
        StorageError: The catalogue cannot be read.
    """
    return decode_settings(read_note(root / CATALOGUE, NOTE))


def published_files(root: Path) -> Callable[[str], bool]:
    """Return what tells which files of a published tree are published, by their paths in it.

    Those that the operator left out are not, as the last publication had it. ``robots.txt`` is for
    everybody.

    Raises:
        StorageError: The catalogue cannot be read.
    """
    settings = published_settings(root)
    judge = Judge(Selection(include=settings.include, exclude=settings.exclude, hidden=True))

    def is_published(path: str) -> bool:
        return path == robots.NAME or judge.of_path(tuple(path.split("/"))) is None

    return is_published
