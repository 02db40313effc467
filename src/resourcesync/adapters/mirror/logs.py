"""The logs of a mirror's memory, to be read: changes, proofs, links and patches."""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager

from resourcesync.adapters.mirror import change_log, link_log, proofs
from resourcesync.ports.changes import Logged
from resourcesync.ports.linking import PatchRow
from resourcesync.ports.mirror import SeenDocument


class MirrorLogs(ABC):
    """Reads the logs of a file that the heir of this class has opened."""

    _db: sqlite3.Connection
    _has_changes: bool
    _has_links: bool

    @abstractmethod
    def _guard(self) -> AbstractContextManager[None]:
        """Turn what SQLite raises into our errors."""

    def changes(self, after: int) -> Iterator[Logged]:
        """Yield the changes with a number greater than ``after``, in order."""
        with self._guard():
            if self._has_changes:
                yield from change_log.read_changes(self._db, after)

    def changes_of(self, uri: str) -> Iterator[Logged]:
        """Yield the changes of one resource, the newest first."""
        with self._guard():
            if self._has_changes:
                yield from change_log.changes_of(self._db, uri)

    def change_bounds(self) -> tuple[int, int]:
        """Return the numbers of the last change that was forgotten and of the newest one."""
        with self._guard():
            return change_log.bounds(self._db) if self._has_changes else (0, 0)

    def changed_before(self, moment: int) -> int:
        """Return the number after which all changes of ``moment`` and later stand."""
        with self._guard():
            return change_log.before_moment(self._db, moment) if self._has_changes else 0

    def oldest_proofs(self) -> Iterator[tuple[str, int]]:
        """Yield URIs and when each was proven, longest ago first; what was never: installed."""
        with self._guard():
            yield from proofs.oldest(self._db)

    def is_linked(self, uri: str) -> bool:
        """Whether something is here only because entries link to it, or did so."""
        with self._guard():
            return self._has_links and link_log.is_linked(self._db, uri)

    def referrers(self, uri: str, limit: int) -> list[str]:
        """Return the first entries that link to something, in order."""
        with self._guard():
            return link_log.referrers(self._db, uri, limit) if self._has_links else []

    def orphans(self) -> Iterator[str]:
        """Yield, in order, what was linked to and is no more; safe while rows are written."""
        with self._guard():
            if self._has_links:
                yield from link_log.orphans(self._db)

    def linked_count(self) -> int:
        """Count the copies that are here only because entries link to them."""
        with self._guard():
            return link_log.count(self._db) if self._has_links else 0

    def closed_documents(self, limit: int) -> list[SeenDocument]:
        """Return the closed Change Lists that were processed, those read last first."""
        with self._guard():
            rows = self._db.execute(
                "SELECT uri, from_, until, entries, prefix, etag, last_modified FROM document"
                " WHERE until IS NOT NULL AND prefix > '' ORDER BY read DESC LIMIT ?",
                (limit,),
            ).fetchall()
        return [SeenDocument._make(row) for row in rows]

    def patched(self, uri: str) -> PatchRow | None:
        """Return what became of the last patch of a copy; ``None`` when there was none."""
        with self._guard():
            return link_log.patched(self._db, uri) if self._has_links else None
