"""Look at a catalogue's notes while somebody else may hold it."""

from pathlib import Path

from resourcesync.adapters.catalogue.database import reading


def read_note(path: Path, key: str) -> str | None:
    """Return a note of the catalogue in a file; ``None`` when there is no such note, or no file.

    Args:
        path: The file; it is neither made nor changed.
        key: The note's name.

    Raises:
        StateError: The file is damaged.
        StorageError: It cannot be read.
    """
    if not path.exists():
        return None
    with reading(path) as connection:
        row = connection.execute("SELECT value FROM note WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])
