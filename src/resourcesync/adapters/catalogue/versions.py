"""The versions of each resource in the catalogue: the ``VersionIndex`` and ``VersionReader`` ports.

The index writes on the catalogue's own connection, inside the open recording: a version and its
change are recorded together or not at all.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from resourcesync.adapters.catalogue.database import CATALOGUE_FORMAT
from resourcesync.ports.versions import ContentKey, ResourceVersion, VersionPatch
from resourcesync.sqlite_file import SqliteFile, open_snapshot

_COLUMNS: Final = """
uri, moment_us, since_us, length, sha256, media_type, patch_sha256, patch_length, patch_type
"""
_READ: Final = f"{_COLUMNS}, former_us IS NOT NULL"
_OF: Final = f"SELECT {_READ} FROM version WHERE uri = ?"  # noqa: S608 - our own text alone
_SUPERSEDED: Final = """
SELECT uri, moment_us FROM (
    SELECT uri, moment_us, former_us,
        row_number() OVER (PARTITION BY uri ORDER BY moment_us DESC) AS place
    FROM version WHERE former_us IS NOT NULL
) WHERE former_us < ? AND place > ?
"""
_USE: Final = """
INSERT INTO content VALUES (?, ?, 1) ON CONFLICT (sha256) DO UPDATE SET uses = uses + 1
"""
END_OF_VERSIONS: Final = """
UPDATE version SET former_us = ? WHERE uri = ? AND former_us IS NULL
"""
"""SQL to run when a resource is deleted, or gets a newer version."""


class FileVersions:
    """A ``VersionIndex`` by the connection that writes the catalogue."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._connection = file.connection

    def newest(self, uri: str) -> ResourceVersion | None:
        """Return the newest stored version of a resource."""
        return self._find_one(_OF + " ORDER BY moment_us DESC LIMIT 1", uri)

    def find(self, uri: str, moment: int) -> ResourceVersion | None:
        """Return one version of a resource."""
        return self._find_one(_OF + " AND moment_us = ?", uri, moment)

    def add(self, version: ResourceVersion) -> None:
        """Add a version, newer than all others of its resource."""
        patch = version.patch
        with self._in_transaction():
            self._connection.execute(END_OF_VERSIONS, (version.moment, version.uri))
            self._connection.execute(
                f"INSERT INTO version ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?)",  # noqa: S608 - as above
                (
                    version.uri,
                    version.moment,
                    version.since,
                    version.length,
                    version.sha256,
                    version.media_type,
                    "" if patch is None else patch.sha256,
                    0 if patch is None else patch.length,
                    "" if patch is None else patch.media_type,
                ),
            )
            self._connection.execute(_USE, (version.sha256, version.length))
            if patch is not None:
                self._connection.execute(_USE, (patch.sha256, patch.length))

    def recorded_hash(self, uri: str) -> str:
        """Return the ``hash`` that the catalogue has for a resource; empty for none."""
        with self._file.errors:
            row = self._connection.execute(
                "SELECT hash FROM resource WHERE uri = ?", (uri,)
            ).fetchone()
        return "" if row is None else str(row[0])

    def stored_bytes(self) -> int:
        """Return the bytes of all stored contents, each counted once."""
        with self._file.errors:
            row = self._connection.execute("SELECT ifnull(sum(length), 0) FROM content").fetchone()
        return int(row[0])

    def drop_oldest(self) -> tuple[ContentKey, ...] | None:
        """Drop the version that was superseded the longest time ago."""
        with self._file.errors:
            row = self._connection.execute(
                "SELECT uri, moment_us FROM version WHERE former_us IS NOT NULL"
                " ORDER BY former_us, moment_us LIMIT 1"
            ).fetchone()
        return None if row is None else self._drop([row])

    def drop_superseded(self, before: int, least: int) -> tuple[ContentKey, ...]:
        """Drop versions that were followed by another, or by a deletion, before a moment."""
        with self._file.errors:
            rows = self._connection.execute(_SUPERSEDED, (before, least)).fetchall()
        return self._drop(rows)

    def drop_stored_before(self, moment: int) -> tuple[ContentKey, ...]:
        """Drop the versions stored before a moment; return the contents not needed now."""
        with self._file.errors:
            rows = self._connection.execute(
                "SELECT uri, moment_us FROM version WHERE moment_us < ?", (moment,)
            ).fetchall()
        return self._drop(rows)

    def is_needed(self, sha256: str) -> bool:
        """True if a content belongs to a version, or is a patch."""
        with self._file.errors:
            row = self._connection.execute(
                "SELECT 1 FROM content WHERE sha256 = ?", (sha256,)
            ).fetchone()
        return row is not None

    def _find_one(self, query: str, *values: object) -> ResourceVersion | None:
        with self._file.errors:
            row = self._connection.execute(query, values).fetchone()
        return None if row is None else _version(row)

    def _drop(self, rows: Iterable[tuple[Any, ...]]) -> tuple[ContentKey, ...]:
        """Drop versions, all or none; return the contents not needed any more."""
        gone: list[ContentKey] = []
        with self._in_transaction():
            for row in rows:
                gone += self._drop_one(row)
        return tuple(gone)

    @contextmanager
    def _in_transaction(self) -> Iterator[None]:
        """Run the block atomically, in the open recording or in a transaction of its own."""
        if self._connection.in_transaction:
            with self._file.errors:
                yield
        else:
            with self._file.writing():
                yield

    def _drop_one(self, key: tuple[Any, ...]) -> list[ContentKey]:
        row = self._connection.execute(
            "DELETE FROM version WHERE uri = ? AND moment_us = ? RETURNING sha256, patch_sha256",
            key,
        ).fetchone()
        names = [(name,) for name in row if name]
        self._connection.executemany("UPDATE content SET uses = uses - 1 WHERE sha256 = ?", names)
        return [
            (str(sha256), int(length))
            for name in dict.fromkeys(names)
            for sha256, length in self._connection.execute(
                "DELETE FROM content WHERE sha256 = ? AND uses < 1 RETURNING sha256, length", name
            ).fetchall()
        ]


class FileVersionReader:
    """The versions in a catalogue that other processes may write meanwhile (``VersionReader``)."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, uri: str, moment: int) -> ResourceVersion | None:
        """Return one version of a resource."""
        return next(iter(self._find_all(_OF + " AND moment_us = ?", uri, moment)), None)

    def at(self, uri: str, moment: int | None) -> ResourceVersion | None:
        """Return the version that a resource had at a moment; see ``VersionReader``."""
        if moment is None:
            return next(iter(self._find_all(_OF + " ORDER BY moment_us DESC LIMIT 1", uri)), None)
        query = _OF + " AND since_us <= ? ORDER BY since_us DESC, moment_us DESC LIMIT 1"
        first = _OF + " ORDER BY since_us, moment_us LIMIT 1"
        found = self._find_all(query, uri, moment) or self._find_all(first, uri)
        return next(iter(found), None)

    def first_and_last(
        self, version: ResourceVersion
    ) -> tuple[ResourceVersion | None, ResourceVersion | None]:
        """Return the first and the last version of the same resource."""
        first = self._find_all(_OF + " ORDER BY moment_us LIMIT 1", version.uri)
        return next(iter(first), None), self.at(version.uri, None)

    def versions(self, uri: str, after: int, most: int) -> list[ResourceVersion]:
        """Return up to ``most`` versions stored after a moment, oldest first."""
        return self._find_all(
            _OF + " AND moment_us > ? ORDER BY moment_us LIMIT ?", uri, after, most
        )

    def _find_all(self, query: str, *values: object) -> list[ResourceVersion]:
        with open_snapshot(self._path, CATALOGUE_FORMAT) as connection:
            return [_version(row) for row in connection.execute(query, values)]


def _version(row: tuple[Any, ...]) -> ResourceVersion:
    uri, moment, since, length, sha256, media_type, patch, patch_length, patch_type, former = row
    kept = VersionPatch(sha256=patch, length=patch_length, media_type=patch_type) if patch else None
    return ResourceVersion(
        uri=uri,
        moment=moment,
        since=since,
        length=length,
        sha256=sha256,
        media_type=media_type,
        patch=kept,
        is_superseded=bool(former),
    )
