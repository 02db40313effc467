"""Cursor of a mirror in the Source's history, and the one judgement whether lists continue it.

A timestamp alone loses changes: times repeat, are missing, come late, and lists are rewritten. So
the cursor has the checkpoint T, up to which everything is known, and the processed prefix of each
list that may still grow, as a number and a digest. What stands behind that prefix is new. T may
come from the clock of the resources, so T by the clock of the lists is stored beside it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from resourcesync.destination.changes.intervals import OVERLAP, ListPositions, ReadingStart, Window
from resourcesync.destination.lists.absence_proof import RESTORED, CompleteReading, ListMoments
from resourcesync.errors import SourceUnavailableError
from resourcesync.mirror_state.rows import ProcessedDocument
from resourcesync.model.timestamps import Microseconds, format_w3c, from_microseconds

if TYPE_CHECKING:
    from resourcesync.destination.changes.intervals import ChangeHistory


class Phase(StrEnum):
    """State of the work that a cursor stands for."""

    FOLLOWING = "following"
    """Everything up to the checkpoint was stored."""
    GAP = "gap"
    """Changes are missing that only a newer Resource List can supply."""
    CUT_LIST = "cut-list"
    """The last Resource List had fewer entries than one before of the same moment."""
    BASELINE_DUE = "baseline-due"
    """Work was begun, or the filters changed: nothing is proven until a baseline completes."""
    ROLLED_BACK = "rolled-back"
    """A baseline is due, and changes were withdrawn: deletions stored before do not count."""
    REPAIRED = "repaired"
    """All was as listed, but a repair acted on lists that no pull processed: a baseline is due."""


_INCOMPLETE: Final = frozenset({Phase.BASELINE_DUE, Phase.ROLLED_BACK})


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    """Position of a mirror in the Source's history. Moments are microseconds.

    ``checkpoint`` is T: every change up to it is known; ``None`` until the first baseline
    completes. ``list_clock`` is T by the clock of the lists. ``head`` is the Change List, its
    index, or a Change Dump (``is_of_dump``). ``processed`` are the lists behind it that were open
    when they were read last, or else the newest one, each with its processed prefix. ``window``
    stands for a processed list that gives no interval. ``complete_reading`` is the last reading of
    a Resource List that proved absence, and left nothing open; after a move, the newest one.
    ``positions`` are the numbers of changes in each list when the Resource List of ``positions_at``
    was first read, ``first_window`` what ``window`` was then. ``completed_generation`` is the last
    reading that was stored to the end.
    """

    phase: Phase = Phase.FOLLOWING
    checkpoint: Microseconds | None = None
    list_clock: Microseconds | None = None
    head: str = ""
    is_of_dump: bool = False
    processed: tuple[ProcessedDocument, ...] = ()
    last_changes: tuple[tuple[str, Microseconds | None], ...] = ()
    is_resource_clock_ahead: bool = False
    moments: ListMoments = ListMoments()
    window: Window | None = None
    complete_reading: CompleteReading = CompleteReading()
    positions_at: Microseconds | None = None
    positions: Mapping[str, int] = msgspec.field(default_factory=dict)
    first_window: Window | None = None
    generation: int = 0
    completed_generation: int = 0
    closed_lists_checked_at: Microseconds | None = None

    @property
    def resource_list_at(self) -> int | None:
        """``at`` of the last Resource List."""
        return self.moments.at

    @property
    def is_baseline_due(self) -> bool:
        """True if only a baseline can continue."""
        return self.is_incomplete or self.phase is Phase.REPAIRED

    @property
    def is_incomplete(self) -> bool:
        """True if a reading of the Source was begun, or is due, and none completed since."""
        return self.phase in _INCOMPLETE

    @property
    def is_rolled_back(self) -> bool:
        """True if changes were withdrawn: deletions stored before do not count."""
        return self.phase is Phase.ROLLED_BACK

    def is_withdrawn(self, at: int | None) -> bool:
        """True if changes since the Resource List of ``at`` were processed, and then withdrawn."""
        return self.is_rolled_back and at is not None and at == self.resource_list_at

    @property
    def has_gap(self) -> bool:
        """True if changes are missing that only another Resource List can supply."""
        return self.phase in {Phase.GAP, Phase.CUT_LIST}

    @property
    def open_lists(self) -> tuple[str, ...]:
        """URIs of the lists behind an index that may still grow."""
        if self.is_of_dump:  # a package grows only by being replaced, which the dump shows
            return ()
        lists = (done.uri for done in self.processed if done.until is None)
        return tuple(uri for uri in lists if uri != self.head)

    def start(self) -> ReadingStart:
        """Return where the reading of new changes starts."""
        return ReadingStart(
            checkpoint=self.checkpoint or 0,
            list_clock=self.list_clock or 0,
            resource_list_at=self.resource_list_at,
            head=self.head,
            processed=self.processed,
            open_lists=self.open_lists,
            last_changes=self.last_changes,
            is_resource_clock_ahead=self.is_resource_clock_ahead,
            window=self.window,
        )

    def beginning(self) -> ReadingStart:
        """Return where the reading of all changes starts, compared with what was processed."""
        return ReadingStart(
            checkpoint=0,
            list_clock=0,
            is_beginning=True,
            processed=self.processed,
            last_changes=self.last_changes,
            window=self.window,
        )

    def list_positions(self, at: int, *, vouched: bool = False) -> ListPositions:
        """Return the number of changes in each list when the Resource List of ``at`` was read."""
        is_known = self.positions_at == at
        return ListPositions(
            stored=self.positions if is_known else None,
            processed=self.processed,
            window=self.window,
            first_window=self.first_window if is_known else self.window,
            vouched=vouched,
        )

    def with_baseline_due(self) -> "Cursor":
        """Return the cursor whose next step is a baseline."""
        return self if self.is_incomplete else replace(self, phase=Phase.BASELINE_DUE)

    def after_move(self, *, is_correction: bool) -> "Cursor":
        """Return the cursor at a new address, where a list that is older proves no absence.

        After a move that was never complete, another Source may have said what else is known.
        """
        complete = self.complete_reading
        newest = max(self.moments, complete.moments, key=lambda moments: moments.at or 0)
        if newest != complete.moments:
            complete = CompleteReading(moments=newest)
        if not is_correction:
            return replace(self, complete_reading=complete).with_baseline_due()
        return Cursor(
            phase=Phase.ROLLED_BACK,
            complete_reading=complete,
            generation=self.generation,
            completed_generation=self.completed_generation,
        )

    def with_question(self) -> "Cursor":
        """Return the cursor after a contradiction that no answer of the Source decided.

        A baseline reads the lists again. Beside Change Lists without an interval it would take
        back what came since the Resource List: there only a newer one decides.
        """
        if self.window is None or self.is_incomplete:
            return self.with_baseline_due()
        return replace(self, phase=Phase.GAP)

    def repaired(self) -> "Cursor":
        """Return the cursor after a repair has acted on the lists of that moment."""
        return self if self.is_incomplete else replace(self, phase=Phase.REPAIRED)

    def after(self, history: "ChangeHistory") -> "Cursor":
        """Return the cursor behind what was read; its phase stays."""
        return replace(
            self,
            checkpoint=history.checkpoint,
            list_clock=history.list_clock,
            head=history.head,
            is_of_dump=history.is_of_dump or (history.is_unchanged_head and self.is_of_dump),
            processed=_frontier(history, self),
            last_changes=history.last_changes,
            is_resource_clock_ahead=history.is_resource_clock_ahead,
            window=self.window if history.is_unchanged_head else history.window,
        )


def _frontier(history: "ChangeHistory", cursor: Cursor) -> tuple[ProcessedDocument, ...]:
    records = [read.record for read in history.lists]
    if history.is_unchanged_head:  # only the open lists were requested
        read = {record.uri for record in records}
        records += [done for done in cursor.processed if done.uri not in read]
    grown = tuple(record for record in records if record.until is None)
    return grown or tuple(sorted(records, key=lambda done: done.until or done.from_)[-1:])


class Following(msgspec.Struct, frozen=True):
    """Verdict: the lists continue the processed changes."""


class Gap(msgspec.Struct, frozen=True):
    """Verdict: changes between the processed ones and the lists are missing."""


class Unproven(msgspec.Struct, frozen=True):
    """Verdict: a list without an interval does not prove that it continues the last one."""


class Rewritten(msgspec.Struct, frozen=True):
    """Verdict: nothing proves that the lists still have what was processed."""

    uri: str


class Stale(msgspec.Struct, frozen=True):
    """Verdict: the lists are complete to an earlier moment than the processed ones.

    They are old copies, or the Source was restored from an older state. ``reported`` is by the
    clock of the lists.
    """

    reported: int


Verdict = Following | Gap | Unproven | Rewritten | Stale


def judge(cursor: Cursor, history: "ChangeHistory") -> Verdict:
    """Return whether lists continue what was processed; what nothing proves leads to a baseline."""
    if history.is_older:
        return Stale(min(history.reported or 0, cursor.list_clock or 0))
    if history.window is not None:
        return Following() if history.is_continuous else Unproven()
    if not history.is_contiguous:
        return Gap()
    changed = [read.record for read in history.lists if not read.is_intact]
    changed += (read.record for read in history.news_before_processed)
    there = [done for done in cursor.processed if _continues(done, history)]
    newest = max((done.from_ or 0 for done in there), default=0)
    # What is gone was over if a list follows it (§12.2); some Sources end none of their lists.
    lost = [done for done in cursor.processed if done not in there and newest <= (done.from_ or 0)]
    if not (changed or lost):
        return Following() if cursor.processed or history.starts_in_time else Gap()
    if history.has_last_change and not changed and _is_replaced(cursor, history):
        return Following()
    known = cursor.list_clock or 0
    reported = max(history.reported or known, cursor.resource_list_at or 0)
    if reported < known:
        return Stale(reported)
    return Rewritten((changed + lost)[0].uri) if history.starts_in_time else Gap()


def stale_lists(uri: str, cursor: Cursor, reported: int) -> SourceUnavailableError:
    """Return the error for lists that report less than was processed."""
    return SourceUnavailableError(
        "the Change Lists have fewer changes than before (a stale copy)",
        uri=uri,
        evidence=(
            ("here", f"complete to {format_w3c(from_microseconds(cursor.checkpoint or 0))}"),
            ("got", f"changes to {format_w3c(from_microseconds(reported))}"),
            ("kept", "nothing was changed"),
        ),
        code="stale-copy",
        hint=f"run again; {RESTORED}",
    )


def is_followed(cursor: Cursor, history: "ChangeHistory") -> bool:
    """True if lists continue what was processed."""
    return isinstance(judge(cursor, history), Following)


def _continues(done: ProcessedDocument, history: "ChangeHistory") -> bool:
    now = next((read for read in history.lists if read.is_of(done)), None)
    if now is not None:
        return done.until is None or now.record.until == done.until
    if history.is_unchanged_head:  # only its open lists were requested
        return all(read.record.uri != done.uri for read in history.lists)
    return done.until is not None and any(read.record.from_ == done.until for read in history.lists)


def _is_replaced(cursor: Cursor, history: "ChangeHistory") -> bool:
    """One of several may have had changes that were not read; the last change was in another."""
    is_there = any(read.is_of(done) for read in history.lists for done in cursor.processed)
    return len(cursor.processed) == 1 and not is_there


def is_behind(cursor: Cursor, history: "ChangeHistory", now: int) -> bool:
    """True if changes since a Resource List report less than was processed: an old copy of lists.

    The clock of the lists is exact. T itself may be ahead of it, and changes of one moment that are
    read one by one each move T by a microsecond, which no list has.
    """
    is_less = history.list_clock < (cursor.list_clock or 0)
    return is_less or history.checkpoint < min(cursor.checkpoint or 0, now) - OVERLAP


def after_list(cursor: Cursor, history: "ChangeHistory", now: int) -> "ChangeHistory":
    """Return the changes since a Resource List, which report all that was processed."""
    if not history.reaches_back:
        return history
    if is_behind(cursor, history, now):
        raise stale_lists(history.head, cursor, history.checkpoint)
    return replace(history, checkpoint=max(history.checkpoint, cursor.checkpoint or 0))


def is_old_reading(cursor: Cursor, at: int | None, history: "ChangeHistory", now: int) -> bool:
    """True if changes since a Resource List may be those of an old copy of lists: they end no copy.

    Where lists do not reach back, the mirror waits for another Resource List anyway, so fewer
    changes than before are enough.
    """
    is_shorter = not history.reaches_back and _has_fewer(cursor, at, history)
    return is_shorter or is_behind(cursor, history, now)


def reported_beside(cursor: Cursor, at: int | None, history: "ChangeHistory") -> int:
    """Return the moment up to which changes since a Resource List report, by their clock.

    Beside the Resource List that was read before, a Change List with fewer changes than were
    processed is an old copy, though no time of a change shows it: it reports less than T. So does
    one that was rewritten: what it lost may have been a creation.
    """
    if cursor.is_withdrawn(at) or _has_fewer(cursor, at, history):
        return min(history.list_clock, (cursor.list_clock or 0) - 1)
    return history.list_clock


def _has_fewer(cursor: Cursor, at: int | None, history: "ChangeHistory") -> bool:
    if at is None or at != cursor.resource_list_at:
        return False
    before = {done.from_: done.entries for done in cursor.processed if done.from_}
    records = (read.record for read in history.lists)
    return any(record.entries < before.get(record.from_, 0) for record in records)
