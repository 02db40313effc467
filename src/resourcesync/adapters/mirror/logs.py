"""The logs of a mirror's memory, to be read: changes, proofs, links and patches."""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import starmap
from typing import Any

from resourcesync.adapters.mirror import change_log, entries, link_log, proofs
from resourcesync.ports.changes import Arrival, LoggedChange
from resourcesync.ports.mirror import PatchRow, ProcessedDocument, RunRow, TrashRow


class MirrorLogs(ABC):
    """Reads the logs of a file that the heir of this class has opened."""

    _db: sqlite3.Connection
    _has_changes: bool
    _has_links: bool
    _has_dates: bool
    _has_entries: bool

    @abstractmethod
    def _guard(self) -> AbstractContextManager[None]:
        """Turn what SQLite raises into our errors."""

    def changes(self, after: int) -> Iterator[LoggedChange]:
        """Yield the changes with a number greater than ``after``, in order."""
        with self._guard():
            if self._has_changes:
                yield from change_log.read_changes(self._db, after)

    def changes_of(self, uri: str) -> Iterator[LoggedChange]:
        """Yield the changes of one resource, the newest first."""
        with self._guard():
            if self._has_changes:
                yield from change_log.changes_of(self._db, uri)

    def change_bounds(self) -> tuple[int, int]:
        """Return the numbers of the last change that was forgotten and of the newest one."""
        with self._guard():
            return change_log.change_bounds(self._db) if self._has_changes else (0, 0)

    def sequence_before(self, moment: int) -> int:
        """Return the number after which all changes of ``moment`` and later stand."""
        with self._guard():
            return change_log.last_change_before(self._db, moment) if self._has_changes else 0

    def arrivals(self, since: int, most: int) -> list[Arrival]:
        """Return about the ``most`` newest changes since a moment, newest transaction first."""
        with self._guard():
            if not self._has_changes:
                return []
            rows = change_log.read_arrivals(self._db, since, most, is_dated=self._has_dates)
            return list(rows)

    def changes_by(self, since: int, width: int) -> dict[int, int]:
        """Return how many changes came in each interval since a moment, by its number from 0.

        What came before the end of the first run, if that is remembered, does not count.
        """
        with self._guard():
            if not self._has_changes:
                return {}
            rows = self._db.execute(
                "SELECT (time - :since) / :width, sum(count) FROM change WHERE time >= :since"
                " AND time > coalesce((SELECT ended FROM run WHERE rowid = 1), 0) GROUP BY 1",
                {"since": since, "width": width},
            )
            return dict(rows.fetchall())

    def runs(self, since: int, most: int) -> list[RunRow]:
        """Return the newest runs that ended since a moment, the newest first."""
        with self._guard():
            rows = self._db.execute(
                "SELECT run, started, ended, mode, outcome, counts FROM run WHERE ended >= ?"
                " ORDER BY ended DESC, rowid DESC LIMIT ?",
                (since, most),
            ).fetchall()
        return [_run(*row) for row in rows]

    def find_run(self, run: str) -> RunRow | None:
        """Return a run by its id; ``None`` when it is not remembered."""
        with self._guard():
            row = self._db.execute(
                "SELECT run, started, ended, mode, outcome, counts FROM run WHERE run = ?", (run,)
            ).fetchone()
        return None if row is None else _run(*row)

    def causes(self) -> list[tuple[str, int, str, str, int]]:
        """Return why what is listed is not here: code, how many, a URI and a reason of them.

        Last stands when the first of them is due. The code is empty for what was not tried yet.
        Most first, at most 100.
        """
        with self._guard():
            return self._db.execute(
                "SELECT code, count(*), min(loc), reason, min(due) FROM pending"
                " WHERE task = 'fetch' GROUP BY code ORDER BY count(*) DESC, code LIMIT 100"
            ).fetchall()

    def documents(self, limit: int) -> list[ProcessedDocument]:
        """Return the Change Lists that were read, those read last first; also open ones."""
        with self._guard():
            rows = self._db.execute(
                "SELECT uri, from_, until, entries, prefix, etag, last_modified FROM document"
                " ORDER BY read DESC LIMIT ?",
                (limit,),
            ).fetchall()
        return [ProcessedDocument._make(row) for row in rows]

    def oldest_proofs(self) -> Iterator[tuple[str, int]]:
        """Yield URIs and when each was proven, longest ago first; what was never: installed."""
        with self._guard():
            yield from proofs.read_oldest_proofs(self._db)

    def trash_by_path(self) -> Iterator[TrashRow]:
        """Yield all that is in the trash, by path, the newest of each path first.

        For a memory that is read at one moment: nothing may be written by it meanwhile.
        """
        with self._guard():
            yield from starmap(
                TrashRow,
                self._db.execute("SELECT * FROM trash ORDER BY path, removed DESC, place"),
            )

    def is_linked(self, uri: str) -> bool:
        """Whether something is here only because entries link to it, or did so."""
        with self._guard():
            return self._has_links and link_log.has_link(self._db, uri)

    def referrers(self, uri: str, limit: int) -> list[str]:
        """Return the first entries that link to something, in order."""
        with self._guard():
            return link_log.find_referrers(self._db, uri, limit) if self._has_links else []

    def orphans(self) -> Iterator[str]:
        """Yield, in order, what was linked to and is no more; safe while rows are written."""
        with self._guard():
            if self._has_links:
                yield from link_log.read_orphans(self._db)

    def linked_count(self) -> int:
        """Count the copies that are here only because entries link to them."""
        with self._guard():
            return link_log.count_linked(self._db) if self._has_links else 0

    def content_before(self, uri: str) -> tuple[int, str] | None:
        """Return length and digests of a copy whose file is changing now, before it changes."""
        with self._guard():
            return change_log.content_before(self._db, uri)

    def has_entries(self) -> bool:
        """Whether any entry has, or had, links that are remembered."""
        with self._guard():
            return self._has_entries and entries.has_entries(self._db)

    def entry_links(self, uri: str) -> str:
        """Return the links of an entry, as JSON; empty when it has none."""
        with self._guard():
            return entries.read_entry_links(self._db, uri) if self._has_entries else ""

    def entry_changed(self, uri: str) -> int:
        """Return the number of the logged change that told that its links changed; 0 for none."""
        with self._guard():
            return entries.read_entry_change(self._db, uri) if self._has_entries else 0

    def entries_linking(self, targets: Sequence[str]) -> list[str]:
        """Return the entries that link to any of some URIs, in order."""
        with self._guard():
            return entries.find_linking_entries(self._db, targets) if self._has_entries else []

    def closed_documents(self, limit: int) -> list[ProcessedDocument]:
        """Return the closed Change Lists that were processed, those read last first."""
        with self._guard():
            rows = self._db.execute(
                "SELECT uri, from_, until, entries, prefix, etag, last_modified FROM document"
                " WHERE until IS NOT NULL AND prefix > '' ORDER BY read DESC LIMIT ?",
                (limit,),
            ).fetchall()
        return [ProcessedDocument._make(row) for row in rows]

    def last_patch(self, uri: str) -> PatchRow | None:
        """Return what became of the last patch of a copy; ``None`` when there was none."""
        with self._guard():
            return link_log.read_patch(self._db, uri) if self._has_links else None


def _run(*row: Any) -> RunRow:
    names = ("run", "started", "ended", "mode", "outcome", "counts")
    return RunRow(**dict(zip(names, row, strict=True)))
