"""Reading a catalogue's file that others may write meanwhile: it is neither locked nor written."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Lock, Timer
from typing import Final

from resourcesync.catalogue.rows import links_of
from resourcesync.catalogue.schema import CATALOGUE_FORMAT
from resourcesync.catalogue.versions import NEWEST, OF_RESOURCE, ONE, ResourceVersion, version_of
from resourcesync.errors import StateError, StorageError
from resourcesync.model.entries import Link
from resourcesync.own_files import is_present
from resourcesync.sqlite_file import Connection, SqliteErrors, note_of, open_reader, open_snapshot

_ENTRY: Final = "SELECT hash, fingerprint, more FROM resource WHERE uri = ?"
_AT: Final = f"{OF_RESOURCE} AND since_us <= ? ORDER BY since_us DESC, moment_us DESC LIMIT 1"
_EARLIEST: Final = f"{OF_RESOURCE} ORDER BY since_us, moment_us LIMIT 1"
_FIRST: Final = f"{OF_RESOURCE} ORDER BY moment_us LIMIT 1"
_AFTER: Final = f"{OF_RESOURCE} AND moment_us > ? ORDER BY moment_us LIMIT ?"
_OPEN_SECONDS: Final = 1.0


class CatalogueReader:
    """A reader of a catalogue's file for a server, by any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._connection: Connection | None = None

    def entry(self, uri: str) -> tuple[str, str, tuple[Link, ...]] | None:
        """Return ``hash``, fingerprint and links of a resource; ``None`` if it is not known.

        The connection for this waits for nobody. It is closed after a second, and opened again when
        it is needed: the file may be another one then, and a publisher who ends finds it free.
        """
        with self._lock, SqliteErrors(self._path, CATALOGUE_FORMAT):
            row = self._open().execute(_ENTRY, (uri,)).fetchone()
        if row is None:
            return None
        hash_, fingerprint, more = row
        return str(hash_), str(fingerprint), links_of(uri, more) if more else ()

    def _open(self) -> Connection:
        if self._connection is None:
            self._connection = open_reader(self._path, CATALOGUE_FORMAT)
            timer = Timer(_OPEN_SECONDS, self.close)
            timer.daemon = True
            timer.start()
        return self._connection

    def close(self) -> None:
        """Close the connection; it is opened again when it is needed."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def version(self, uri: str, moment: int) -> ResourceVersion | None:
        """Return one version of a resource."""
        return next(iter(self._versions(ONE, uri, moment)), None)

    def version_at(self, uri: str, moment: int | None) -> ResourceVersion | None:
        """Return the version that a resource had at a moment, in microseconds.

        The first for a moment before it; the last for ``None``. ``None`` when none is stored.
        """
        if moment is None:
            found = self._versions(NEWEST, uri)
        else:
            found = self._versions(_AT, uri, moment) or self._versions(_EARLIEST, uri)
        return next(iter(found), None)

    def first_and_last(
        self, version: ResourceVersion
    ) -> tuple[ResourceVersion | None, ResourceVersion | None]:
        """Return the first and the last version of the same resource."""
        first = self._versions(_FIRST, version.uri)
        return next(iter(first), None), self.version_at(version.uri, None)

    def versions(self, uri: str, after: int, most: int) -> list[ResourceVersion]:
        """Return up to so many versions stored after a moment, oldest first."""
        return self._versions(_AFTER, uri, after, most)

    def _versions(self, query: str, *values: object) -> list[ResourceVersion]:
        with open_snapshot(self._path, CATALOGUE_FORMAT) as connection:
            return [version_of(row) for row in connection.execute(query, values)]


def uris(path: Path) -> Iterator[str]:
    """Yield the URIs of the resources of a catalogue, which is not written."""
    with SqliteErrors(path, CATALOGUE_FORMAT), closing(open_reader(path, CATALOGUE_FORMAT)) as read:
        yield from (str(uri) for (uri,) in read.execute("SELECT uri FROM resource"))


def read_note(path: Path, key: str) -> str | None:
    """Return a note of the catalogue in a file; ``None`` when there is no such note, or no file."""
    if not is_present(path):
        return None
    if not os.access(path, os.R_OK):
        raise StorageError(f"cannot read {path}", hint="run as the user who publishes")
    try:
        return _read_note(path, key)
    except StateError:
        raise
    except StorageError:
        if is_present(f"{path}-wal"):
            raise
    # A place that is not writable: no process changes the file either.
    return _read_note(path, key, immutable=True)


def _read_note(path: Path, key: str, *, immutable: bool = False) -> str | None:
    with open_snapshot(path, CATALOGUE_FORMAT, immutable=immutable) as connection:
        return note_of(connection, key)
