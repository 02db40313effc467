"""The state of a repository between runs: one SQLite file, which can be rebuilt.

Tables:

- ``record``: one row for each item and format ever seen; withdrawn ones too.
- ``mention``: the files that the metadata of a record names.
- ``document``: the metadata that is published, or is to be removed; ``content`` until its file is
  written. ``?`` before ``sha256``: the file is not there as it was written.
- ``file``: what the server reported of a file; ``links`` as from ``encode_links``.
- ``touched_item``, ``touched_file``: items and files to publish again.
- ``told``: what was published of each address, in order of ``seq``; empty where it is gone.
- ``note``: the progress of the harvest, and the like.
"""

import secrets
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Self

from resourcesync.sqlite_file import (
    NOTE_TABLE,
    Connection,
    Durability,
    SqliteFile,
    SqliteFormat,
    write_notes,
)

FILE: Final = "oai.db"
_APPLICATION_ID: Final = 0x52534F31  # "RSO1"
_SCHEMA: Final = f"""
{NOTE_TABLE}
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
    lastmod TEXT NOT NULL, links TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE touched_item (identifier TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE touched_file (uri TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE told (uri TEXT PRIMARY KEY, seq INTEGER NOT NULL UNIQUE, value BLOB NOT NULL);
"""
_ALL_BUT_DOCUMENTS: Final = (
    "note", "record", "mention", "file", "touched_item", "touched_file", "told",
)  # fmt: skip

_FORMAT: Final = SqliteFormat(
    noun="the state of a repository",
    application_id=_APPLICATION_ID,
    schema=_SCHEMA,
    durability=Durability.EXCLUSIVE,
    retained="what was harvested and published before",
    repair="move {path} away: everything is harvested again",
)

Row = tuple[Any, ...]


class RepositoryState:
    """The state, locked by one run."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._file = SqliteFile(self.path, _FORMAT)

    def close(self) -> None:
        """Close the file and release the lock."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def writing(self) -> AbstractContextManager[Connection]:
        """Open a transaction: all writes in the block, or none."""
        return self._file.writing()

    def rows(self, query: str, *values: object) -> list[Row]:
        """Return the rows of a query."""
        with self._file.errors:
            return self._file.connection.execute(query, values).fetchall()

    def note(self, key: str) -> str:
        """Return a note; empty when there is none."""
        return self._file.note(key) or ""

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
            write_notes(connection, {"digest": digest, "epoch": secrets.token_hex(8)})
