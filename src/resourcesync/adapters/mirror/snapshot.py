"""A mirror's memory as it was at one moment: read for long, or copied to be kept elsewhere."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from resourcesync.adapters.mirror.state import SqliteMirrorState
from resourcesync.errors import StateError, StorageError

_OF_ITS_FOLDER: Final = ("marker",)


class StateSnapshot(SqliteMirrorState):
    """A ``MirrorState`` for reading, in one transaction from its opening to its closing.

    A pull may go on meanwhile and is not seen. Its write-ahead log grows until this is closed.

    Args:
        path: The file.

    Raises:
        StateError: The file is damaged, is not a mirror's state, or was written by a newer version.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, read_only=True)
        with self._guard():
            self._db.execute("BEGIN")
            self._db.execute("SELECT count(*) FROM note").fetchone()  # now it has its moment


def copy_state(path: Path, to: Path) -> None:
    """Copy a mirror's memory as it is at this moment, compact and whole; nothing is at ``to``.

    Raises:
        StorageError: It cannot be read, or not be written there.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            db.execute("VACUUM INTO ?", (str(to),))
    except sqlite3.Error as error:
        raise StorageError(
            f"the mirror's memory cannot be copied: {error}",
            evidence=(("file", str(path)), ("kept", "all copies, and the memory")),
            hint="make room, then run the same command",
        ) from error


def detach_state(path: Path) -> None:
    """Make a copied memory one that any folder can have; it is checked first.

    Raises:
        StateError: It is damaged, is no mirror's memory, or is from a newer version.
    """
    with SqliteMirrorState(path) as state:
        state.check()
    try:
        with closing(sqlite3.connect(path)) as db, db:
            db.executemany("DELETE FROM note WHERE key = ?", [(it,) for it in _OF_ITS_FOLDER])
    except sqlite3.Error as error:
        raise StateError(f"the mirror's memory is damaged: {error}") from error
