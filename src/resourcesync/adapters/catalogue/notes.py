"""Look at a catalogue's notes while somebody else may hold it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from resourcesync.adapters.catalogue.database import guarded, note_of, open_reading
from resourcesync.errors import StateError, StorageError


def read_note(path: Path, key: str) -> str | None:
    """Return a note of the catalogue in a file; ``None`` when there is no such note, or no file.

    Args:
        path: The file; it is neither made nor changed.
        key: The note's name.

    Raises:
        StateError: The file is damaged.
        StorageError: It cannot be read.
    """
    try:
        with path.open("rb"):
            pass
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(
            f"cannot read {path}: {error.strerror}", hint="run as the user who publishes"
        ) from error
    try:
        with open_reading(path) as connection:
            return note_of(connection, key)
    except StateError:
        raise
    except StorageError:
        if path.with_name(path.name + "-wal").exists():
            raise
    return _read_unchanging(path, key)


def _read_unchanging(path: Path, key: str) -> str | None:
    """Read a file where nothing can be written, not even beside it: nobody changes it either."""
    address = f"file:{quote(str(path))}?mode=ro&immutable=1"
    with guarded(path), closing(sqlite3.connect(address, uri=True)) as connection:
        return note_of(connection, key)
