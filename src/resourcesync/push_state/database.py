"""The SQLite file of a hub or subscriber, for several threads."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resourcesync.sqlite_file import Connection, SqliteFile, SqliteFormat


class Database:
    """An SQLite file with one connection, for several threads that take turns.

    Only the owner may read the file: it contains secrets.
    """

    def __init__(self, path: Path, kind: SqliteFormat) -> None:
        self._file = SqliteFile(path, kind)
        self._lock = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Lend the connection to this thread alone."""
        with self._lock, self._file.errors:
            yield self._file.connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Lend the connection in a transaction that is durable when the block ends."""
        with self._lock, self._file.writing() as connection:
            yield connection

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()
