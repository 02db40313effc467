"""The Source's catalogue in one SQLite file.

WAL and ``synchronous=FULL``: a commit survives a power cut. One connection writes; each reader has
its own connection and sees one snapshot.
"""

import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Final, Self

from resourcesync.catalogue.filling import LossLimit, fill, post
from resourcesync.catalogue.recording import (
    CatalogueRecording,
    count_resources,
    find_resource,
    latest_moment,
)
from resourcesync.catalogue.rows import changes_from_rows, from_row, from_rows
from resourcesync.catalogue.schema import CATALOGUE_FORMAT
from resourcesync.catalogue.versions import VersionIndex
from resourcesync.errors import ChangesLostError, LockedError, StateError, StorageError
from resourcesync.model.entries import Change, Resource
from resourcesync.model.timestamps import format_w3c, from_microseconds, to_microseconds
from resourcesync.own_files import LOCK, holder_of, lock_file, open_path
from resourcesync.ports import Clock
from resourcesync.ports.accounts import Posted
from resourcesync.sqlite_file import Connection, SqliteFile, make_private_folder, write_notes

_LOCK_NAME: Final = "publish.lock"
_USUAL_NAME: Final = "catalogue.db"
_BATCH: Final = 2_000
_FINGERPRINTS: Final = "SELECT uri, fingerprint FROM resource ORDER BY uri"
_OLDEST: Final = "SELECT seq FROM change WHERE seq <= ? ORDER BY seq LIMIT ?"
_FORGOTTEN_NOTE: Final = "changes-forgotten"
"""The note with the number up to which changes were deleted."""
MAX_FORGOTTEN: Final = 10_000
"""The most changes that are forgotten in one transaction, so that others may write."""


_RUN: Final = 512
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
_BEFORE: Final = "SELECT datetime_us FROM change WHERE seq <= ? ORDER BY seq DESC LIMIT 1"


class CatalogueSnapshot:
    """A consistent view of the catalogue, made by ``SourceCatalogue.snapshot``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        latest = latest_moment(connection)
        if latest is None:
            raise StateError(
                "nothing was recorded yet",
                hint="publish a folder first, or record resources in a catalogue: "
                "resourcesync catalogue import CATALOGUE FILE",
            )
        self.at = from_microseconds(latest)
        """The time up to which this view includes every change; all later changes are later."""

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
        """Yield each URI whose resource was written or removed since edits were last forgotten.

        In rising URI order, with the resource as it is now, ``None`` when it is gone. It may be as
        it was before. The first recording is no edit.
        """
        for uri, *row in self._connection.execute(_EDITS):
            # The URI of a row that another program wrote and deleted may be no UTF-8.
            yield uri.decode(errors="replace"), None if row[0] is None else from_row(tuple(row))

    def last_edit(self) -> int:
        """Return the number up to which the edits of this view may be forgotten."""
        return self._number("SELECT ifnull(max(number), 0) FROM edit")

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
        query = "SELECT count(*) FROM (SELECT 1 FROM resource LIMIT ?)"
        return self._number(query, -1 if most is None else most)

    def last_change(self) -> int:
        """Return the newest change's sequence number, 0 when there is none."""
        return self._number("SELECT ifnull(max(seq), 0) FROM change")

    def _number(self, query: str, *values: int) -> int:
        found: int = self._connection.execute(query, values).fetchone()[0]
        return found


class SourceCatalogue:
    """The Source's catalogue: a snapshot of the resources and the log of their changes.

    Without a path it is in memory. With a clock it is locked for one publisher; without, several
    programs may post at a time, also during a publish: each transaction waits for the one before.
    In a dry run each transaction is rolled back.

    The file and its folder are for their owner alone: they may lie in a tree that a web server
    serves. Times that are recorded rise strictly whatever the clock does: a clock that steps back
    gives times a microsecond apart until it has caught up.
    """

    def __init__(
        self, path: Path | None = None, clock: Clock | None = None, *, dry_run: bool = False
    ) -> None:
        self._path = path
        self.dry_run = dry_run
        self._lock = None
        if path is not None and clock is not None:
            make_private_folder(path.parent)
            self._lock = PublishLock(_lock_file(path), clock)
        try:
            self._file = SqliteFile(path or "", CATALOGUE_FORMAT)
        except BaseException:
            self._unlock()
            raise
        if path is None:
            weakref.finalize(self, self._file.close)

    def close(self) -> None:
        """Close the file and release the lock, also when a signal arrives just now."""
        try:
            self._file.close()
        finally:
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def remove(self) -> None:
        """Remove the file, and its folder if nothing else is in it; then only close."""
        self._file.close()
        if self._path is None:
            return
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)
        _lock_file(self._path).unlink(missing_ok=True)
        with suppress(OSError):
            self._path.parent.rmdir()

    def clone(self) -> "SourceCatalogue":
        """Return a copy in memory."""
        other = SourceCatalogue()
        other._file.close()
        other._file = self._file.clone()
        weakref.finalize(other, other._file.close)
        return other

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def fingerprints(self) -> Iterator[tuple[str, str]]:
        """Yield the URI of each resource with the fingerprint of its original, in URI order.

        Both are as they were when the reading began. A fingerprint is empty where there is none.
        """
        with self._file.snapshot() as connection:
            rows = connection.execute(_FINGERPRINTS)
            while some := rows.fetchmany(_BATCH):
                yield from self._file.errors.decode(some, list[tuple[str, str]])

    def find(self, uri: str) -> Resource | None:
        """Return a resource as it was last recorded; ``None`` if it is not known."""
        with self._file.errors:
            return find_resource(self._file.connection, uri)

    def count(self) -> int:
        """Return the number of resources."""
        with self._file.errors:
            return count_resources(self._file.connection)

    def resources(self) -> Iterator[Resource]:
        """Yield the resources in rising URI order; none if nothing was recorded yet."""
        if self.latest() is not None:
            with self.snapshot() as snapshot:
                yield from snapshot.resources()

    def changes(self, after: int = 0) -> Iterator[tuple[int, Change]]:
        """Yield ``(number, change)`` in order of time, those after number ``after``."""
        forgotten = self._file.read_note(_FORGOTTEN_NOTE, int) or 0
        if self.latest() is None:
            return
        with self.snapshot() as snapshot:
            reason = f"the changes up to number {forgotten} are deleted from the log"
            if after > max(snapshot.last_change(), forgotten):
                reason = f"there is no change {after} yet: the catalogue was restored, or made anew"
            elif not 0 < after < forgotten:
                yield from snapshot.changes(after)
                return
        raise ChangesLostError(
            reason,
            evidence=(("asked", f"after number {after}"),),
            hint="read all resources again, then go on from the last change there is",
        )

    def latest(self) -> datetime | None:
        """Return the latest time that was assigned, ``None`` before the first."""
        with self._file.errors:
            latest = latest_moment(self._file.connection)
        return None if latest is None else from_microseconds(latest)

    @contextmanager
    def snapshot(self) -> Iterator[CatalogueSnapshot]:
        """Open a consistent view: later recordings are not in it."""
        with self._file.snapshot() as connection:
            yield CatalogueSnapshot(connection)

    def versions(self) -> VersionIndex:
        """Return the versions of each resource; writes there join the open recording."""
        return VersionIndex(self._file)

    @contextmanager
    def record(
        self, now: datetime, notes: Mapping[str, str] | None = None
    ) -> Iterator[CatalogueRecording]:
        """Open the one writing transaction; it commits when the block ends without an error.

        Every change gets a time of its own, strictly later than all before it, at least ``now``.
        The first recording logs no changes: the Resource List will have all resources.
        """
        with self._writing() as connection:
            recording = CatalogueRecording(connection, to_microseconds(now))
            yield recording
            recording.finish()
            if notes:
                write_notes(connection, notes)

    def post(
        self,
        changes: Iterable[Change],
        now: datetime,
        *,
        notes: Mapping[str, str] | None = None,
        keeps_times: bool = False,
        loss: LossLimit | None = None,
    ) -> Posted:
        """Record changes of some resources: the rows, the changes and the notes, all or nothing.

        A repeated report is never wrong: what is recorded decides, as with ``fill``, whether it is
        a creation, an update, another date, or no change. One without a hash is an update. The
        catalogue gives each change its time.
        """
        with self.record(now, notes) as recording:
            return post(recording, changes, keeps_times=keeps_times, loss=loss)

    def fill(
        self,
        resources: Iterable[Resource],
        now: datetime,
        *,
        is_all: bool = True,
        notes: Mapping[str, str] | None = None,
        most_gone: float = 1.0,
        allow_empty: bool = False,
    ) -> Posted:
        """Record the resources as they are, all or nothing; order does not matter.

        It is refused that a larger part than ``most_gone`` would be deleted; and that all would,
        because there is no resource, without ``allow_empty``.
        """
        with self.record(now, notes) as recording:
            return fill(
                recording, resources, is_all=is_all, most_gone=most_gone, allow_empty=allow_empty
            )

    def forget_edits(self, last: int) -> None:
        """Forget the edits up to a number: the published Resource List has them."""
        with self._writing() as connection:
            connection.execute("DELETE FROM edit WHERE number <= ?", (last,))

    def forget_changes(self, last: int) -> bool:
        """Forget some thousand of the oldest changes; return whether more are left.

        Numbers are not used again.
        """
        with self._file.errors:
            numbers = self._file.connection.execute(_OLDEST, (last, MAX_FORGOTTEN + 1)).fetchall()
        if not numbers:
            return False
        until = numbers[:MAX_FORGOTTEN][-1][0]
        with self._writing() as connection:
            connection.execute("DELETE FROM change WHERE seq <= ?", (until,))
            write_notes(connection, {_FORGOTTEN_NOTE: str(until)})
        return len(numbers) > MAX_FORGOTTEN

    def rewind(self, moment: datetime) -> None:
        """Forget the changes dated later than a moment; later ones are dated from there again."""
        with self._writing() as connection:
            until = (to_microseconds(moment),)
            connection.execute("DELETE FROM change WHERE datetime_us > ?", until)
            connection.execute("UPDATE moment SET latest_us = ?", until)

    def note(self, key: str) -> str | None:
        """Return a value of the publisher's own bookkeeping, or ``None``."""
        return self._file.note(key)

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Store values of the publisher's own bookkeeping, all or none, durably."""
        with self._writing() as connection:
            write_notes(connection, notes)

    def _writing(self) -> AbstractContextManager[Connection]:
        return self._file.writing(commits=not self.dry_run)


def _lock_file(path: Path) -> Path:
    return path.with_name(_LOCK_NAME if path.name == _USUAL_NAME else f"{path.name}.lock")


class PublishLock:
    """An advisory lock, from construction to ``close``, or to the end of the process in any way."""

    def __init__(self, path: Path, clock: Clock) -> None:
        try:
            self._descriptor = open_path(path, LOCK)
            is_ours = lock_file(self._descriptor, format_w3c(clock.now()))
        except OSError as error:
            raise StorageError(f"cannot make the lock {path}: {error.strerror}") from error
        if not is_ours:
            holder = holder_of(self._descriptor)
            os.close(self._descriptor)
            raise LockedError(
                f"another run is publishing this tree: {holder}",
                evidence=(("lock", str(path)), ("kept", "nothing was changed")),
                hint="wait for it to end",
            )

    def close(self) -> None:
        """Release the lock, also when a signal arrives just now."""
        try:
            with suppress(OSError):
                os.ftruncate(self._descriptor, 0)
        finally:
            os.close(self._descriptor)
