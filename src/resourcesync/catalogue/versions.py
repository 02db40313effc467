"""The versions of each resource in the catalogue (§14.6, RFC 7089).

Writes are on the catalogue's own connection, inside the open recording: a version and its change
are recorded together or not at all.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from resourcesync.sqlite_file import SqliteFile

_COLUMNS: Final = """
uri, moment_us, since_us, length, sha256, media_type, patch_sha256, patch_length, patch_type
"""
OF_RESOURCE: Final = f"SELECT {_COLUMNS}, former_us IS NOT NULL FROM version WHERE uri = ?"  # noqa: S608 - our own text alone
"""SQL for the versions of a resource."""
ONE: Final = f"{OF_RESOURCE} AND moment_us = ?"
NEWEST: Final = f"{OF_RESOURCE} ORDER BY moment_us DESC LIMIT 1"
_SUPERSEDED: Final = """
SELECT uri, moment_us FROM (
    SELECT uri, moment_us, former_us,
        row_number() OVER (PARTITION BY uri ORDER BY moment_us DESC) AS place
    FROM version WHERE former_us IS NOT NULL
) WHERE former_us < ? AND place > ?
"""
_OLDEST: Final = """
SELECT uri, moment_us FROM version WHERE former_us IS NOT NULL ORDER BY former_us, moment_us LIMIT 1
"""
_ADD: Final = f"INSERT INTO version ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?)"  # noqa: S608 - as above
_USE: Final = """
INSERT INTO content VALUES (?, ?, 1) ON CONFLICT (sha256) DO UPDATE SET uses = uses + 1
"""
END_OF_VERSIONS: Final = """
UPDATE version SET former_us = ? WHERE uri = ? AND former_us IS NULL
"""
"""SQL to run when a resource is deleted, or gets a newer version."""

ContentKey = tuple[str, int]
"""The sha-256 and the length of bytes that are stored once for all their versions."""


class VersionPatch(msgspec.Struct, frozen=True, kw_only=True):
    """A patch to a version from the one before (§14.4); its sha-256 names it in the store."""

    sha256: str
    length: int
    media_type: str


class ResourceVersion(msgspec.Struct, frozen=True):
    """One stored version of a resource; its sha-256 is its name in the store.

    ``moment`` is when it was stored, in microseconds, unique among the versions of a resource.
    ``since`` is when the resource is known to have been so at first: the Memento-Datetime of RFC
    7089. It is superseded if another version, or a deletion, followed.
    """

    uri: str
    moment: int
    since: int
    length: int
    sha256: str
    media_type: str
    patch: VersionPatch | None = None
    is_superseded: bool = False


class VersionIndex:
    """The index of versions, by the connection that writes the catalogue."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._connection = file.connection

    def newest(self, uri: str) -> ResourceVersion | None:
        """Return the newest stored version of a resource."""
        return next(map(version_of, self._rows(NEWEST, uri)), None)

    def add(self, version: ResourceVersion) -> None:
        """Add a version, newer than all others of its resource."""
        patch = version.patch
        named = ("", 0, "") if patch is None else (patch.sha256, patch.length, patch.media_type)
        of_version = (version.uri, version.moment, version.since, version.length)
        with self._in_transaction():
            self._connection.execute(END_OF_VERSIONS, (version.moment, version.uri))
            self._connection.execute(
                _ADD, (*of_version, version.sha256, version.media_type, *named)
            )
            self._connection.execute(_USE, (version.sha256, version.length))
            if patch is not None:
                self._connection.execute(_USE, (patch.sha256, patch.length))

    def recorded_hash(self, uri: str) -> str:
        """Return the ``hash`` that the catalogue has for a resource; empty for none."""
        rows = self._rows("SELECT hash FROM resource WHERE uri = ?", uri)
        return str(rows[0][0]) if rows else ""

    def stored_bytes(self) -> int:
        """Return the bytes of all stored contents, each counted once."""
        return int(self._rows("SELECT ifnull(sum(length), 0) FROM content")[0][0])

    def drop_oldest(self) -> tuple[ContentKey, ...] | None:
        """Drop the version that was superseded the longest time ago; ``None`` without one."""
        rows = self._rows(_OLDEST)
        return self._drop(rows) if rows else None

    def drop_superseded(self, before: int, least: int) -> tuple[ContentKey, ...]:
        """Drop versions superseded before a moment; ``least`` former ones of each resource stay."""
        return self._drop(self._rows(_SUPERSEDED, before, least))

    def drop_stored_before(self, moment: int) -> tuple[ContentKey, ...]:
        """Drop the versions stored before a moment."""
        query = "SELECT uri, moment_us FROM version WHERE moment_us < ?"
        return self._drop(self._rows(query, moment))

    def is_needed(self, sha256: str) -> bool:
        """True if a content belongs to a version, or is a patch."""
        return bool(self._rows("SELECT 1 FROM content WHERE sha256 = ?", sha256))

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._file.errors:
            return self._connection.execute(query, values).fetchall()

    def _drop(self, rows: Iterable[tuple[Any, ...]]) -> tuple[ContentKey, ...]:
        gone: list[ContentKey] = []
        with self._in_transaction():
            for row in rows:
                gone += self._drop_one(row)
        return tuple(gone)

    @contextmanager
    def _in_transaction(self) -> Iterator[None]:
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


def version_of(row: tuple[Any, ...]) -> ResourceVersion:
    """Return the version in a row of ``OF_RESOURCE``."""
    uri, moment, since, length, sha256, media_type, digest, size, kind, former = row
    patch = VersionPatch(sha256=digest, length=size, media_type=kind) if digest else None
    return ResourceVersion(
        uri, moment, since, length, sha256, media_type, patch, is_superseded=bool(former)
    )
