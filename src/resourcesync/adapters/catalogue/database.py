"""The catalogue's file: its schema, how it is opened, and what its faults mean.

Tables, for those who read it with other tools (open it read-only):

- ``resource``: what is published, one row for each URI.
- ``change``: what happened, in order; ``datetime_us`` strictly rises with ``seq``.
- ``moment``: one row once something was recorded: the latest moment that was given away.
- ``note``: the publisher's bookkeeping.

Times are microseconds since 1970-01-01T00:00:00Z; ``hash`` is as in ``rs:md/@hash``.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from resourcesync.errors import DiskFullError, StateError, StorageError

_APPLICATION_ID: Final = 0x52534331  # "RSC1"
_COLUMNS: Final = """
    lastmod_us INTEGER, length INTEGER, hash TEXT NOT NULL,
    media_type TEXT NOT NULL, more TEXT NOT NULL
"""
_MIGRATIONS: Final = (
    f"""
    CREATE TABLE resource (
        uri TEXT PRIMARY KEY, {_COLUMNS}, fingerprint TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE change (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, change TEXT NOT NULL,
        datetime_us INTEGER NOT NULL UNIQUE, uri TEXT NOT NULL, {_COLUMNS}
    );
    CREATE TABLE moment (one INTEGER PRIMARY KEY CHECK (one = 1), latest_us INTEGER NOT NULL);
    CREATE TABLE note (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    """,
    """
    CREATE TABLE edit (number INTEGER PRIMARY KEY AUTOINCREMENT, uri TEXT NOT NULL UNIQUE);
    CREATE TRIGGER resource_put AFTER INSERT ON resource WHEN (SELECT 1 FROM moment) BEGIN
        DELETE FROM edit WHERE uri = NEW.uri;
        INSERT INTO edit (uri) VALUES (NEW.uri);
    END;
    CREATE TRIGGER resource_set AFTER UPDATE ON resource BEGIN
        DELETE FROM edit WHERE uri IN (OLD.uri, NEW.uri);
        INSERT INTO edit (uri) VALUES (NEW.uri);
        INSERT INTO edit (uri) SELECT OLD.uri WHERE OLD.uri <> NEW.uri;
    END;
    CREATE TRIGGER resource_gone AFTER DELETE ON resource BEGIN
        DELETE FROM edit WHERE uri = OLD.uri;
        INSERT INTO edit (uri) VALUES (OLD.uri);
    END;
    """,
)
"""The schema, step by step: version n of the file is what the first n steps make."""


def open_writing(path: Path) -> sqlite3.Connection:
    """Open the one writing connection; make or migrate the file first.

    Raises:
        StateError: It is damaged, no catalogue, or from a newer version.
        StorageError: It cannot be opened.
    """
    with guarded(path):
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600))
        except OSError as error:
            raise StorageError(f"cannot open {path}: {error.strerror}") from error
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA busy_timeout = 5000")
            _migrate(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a connection of its own that sees one moment of the file, and cannot write."""
    with guarded(path):
        address = f"file:{quote(os.fsencode(path))}?mode=ro"
        connection = sqlite3.connect(
            address, uri=True, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("BEGIN")
            connection.execute("SELECT 1 FROM note").fetchone()  # the view begins here
            yield connection
        finally:
            connection.close()


@contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Turn what SQLite raises into our errors."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(path, error) from error


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    application: int = connection.execute("PRAGMA application_id").fetchone()[0]
    tables: int = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application != _APPLICATION_ID and (application or version or tables):
        raise StateError(
            f"{path} is not a catalogue of this package",
            hint="choose another place for the catalogue",
        )
    if version > len(_MIGRATIONS):
        raise StateError(
            f"{path} was written by a newer version of this package",
            evidence=(("schema", str(version)), ("known", str(len(_MIGRATIONS)))),
            hint="upgrade the package",
        )
    for number in range(version, len(_MIGRATIONS)):
        connection.executescript(
            f"BEGIN IMMEDIATE; {_MIGRATIONS[number]}"
            f"PRAGMA application_id = {_APPLICATION_ID};"
            f"PRAGMA user_version = {number + 1}; COMMIT"
        )


def _translated(path: Path, error: sqlite3.Error) -> StorageError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return DiskFullError(
            f"no space left for {path}", evidence=(("kept", "all that was recorded before"),)
        )
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return StateError(
            f"{path} is damaged: {error}",
            evidence=(("kept", "the published documents are as they were"),),
            hint=f"delete {path}: the next publish starts a new Resource List",
        )
    return StorageError(f"{path}: {error}")
