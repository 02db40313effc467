"""Change log of a mirror: its changes for other programs, from a cursor on, at least once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from resourcesync.errors import DiscontinuityError, Remedy
from resourcesync.ports.changes import LoggedChange, MirrorChangeKind
from resourcesync.ports.mirror import MirrorStateStore


class Consumers(Protocol):
    """Store of the cursor of each named program that reads the changes of a mirror."""

    def cursor(self, name: str) -> int | None:
        """Return the number of the last change that ``name`` acknowledged, or ``None``."""

    def acknowledge(self, name: str, cursor: int) -> None:
        """Record durably that ``name`` has processed all changes up to ``cursor``."""


@dataclass(slots=True, kw_only=True)
class ChangeLogReader:
    """Reader of the changes of a mirror that continues from its cursor.

    Attributes:
        state: The mirror's state; read-only is enough.
        cursor: Number of the last change read; ``None`` before the first reading of a program that
            starts without one.
        include_touched: Yield also resources fetched again with the same bytes.
        remedy: How the reader starts over, for errors; ``None`` if it cannot.
    """

    state: MirrorStateStore
    cursor: int | None = None
    include_touched: bool = False
    remedy: Remedy | None = None

    def read_new(self) -> Iterator[LoggedChange]:
        """Yield the changes since the cursor, which moves when all were consumed.

        Without a cursor each present copy is yielded as ``created``.

        Raises:
            DiscontinuityError: The log does not, or no longer, reach back to the cursor.
        """
        forgotten, newest = self.state.change_bounds()
        if self.cursor is None:
            created = MirrorChangeKind.CREATED.value
            for copy in self.state.copies():
                if copy.length >= 0:  # else its file is being replaced: the log will have it
                    seen = (copy.installed, created, copy.uri, copy.path, copy.length, copy.digests)
                    yield LoggedChange(newest, *seen, "")
            self.cursor = newest
            return
        if not forgotten <= self.cursor <= newest:
            raise self._lost_error(forgotten, newest)
        read = self.cursor
        for row in self.state.changes(read):
            if row.seq != read + 1:  # a pull pruned the log during a slow read
                raise self._lost_error(*self.state.change_bounds())
            read = row.seq
            if self.include_touched or row.kind != MirrorChangeKind.TOUCHED:
                yield row
        self.cursor = read

    def _lost_error(self, forgotten: int, newest: int) -> DiscontinuityError:
        reason = f"the mirror's change log does not reach back to cursor {self.cursor}"
        if self.cursor is not None and self.cursor > newest:
            reason = f"cursor {self.cursor} is beyond the end of the mirror's change log"
        here = f"changes {forgotten + 1} to {newest}" if newest > forgotten else "no change yet"
        return DiscontinuityError(
            reason,
            evidence=(("here", here),),
            hint="delete what was built from the mirror, then start over",
            code="changes-lost",
            remedy=self.remedy,
        )


def oldest_cursor(state: MirrorStateStore) -> int:
    """Return the cursor before the oldest logged change."""
    return state.change_bounds()[0]


def cursor_at(state: MirrorStateStore, moment: int) -> int:
    """Return the cursor before the changes at or after a moment, microseconds."""
    return state.sequence_before(moment)
