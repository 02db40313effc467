"""The SQLite file of a hub or subscriber: opening, and errors."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from resourcesync.durable_folders import make_folder, sync_name
from resourcesync.errors import DiskFullError, LockedError, StateError, StorageError

_BUSY_MS: Final = 5_000


class Database:
    """An SQLite file with one connection, for several threads that take turns.

    Only the owner may read the file: it contains secrets.

    Args:
        path: The file; created if missing.
        application: Its ``application_id``.
        schema: The schema step by step: the first n steps make version n.

    Raises:
        StateError: It is damaged, of another kind, or from a newer version.
        StorageError: It cannot be opened.
    """

    def __init__(self, path: Path, application: int, schema: tuple[str, ...]) -> None:
        self._path = path
        self._lock = threading.Lock()
        with self._guarded():
            try:
                make_folder(path.parent)
                os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600))
                sync_name(path)
            except OSError as error:
                raise StorageError(f"cannot open {path}: {error.strerror}") from error
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
                self._migrate(application, schema)
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
            except BaseException:
                self._connection.close()
                raise

    def _migrate(self, application: int, schema: tuple[str, ...]) -> None:
        connection = self._connection
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        found: int = connection.execute("PRAGMA application_id").fetchone()[0]
        tables: int = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if found != application and (found or version or tables):
            raise StateError(f"{self._path} is not a file of this kind", hint="move it away")
        if version > len(schema):
            raise StateError(
                f"{self._path} was written by a newer version of this package",
                evidence=(("schema", str(version)), ("known", str(len(schema)))),
                hint="upgrade the package",
            )
        for number in range(version, len(schema)):
            connection.executescript(
                f"BEGIN IMMEDIATE; {schema[number]}"
                f"PRAGMA application_id = {application};"
                f"PRAGMA user_version = {number + 1}; COMMIT"
            )

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection to this thread alone."""
        with self._lock, self._guarded():
            yield self._connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection in a transaction that is durable when the block ends."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _translated(self._path, error) from error


def _translated(path: Path, error: sqlite3.Error) -> StorageError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return DiskFullError(f"no space left for {path}", evidence=(("kept", "what it held"),))
    if code == sqlite3.SQLITE_BUSY:
        return LockedError(f"another program is writing {path}", hint="try again")
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return StateError(
            f"{path} is damaged: {error}",
            hint=f"move {path} away: subscribers renew when their leases expire",
        )
    return StorageError(f"{path}: {error}")
