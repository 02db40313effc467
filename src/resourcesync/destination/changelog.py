"""What changed in a mirror, handed over to the next program: from a cursor on, at least once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from resourcesync.errors import DiscontinuityError
from resourcesync.ports.changes import LoggedChange, MirrorChangeKind
from resourcesync.ports.mirror import MirrorStateStore


class Consumers(Protocol):
    """How far each named program has read the changes of a mirror."""

    def cursor(self, name: str) -> int | None:
        """Return the number of the last change that ``name`` acknowledged, or ``None``."""
        ...

    def acknowledge(self, name: str, cursor: int) -> None:
        """Remember durably that ``name`` has taken all changes up to ``cursor``."""
        ...


@dataclass(slots=True, kw_only=True)
class ChangeLogReader:
    """Reads the changes of a mirror, again and again where it stopped.

    Attributes:
        state: The mirror's memory; open for reading is enough.
        cursor: The number of the last change that was read; ``None`` before the first reading of
            a program that starts from nothing.
        touched: Whether to yield also what was fetched anew with the same bytes.
        anew: How the reader begins anew, for messages.
    """

    state: MirrorStateStore
    cursor: int | None = None
    include_touched: bool = False
    restart_hint: str = "--restart"

    def read_new(self) -> Iterator[LoggedChange]:
        """Yield what is new since the cursor; the cursor moves when all was taken.

        A program that starts from nothing is told of each copy that is here as ``created``.

        Raises:
            DiscontinuityError: The log does not reach back to the cursor, or does so no longer.
        """
        forgotten, newest = self.state.change_bounds()
        if self.cursor is None:
            yield from self._all_copies(newest)
            self.cursor = newest
            return
        if not forgotten <= self.cursor <= newest:
            raise self._lost_error(forgotten, newest)
        read = self.cursor
        for row in self.state.changes(read):
            if row.seq != read + 1:  # a pull forgot some while a slow program read
                raise self._lost_error(*self.state.change_bounds())
            read = row.seq
            if self.include_touched or row.kind != MirrorChangeKind.TOUCHED:
                yield row
        self.cursor = read

    def _lost_error(self, forgotten: int, newest: int) -> DiscontinuityError:
        reason = f"the mirror's log of changes does not reach back to cursor {self.cursor}"
        if self.cursor is not None and self.cursor > newest:
            reason = f"cursor {self.cursor} lies beyond the end of the mirror's log of changes"
        here = f"changes {forgotten + 1} to {newest}" if newest > forgotten else "no change yet"
        return DiscontinuityError(
            reason,
            evidence=(("here", here),),
            hint=f"empty what was built from the mirror, then begin anew: {self.restart_hint}",
            code="changes-lost",
        )

    def _all_copies(self, newest: int) -> Iterator[LoggedChange]:
        created = MirrorChangeKind.CREATED.value
        for copy in self.state.copies():
            if copy.length >= 0:  # else its file is changing now: the log will tell
                seen = (copy.installed, created, copy.uri, copy.path, copy.length, copy.digests)
                yield LoggedChange(newest, *seen, "")


def oldest_cursor(state: MirrorStateStore) -> int:
    """Return the cursor before the oldest change that is remembered."""
    return state.change_bounds()[0]


def cursor_at(state: MirrorStateStore, moment: int) -> int:
    """Return the cursor before the changes of a moment and later, microseconds."""
    return state.sequence_before(moment)
