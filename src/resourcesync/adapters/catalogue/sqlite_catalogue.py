"""The ``Catalogue`` port on one SQLite file.

WAL and ``synchronous=FULL``: a commit survives a power cut. One connection writes; each reader has
its own connection and sees one snapshot.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import chain
from pathlib import Path
from threading import Lock, Timer
from typing import Final, Self

from resourcesync.adapters.catalogue.database import ALL_TIMES, CATALOGUE_FORMAT, PublishLock
from resourcesync.adapters.catalogue.rows import (
    Row,
    changes_from_rows,
    from_row,
    from_rows,
    links_of,
    to_row,
    to_rows,
)
from resourcesync.adapters.catalogue.versions import END_OF_VERSIONS, FileVersions
from resourcesync.errors import StateError
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource, ResourceRun, without_patches
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Clock
from resourcesync.sqlite_file import (
    Connection,
    SqliteErrors,
    SqliteFile,
    make_private_folder,
    open_reader,
    open_snapshot,
    write_notes,
)

LOCK_NAME: Final = "publish.lock"
_USUAL_NAME: Final = "catalogue.db"
_BATCH: Final = 2_000
_RUN: Final = 512
_PUT: Final = "INSERT OR REPLACE INTO resource VALUES (?,?,?,?,?,?,?)"
_EDIT: Final = "INSERT OR REPLACE INTO edit (uri) VALUES (?)"
_DELETE: Final = "DELETE FROM resource WHERE uri = ?"
_LOG: Final = """
INSERT INTO change (change, datetime_us, uri, lastmod_us, length, hash, media_type, more)
VALUES (?,?,?,?,?,?,?,?)
"""
_FINGERPRINTS: Final = "SELECT uri, fingerprint FROM resource ORDER BY uri"
_ONE: Final = """
SELECT uri, lastmod_us, length, hash, media_type, more FROM main.resource WHERE uri = ?
"""
_RANGE: Final = """
SELECT uri, lastmod_us, length, hash, media_type, more FROM resource
WHERE uri >= ? {} ORDER BY uri
"""
_EDITS: Final = """
SELECT CAST(edit.uri AS BLOB), resource.uri, lastmod_us, length, hash, media_type, more
FROM edit LEFT JOIN resource USING (uri) WHERE typeof(edit.uri) = 'text' ORDER BY edit.uri
"""
_CHANGES: Final = """
SELECT seq, change, datetime_us, uri, lastmod_us, length, hash, media_type, more
FROM change WHERE seq > ? ORDER BY seq
"""
_LATEST: Final = f"""
SELECT CAST(max(latest) AS INTEGER) FROM (
    SELECT iif(latest_us {ALL_TIMES}, latest_us, 0) AS latest FROM moment
    UNION ALL SELECT max(datetime_us) FROM change WHERE datetime_us {ALL_TIMES}
)
"""  # noqa: S608 - made of our own text alone


_OLDEST: Final = "SELECT seq FROM change WHERE seq <= ? ORDER BY seq LIMIT ?"
FORGOTTEN_NOTE: Final = "changes-forgotten"
"""The note with the number up to which changes were deleted."""
MAX_FORGOTTEN: Final = 10_000
"""The most changes that are forgotten in one transaction, so that others may write."""
_BEFORE: Final = "SELECT datetime_us FROM change WHERE seq <= ? ORDER BY seq DESC LIMIT 1"


class FileCatalogue:
    """A ``Catalogue`` in a SQLite file, locked by one run at a time.

    The file and its folder are for their owner alone: they may lie in a tree that a web server
    serves. Times that are recorded rise strictly whatever the clock does: a clock that steps back
    gives times a microsecond apart until it has caught up.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        make_private_folder(path.parent)
        name = LOCK_NAME if path.name == _USUAL_NAME else f"{path.name}.lock"
        self._lock_file = path.with_name(name)
        self._lock = PublishLock(self._lock_file, clock)
        try:
            self._file = SqliteFile(path, CATALOGUE_FORMAT)
        except BaseException:
            self._lock.close()
            raise

    def close(self) -> None:
        """Close the file and release the lock, also when a signal arrives just now."""
        try:
            self._file.close()
        finally:
            self._lock.close()

    def remove(self) -> None:
        """Remove the catalogue; then only ``close`` is allowed.

        The folder goes too if nothing else is in it.
        """
        self._file.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)
        self._lock_file.unlink(missing_ok=True)
        with suppress(OSError):
            self._path.parent.rmdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def fingerprints(self) -> Iterator[tuple[str, str]]:
        """Yield the URI of each resource with the fingerprint of its original, in URI order.

        Both are as they were when the reading began.
        """
        with open_snapshot(self._path, CATALOGUE_FORMAT) as connection:
            rows = connection.execute(_FINGERPRINTS)
            while some := rows.fetchmany(_BATCH):
                yield from self._file.errors.decode(some, list[tuple[str, str]])

    def find(self, uri: str) -> Resource | None:
        """Return a resource as it was last recorded; ``None`` if it is not known."""
        with self._file.errors:
            return find_resource(self._file.connection, uri)

    @contextmanager
    def record(self, now: datetime) -> Iterator["FileRecording"]:
        """Open the one writing transaction; it commits when the block ends without an error.

        The first recording logs no changes: the Resource List will have all resources.
        """
        with self._file.writing() as connection:
            recording = FileRecording(connection, to_microseconds(now))
            yield recording
            recording.finish()

    @contextmanager
    def snapshot(self) -> Iterator["FileSnapshot"]:
        """Open a snapshot: later recordings are not in it."""
        with open_snapshot(self._path, CATALOGUE_FORMAT) as connection:
            yield FileSnapshot(connection)

    def versions(self) -> FileVersions:
        """Return the versions of each resource; writes there join the open recording."""
        return FileVersions(self._file)

    def forget_edits(self, last: int) -> None:
        """Delete the edits up to a number: the published Resource List has them."""
        with self._file.errors:
            self._file.connection.execute("DELETE FROM edit WHERE number <= ?", (last,))

    def forget_changes(self, last: int) -> bool:
        """Delete some thousand of the oldest changes; return whether more are left."""
        with self._file.errors:
            numbers = self._file.connection.execute(_OLDEST, (last, MAX_FORGOTTEN + 1)).fetchall()
        if not numbers:
            return False
        until = numbers[:MAX_FORGOTTEN][-1][0]
        with self._file.writing() as connection:
            connection.execute("DELETE FROM change WHERE seq <= ?", (until,))
            write_notes(connection, {FORGOTTEN_NOTE: str(until)})
        return len(numbers) > MAX_FORGOTTEN

    def latest(self) -> datetime | None:
        """Return the latest time that was assigned, ``None`` before the first."""
        with self._file.errors:
            latest = latest_moment(self._file.connection)
        return None if latest is None else from_microseconds(latest)

    def rewind(self, moment: datetime) -> None:
        """Delete the changes dated later than a moment; later ones are dated from there again."""
        with self._file.writing() as connection:
            until = (to_microseconds(moment),)
            connection.execute("DELETE FROM change WHERE datetime_us > ?", until)
            connection.execute("UPDATE moment SET latest_us = ?", until)

    def note(self, key: str) -> str | None:
        """Return a note of the publisher, or ``None``."""
        return self._file.note(key)

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Store notes of the publisher, all or none, durably."""
        self._file.write_notes(notes)


def find_resource(connection: Connection, uri: str) -> Resource | None:
    """Return the recorded resource; ``None`` if there is none."""
    row = connection.execute(_ONE, (uri,)).fetchone()
    return None if row is None else from_row(row)


def latest_moment(connection: Connection) -> int | None:
    """Return the latest time that was assigned, ``None`` before the first.

    What another program wrote instead of a time is none.
    """
    found: int | None = connection.execute(_LATEST).fetchone()[0]
    return found


class FileRecording:
    """The writing half of one transaction, made by ``FileCatalogue.record``."""

    def __init__(self, connection: Connection, now: int) -> None:
        self._connection = connection
        latest = latest_moment(connection)
        self.is_first = latest is None
        self._least = now if latest is None else latest + 1
        self._moment = self._next = max(now, self._least)
        self._has_times = False
        self._puts: list[Row] = []
        self._deletions: list[Row] = []
        self._log: list[Row] = []
        self._wrote = self.is_first

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
        self._connection.executemany(_PUT, self._puts)
        if not self.is_first:
            self._connection.executemany(_EDIT, [(row[0],) for row in self._puts])
        self._connection.executemany(_DELETE, self._deletions)
        ends = [(self._moment, *deletion) for deletion in self._deletions]
        self._connection.executemany(END_OF_VERSIONS, ends)
        self._connection.executemany(_LOG, self._log)
        self._puts.clear()
        self._deletions.clear()
        self._log.clear()

    def finish(self) -> None:
        """Write the rest, and the latest time, so that every later change is later."""
        self.flush()
        if self._wrote:
            self._connection.execute(
                "INSERT OR REPLACE INTO moment VALUES (1, ?)", (max(self._moment, self._next - 1),)
            )


class FileSnapshot:
    """A consistent view of the catalogue (``Snapshot``); made by ``FileCatalogue.snapshot``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        latest = latest_moment(connection)
        if latest is None:
            raise StateError(
                "nothing was recorded yet",
                hint="publish a folder first, or record resources in a catalogue: "
                "resourcesync catalogue import CATALOGUE FILE",
            )
        self._at = from_microseconds(latest)

    @property
    def at(self) -> datetime:
        """The time up to which this view includes every change; all later changes are later."""
        return self._at

    def resources(self, start: str = "", end: str | None = None) -> Iterator[Resource]:
        """Yield the resources in rising URI order, those from ``start`` up to before ``end``."""
        return chain.from_iterable(self.batches(start, end))

    def batches(self, start: str = "", end: str | None = None) -> Iterator[Sequence[Resource]]:
        """Yield the same, some hundred at a time."""
        bounds = (start,) if end is None else (start, end)
        query = _RANGE.format("" if end is None else "AND uri < ?")
        rows = self._connection.execute(query, bounds)
        while some := rows.fetchmany(_RUN):
            yield from_rows(some)

    def edits(self) -> Iterator[tuple[str, Resource | None]]:
        """Yield each edited URI with its resource, ``None`` when it is gone, in URI order."""
        for uri, *row in self._connection.execute(_EDITS):
            # The URI of a row that another program wrote and deleted may be no UTF-8.
            yield uri.decode(errors="replace"), None if row[0] is None else from_row(tuple(row))

    def last_edit(self) -> int:
        """Return the number up to which the edits of this view may be deleted."""
        found: int = self._connection.execute("SELECT ifnull(max(number), 0) FROM edit").fetchone()[
            0
        ]
        return found

    def changes(self, after: int = 0) -> Iterator[tuple[int, Change]]:
        """Yield ``(sequence number, change)`` in order of time, those after number ``after``."""
        before = self._connection.execute(_BEFORE, (after,)).fetchone()
        rows = self._connection.execute(_CHANGES, (after,))
        for row, change in changes_from_rows(rows, *(before or ())):
            if isinstance(change, StateError):
                raise change
            yield row[0], change

    def count(self, most: int | None = None) -> int:
        """Return the number of resources, or ``most`` when there are more."""
        found: int = self._connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM resource LIMIT ?)", (-1 if most is None else most,)
        ).fetchone()[0]
        return found

    def last_change(self) -> int:
        """Return the newest change's sequence number, 0 when there is none."""
        found: int = self._connection.execute("SELECT ifnull(max(seq), 0) FROM change").fetchone()[
            0
        ]
        return found


_NEWEST: Final = "SELECT seq, datetime_us FROM change ORDER BY seq DESC LIMIT 1"


class FileChangeLog:
    """The change log in a catalogue's file, which is neither locked nor written."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def last(self) -> tuple[int, int]:
        """Return number and time of the newest change, in microseconds; 0 when there is none."""
        with open_snapshot(self._path, CATALOGUE_FORMAT) as connection:
            return _newest_change(connection)

    def resources(self) -> int:
        """Return the number of resources now."""
        with open_snapshot(self._path, CATALOGUE_FORMAT) as connection:
            return int(connection.execute("SELECT count(*) FROM resource").fetchone()[0])


def _newest_change(connection: Connection) -> tuple[int, int]:
    found = connection.execute(_NEWEST).fetchone()
    return (found[0], found[1]) if found else (0, 0)


_ENTRY: Final = "SELECT hash, fingerprint, more FROM resource WHERE uri = ?"
_OPEN_SECONDS: Final = 1.0


class FileEntryReader:
    """A reader of single resources in a catalogue's file, which is neither locked nor written.

    Its connection is closed after a second, and opened again when it is needed: the file may be
    another one then, and a publisher who ends finds it free.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._connection: Connection | None = None

    def find(self, uri: str) -> tuple[str, str, tuple[Link, ...]] | None:
        """Return ``hash``, fingerprint and links of a resource; ``None`` if it is not known."""
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
