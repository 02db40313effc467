"""The writing half of a transaction: rows are collected, and each change gets its time."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from resourcesync.catalogue.rows import Row, from_row, to_row, to_rows
from resourcesync.catalogue.schema import ALL_TIMES
from resourcesync.catalogue.versions import END_OF_VERSIONS
from resourcesync.model.entries import Resource, ResourceRun, without_patches
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.sqlite_file import Connection

_BATCH: Final = 2_000
_PUT: Final = "INSERT OR REPLACE INTO resource VALUES (?,?,?,?,?,?,?)"
_EDIT: Final = "INSERT OR REPLACE INTO edit (uri) VALUES (?)"
_DELETE: Final = "DELETE FROM resource WHERE uri = ?"
_LOG: Final = """
INSERT INTO change (change, datetime_us, uri, lastmod_us, length, hash, media_type, more)
VALUES (?,?,?,?,?,?,?,?)
"""
_ONE: Final = """
SELECT uri, lastmod_us, length, hash, media_type, more FROM main.resource WHERE uri = ?
"""
_EXISTENCE: Final = "SELECT uri FROM change WHERE seq > ? AND change IN ('created', 'deleted')"
_PAGE: Final = "SELECT * FROM main.resource WHERE uri > ? ORDER BY uri LIMIT ?"
_LATEST: Final = f"""
SELECT CAST(max(latest) AS INTEGER) FROM (
    SELECT iif(latest_us {ALL_TIMES}, latest_us, 0) AS latest FROM moment
    UNION ALL SELECT max(datetime_us) FROM change WHERE datetime_us {ALL_TIMES}
)
"""  # noqa: S608 - made of our own text alone


class CatalogueRecording:
    """The writing half of one transaction, made by ``SourceCatalogue.record``."""

    def __init__(self, connection: Connection, now: int) -> None:
        self.connection = connection
        latest = latest_moment(connection)
        self.is_first = latest is None
        self._last = connection.execute("SELECT ifnull(max(seq), 0) FROM change").fetchone()[0]
        self._least = now if latest is None else latest + 1
        self._moment = self._next = max(now, self._least)
        self._has_times = False
        self._puts: list[Row] = []
        self._deletions: list[Row] = []
        self._log: list[Row] = []
        self._wrote = self.is_first

    def has_resource(self, uri: str) -> bool:
        """True if a resource is known, as far as rows are written."""
        query = "SELECT 1 FROM resource WHERE uri = ?"
        return self.connection.execute(query, (uri,)).fetchone() is not None

    def created_and_deleted(self) -> Iterator[str]:
        """Yield the URIs that came or went in this recording; none in the first one."""
        self.flush()
        for (uri,) in self.connection.execute(_EXISTENCE, (self._last,)):
            yield uri

    def resources(self) -> Iterator[tuple[Resource, str]]:
        """Yield each resource with its fingerprint, in URI order; they may be updated meanwhile."""
        self.flush()
        uri = ""
        while rows := self.connection.execute(_PAGE, (uri, _BATCH)).fetchall():
            yield from ((from_row(row), row[-1]) for row in rows)
            uri = rows[-1][0]

    def created(self, resource: Resource, fingerprint: str) -> None:
        """Record a new resource, and the change unless this is the first recording."""
        self._put(ChangeKind.CREATED, resource, fingerprint)

    def created_run(self, resources: ResourceRun, fingerprints: Sequence[str]) -> None:
        """Record new resources, each with its fingerprint, as ``created`` does."""
        if self._deletions:
            self.flush()
        self._puts += to_rows(resources, fingerprints)
        if not self.is_first:
            for row in to_rows(resources):
                self._append(ChangeKind.CREATED, row)
        if len(self._puts) >= _BATCH:
            self.flush()

    def updated(self, resource: Resource, fingerprint: str) -> None:
        """Record new bytes of a known resource, and the change."""
        self._put(ChangeKind.UPDATED, resource, fingerprint)

    def touched(self, resource: Resource, fingerprint: str) -> None:
        """Record a new fingerprint or ``lastmod`` of equal bytes; that is no change."""
        self._put(None, resource, fingerprint)

    def deleted(self, resource: Resource) -> None:
        """Record that a resource is gone, and the change, which has only its URI."""
        if self._puts:
            self.flush()
        self._deletions.append((resource.uri,))
        self._append(ChangeKind.DELETED, to_row(Resource(uri=resource.uri)))

    def advance_time(self) -> None:
        """Record that the moment of this recording is over: all later changes are later."""
        self._wrote = True

    def dated(self, moment: datetime) -> None:
        """Date the next changes with a given time, where order and the present permit."""
        if self._next == self._moment and not self._has_times:
            self._next = self._least
        self._has_times = True
        self._next = max(self._next, min(to_microseconds(moment), self._moment))

    def _put(self, kind: ChangeKind | None, resource: Resource, fingerprint: str) -> None:
        if self._deletions:
            self.flush()
        row = to_row(resource)
        # A patch belongs to the change: it leads to this version from the one before (§14.4).
        has_patches = resource.links and resource.patches
        plain = to_row(without_patches(resource)) if has_patches else row
        self._puts.append((*plain, fingerprint))
        if kind is not None and not self.is_first:
            self._append(kind, row)
        if len(self._puts) >= _BATCH:
            self.flush()

    def _append(self, kind: ChangeKind, row: Row) -> None:
        if self.is_first:
            return
        self._log.append((kind.value, self._next, *row))
        self._next += 1

    def flush(self) -> None:
        """Write the collected rows to SQLite."""
        self._wrote = self._wrote or bool(self._puts or self._deletions)
        self.connection.executemany(_PUT, self._puts)
        if not self.is_first:
            self.connection.executemany(_EDIT, [(row[0],) for row in self._puts])
        self.connection.executemany(_DELETE, self._deletions)
        ends = [(self._moment, *deletion) for deletion in self._deletions]
        self.connection.executemany(END_OF_VERSIONS, ends)
        self.connection.executemany(_LOG, self._log)
        self._puts.clear()
        self._deletions.clear()
        self._log.clear()

    def finish(self) -> None:
        """Write the rest, and the latest time, so that every later change is later."""
        self.flush()
        if self._wrote:
            self.connection.execute(
                "INSERT OR REPLACE INTO moment VALUES (1, ?)", (max(self._moment, self._next - 1),)
            )


def count_resources(connection: Connection) -> int:
    """Return the number of resources."""
    return int(connection.execute("SELECT count(*) FROM main.resource").fetchone()[0])


def find_resource(connection: Connection, uri: str) -> Resource | None:
    """Return the recorded resource; ``None`` if there is none."""
    row = connection.execute(_ONE, (uri,)).fetchone()
    return None if row is None else from_row(row)


def latest_moment(connection: Connection) -> int | None:
    """Return the latest time that was assigned, ``None`` before the first."""
    found: int | None = connection.execute(_LATEST).fetchone()[0]
    return found
