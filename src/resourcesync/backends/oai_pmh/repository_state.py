"""The state of a repository between runs: one SQLite file, which can be rebuilt.

Tables:

- ``record``: one row for each item and format ever seen; withdrawn ones too.
- ``mention``: the files that the metadata of a record names.
- ``document``: the metadata that is published, or is to be removed; ``content`` until its file is
  written. ``?`` before ``sha256``: the file is not there as it was written.
- ``file``: what the server reported of a file.
- ``touched_item``, ``touched_file``: items and files to publish again.
- ``told``: what was published of each address, in order of ``seq``; empty where it is gone.
- ``note``: the progress of the harvest, and the like.
"""

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from resourcesync.durable_folders import make_folder
from resourcesync.errors import DiskFullError, LockedError, StateError, StorageError

FILE: Final = "oai.db"
_APPLICATION_ID: Final = 0x52534F31  # "RSO1"
_VERSION: Final = 1
_FULL: Final = "full"
_SCHEMA: Final = """
CREATE TABLE note (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE record (
    identifier TEXT NOT NULL, prefix TEXT NOT NULL, datestamp TEXT NOT NULL, sets TEXT NOT NULL,
    is_gone INTEGER NOT NULL, is_restricted INTEGER NOT NULL, path TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    PRIMARY KEY (identifier, prefix)
) WITHOUT ROWID;
CREATE TABLE mention (
    identifier TEXT NOT NULL, prefix TEXT NOT NULL, uri TEXT NOT NULL, length INTEGER,
    hash TEXT NOT NULL, media_type TEXT NOT NULL, is_restricted INTEGER NOT NULL,
    PRIMARY KEY (identifier, prefix, uri)
) WITHOUT ROWID;
CREATE INDEX mention_uri ON mention (uri);
CREATE TABLE document (
    path TEXT PRIMARY KEY, length INTEGER NOT NULL, sha256 TEXT NOT NULL, lastmod TEXT NOT NULL,
    content BLOB, is_wanted INTEGER NOT NULL
);
CREATE INDEX document_unwritten ON document (path) WHERE content IS NOT NULL;
CREATE INDEX document_unwanted ON document (path) WHERE is_wanted = 0;
CREATE TABLE file (
    uri TEXT PRIMARY KEY, status INTEGER NOT NULL, length INTEGER, media_type TEXT NOT NULL,
    lastmod TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE touched_item (identifier TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE touched_file (uri TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE told (uri TEXT PRIMARY KEY, seq INTEGER NOT NULL UNIQUE, value BLOB NOT NULL);
"""
_ALL_BUT_DOCUMENTS: Final = (
    "note", "record", "mention", "file", "touched_item", "touched_file", "told",
)  # fmt: skip

_RETAINED: Final = ("kept", "what was harvested and published before")
_HINT: Final = "free disk space, or fix permissions; then run the same command: it resumes"

Row = tuple[Any, ...]


class RepositoryState:
    """The state, locked by one run.

    Args:
        folder: Its folder; created if missing.

    Raises:
        LockedError: Another run has the lock.
        StateError: It is damaged, or from a newer version.
        StorageError: It cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        try:
            make_folder(folder, 0o700)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600))
        except OSError as error:
            raise StorageError(
                f"cannot open {self.path}: {error.strerror}", evidence=(_RETAINED,), hint=_HINT
            ) from error
        with self._guarded():
            connection = sqlite3.connect(self.path, isolation_level=None)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
        self.connection = connection

    def close(self) -> None:
        """Close the file and release the lock."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction: all writes in the block, or none.

        Raises:
            DiskFullError: No space is left.
            StateError: The file is damaged.
        """
        with self._guarded():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            finally:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    def rows(self, query: str, *values: object) -> list[Row]:
        """Return the rows of a query.

        Raises:
            StateError: The file is damaged.
        """
        with self._guarded():
            return self.connection.execute(query, values).fetchall()

    def note(self, key: str) -> str:
        """Return a note; empty when there is none."""
        found = self.rows("SELECT value FROM note WHERE key = ?", key)
        return str(found[0][0]) if found else ""

    def number(self, key: str) -> int:
        """Return a note that is a number; 0 when there is none."""
        return int(self.note(key) or 0)

    @property
    def epoch(self) -> str:
        """A text that differs whenever the state was rebuilt."""
        return self.note("epoch")

    @property
    def last(self) -> int:
        """The number of the last published change; 0 for none."""
        return int(self.rows("SELECT ifnull(max(seq), 0) FROM told")[0][0])

    def reset(self, digest: str) -> None:
        """Reset all but the list of our files, if the options changed what is published."""
        if self.note("digest") == digest:
            return
        with self.writing() as connection:
            for table in _ALL_BUT_DOCUMENTS:
                connection.execute(f"DELETE FROM {table}")  # noqa: S608 - names of our own
            connection.execute("UPDATE document SET is_wanted = 0, content = NULL")
            write_note(connection, "digest", digest)
            write_note(connection, "epoch", secrets.token_hex(8))

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN EXCLUSIVE")
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        application: int = connection.execute("PRAGMA application_id").fetchone()[0]
        if version == 0 and application == 0:
            for statement in _SCHEMA.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        elif (application, version) != (_APPLICATION_ID, _VERSION):
            raise StateError(
                f"{self.path} is not a repository state of this version",
                hint=f"remove it, and everything is harvested again: {self.path}",
            )
        connection.execute("COMMIT")

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise LockedError(
                    "another run harvests this repository now",
                    evidence=(("file", str(self.path)),),
                    hint="wait for its end",
                ) from error
            if _FULL in str(error):
                raise DiskFullError(
                    f"no space is left for {self.path}", evidence=(_RETAINED,), hint=_HINT
                ) from error
            raise StorageError(
                f"cannot use {self.path}: {error}", evidence=(_RETAINED,), hint=_HINT
            ) from error
        except sqlite3.Error as error:
            raise StateError(
                f"{self.path} is damaged: {error}",
                hint=f"remove it, and everything is harvested again: {self.path}",
            ) from error


def write_note(connection: sqlite3.Connection, key: str, value: str) -> None:
    """Store a note."""
    connection.execute("INSERT OR REPLACE INTO note VALUES (?, ?)", (key, value))
