"""Look at the changes in a catalogue while somebody else may hold it."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from resourcesync.adapters.catalogue.database import note_of, open_reading
from resourcesync.adapters.catalogue.file import FORGOTTEN_NOTE, FileSnapshot
from resourcesync.adapters.catalogue.rows import change_from_row
from resourcesync.model.resources import Change

_NEWEST: Final = "SELECT seq, datetime_us FROM change ORDER BY seq DESC LIMIT 1"
_TIME: Final = "SELECT datetime_us FROM change WHERE seq = ?"
_RATES: Final = """
SELECT (datetime_us - :since) / :width, change, count(*)
FROM change WHERE datetime_us >= :since GROUP BY 1, 2
"""
_AFTER: Final = """
SELECT seq, change, datetime_us, uri, lastmod_us, length, hash, media_type, more
FROM change WHERE seq > ? ORDER BY seq LIMIT ?
"""


class FileChangeLog:
    """The log of changes in a catalogue's file, which is neither held nor written.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def snapshot(self) -> Iterator[FileSnapshot]:
        """Open a consistent view of the resources.

        Raises:
            StateError: Nothing was ever recorded, or the file is damaged.
            StorageError: It cannot be read.
        """
        with open_reading(self._path) as connection:
            yield FileSnapshot(connection)

    def last(self) -> tuple[int, int]:
        """Return number and time of the newest change, in microseconds; 0 when there is none.

        Raises:
            StateError: The file is damaged.
            StorageError: It cannot be read.
        """
        with open_reading(self._path) as connection:
            return _newest_change(connection)

    def has(self, number: int, moment: int) -> bool:
        """Whether the change of this number is the one of this time.

        Raises:
            StateError: The file is damaged.
            StorageError: It cannot be read.
        """
        with open_reading(self._path) as connection:
            found = connection.execute(_TIME, (number,)).fetchone()
        return moment == (found[0] if found else 0) and (found is not None or number == 0)

    def resources(self) -> int:
        """Return how many resources there are now.

        Raises:
            StateError: The file is damaged.
            StorageError: It cannot be read.
        """
        with open_reading(self._path) as connection:
            return int(connection.execute("SELECT count(*) FROM resource").fetchone()[0])

    def rates(self, since: int, width: int) -> dict[tuple[int, str], int]:
        """Return how many changes of each kind there were in each interval of time.

        Args:
            since: When the first interval begins, in microseconds.
            width: How long each is, in microseconds.

        Raises:
            StateError: The file is damaged.
            StorageError: It cannot be read.
        """
        with open_reading(self._path) as connection:
            rows = connection.execute(_RATES, {"since": since, "width": width}).fetchall()
        return {(number, kind): count for number, kind, count in rows}

    def after(self, number: int, most: int) -> list[tuple[int, Change]] | None:
        """Return up to ``most`` changes after number ``number``, with their numbers.

        ``None`` when not all of them are known: some are forgotten, or the log was begun anew.

        Raises:
            StateError: The file is damaged.
            StorageError: It cannot be read.
        """
        with open_reading(self._path) as connection:
            forgotten = int(note_of(connection, FORGOTTEN_NOTE) or 0)
            if number < forgotten or number > max(_newest_change(connection)[0], forgotten):
                return None
            rows = connection.execute(_AFTER, (number, most)).fetchall()
        return [(row[0], change_from_row(row[0], row[1], row[2], row[3:])) for row in rows]


def _newest_change(connection: sqlite3.Connection) -> tuple[int, int]:
    found = connection.execute(_NEWEST).fetchone()
    return (found[0], found[1]) if found else (0, 0)
