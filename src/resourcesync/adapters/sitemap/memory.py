"""What was measured of resources, remembered between runs, so that only what changed is asked."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from resourcesync.durable_folders import make_folder
from resourcesync.errors import StateError, StorageError

_VERSION: Final = 1
_CREATE_MEASURED: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS measured (
    uri TEXT PRIMARY KEY, lastmod INTEGER, etag TEXT NOT NULL, last_modified TEXT NOT NULL,
    length INTEGER, hash TEXT NOT NULL, media_type TEXT NOT NULL, how TEXT NOT NULL
) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
COMMIT;
"""


class MeasuredResource(NamedTuple):
    """What a server said of one resource.

    Attributes:
        uri: Its URI.
        lastmod: What the sitemap said then, microseconds, if that time was over when the server
            answered; else ``None``.
        etag: For conditional requests.
        last_modified: For conditional requests.
        length: Bytes, or ``None`` where the server does not say.
        hash: A ``hash`` attribute; empty where the bytes were not read.
        media_type: Its type; empty where the server does not say.
        how: ``head`` or ``get``.
    """

    uri: str
    lastmod: int | None
    etag: str
    last_modified: str
    length: int | None
    hash: str
    media_type: str
    how: str


class MeasurementStore:
    """A file of what was measured.

    Args:
        folder: Where; made when it is not there.

    Raises:
        StateError: The file is damaged, or was written by a newer version.
        StorageError: It cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "measured.db"
        try:
            make_folder(folder, 0o700)
        except OSError as error:
            raise StorageError(f"cannot make the folder {folder}: {error.strerror}") from error
        with self._guarded():
            self._db = sqlite3.connect(self._path, isolation_level=None)
            try:
                self._open()
            except BaseException:
                self._db.close()
                raise

    def _open(self) -> None:
        self._db.execute("PRAGMA busy_timeout = 5000")
        self._db.execute("PRAGMA trusted_schema = OFF")
        if self._db.execute("PRAGMA user_version").fetchone()[0] > _VERSION:
            raise StateError(
                f"{self._path} was written by a newer version", hint="use the newer resourcesync"
            )
        self._db.executescript(_CREATE_MEASURED)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()

    def find(self, uris: Sequence[str]) -> dict[str, MeasuredResource]:
        """Return what is known of some resources."""
        found = {}
        with self._guarded():
            for uri in uris:
                row = self._db.execute("SELECT * FROM measured WHERE uri = ?", (uri,)).fetchone()
                if row is not None:
                    found[uri] = MeasuredResource._make(row)
        return found

    def store(self, rows: Sequence[MeasuredResource], between: tuple[str, str | None]) -> None:
        """Remember what is known of all resources in a range of URIs; forget all others there.

        Args:
            rows: What is known.
            between: After which URI the range begins, and its last one; ``None``: to the end.
        """
        after, last = between
        with self._guarded():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                if last is None:
                    self._db.execute("DELETE FROM measured WHERE uri > ?", (after,))
                else:
                    self._db.execute("DELETE FROM measured WHERE uri > ? AND uri <= ?", between)
                self._db.executemany("INSERT INTO measured VALUES (?,?,?,?,?,?,?,?)", rows)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StorageError(f"{self._path} cannot be written: {error}") from error
        except sqlite3.DatabaseError as error:
            raise StateError(
                f"{self._path} is damaged: {error}",
                evidence=(("kept", "what is published"),),
                hint="move it away: all is measured once more",
            ) from error
