"""Who is due: the mirrors, their timetables, and what failures and hints make of these.

Pure: it is told the time, and it says what is to be done. The intervals of failures and hints are
those of ADR 0055.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Final

from resourcesync.watch.times import Dice, Now, Timetable

FIRST_PAUSE: Final = 900.0
"""Seconds after the first failure of a Source until it is asked again; doubled by each further."""

LONGEST_PAUSE: Final = 86_400.0
HELD_PAUSE: Final = 60.0
"""Seconds until a mirror is tried again that another process holds."""

HINT_GAP: Final = 0.2
"""Seconds from the end of a pull to the next one that hints ask for."""

HINT_GAP_FAILING: Final = 60.0
HAND_ON_PAUSE: Final = 60.0
"""Seconds after the first failure of the next program; doubled by each further one, up to 1 h."""

_HAND_ON_LONGEST: Final = 3_600.0
_SPREAD: Final = 0.1


class Kind(StrEnum):
    """What may be done for a mirror."""

    PULL = "pull"
    AUDIT = "audit"
    HAND_ON = "hand on"


class Verdict(StrEnum):
    """How something ended, as far as it decides when it is tried again.

    ``DONE``: it came to an end of its own. ``FAILED``: it could not be done. ``HELD``: another
    process works on the mirror.
    """

    DONE = "done"
    FAILED = "failed"
    HELD = "held"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is wanted of one mirror.

    Attributes:
        pull: When it is pulled.
        audit: When it is audited; ``None`` for never.
        hands_on: Whether another program is told of its changes.
        takes_hints: Whether its Source may call for a pull.
    """

    pull: Timetable
    audit: Timetable | None = None
    hands_on: bool = False
    takes_hints: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What is known of a mirror when watching begins, by the clock on the wall.

    Attributes:
        pulled, audited: Seconds since 1970, UTC; ``None`` when never.
    """

    pulled: float | None = None
    audited: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """One thing to do for one mirror."""

    mirror: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an errand ended.

    Attributes:
        verdict: As far as the timetable goes.
        retry_after: Seconds that the Source asks to be left alone; 0 for none.
        changed: Whether the next program may have something to be told.
    """

    verdict: Verdict
    retry_after: float = 0.0
    changed: bool = False


_CALM: Final = {
    Verdict.DONE: HINT_GAP,
    Verdict.FAILED: HINT_GAP_FAILING,
    Verdict.HELD: HELD_PAUSE,
}
_NO_PAST: Final = Past()


@dataclass(slots=True)
class _Row:
    wanted: Wanted
    past: Past
    due: dict[Kind, float]
    began: dict[Kind, Now] = field(default_factory=dict)
    failures: dict[Kind, int] = field(default_factory=dict)
    running: set[Kind] = field(default_factory=set)
    hinted: bool = False
    calm: float = -inf

    def is_free(self, kind: Kind) -> bool:
        """Whether nothing stands in its way: one pull or audit at a time, one hand-over."""
        rivals = {kind} if kind is Kind.HAND_ON else {Kind.PULL, Kind.AUDIT}
        return not self.running & rivals


class Rota:
    """When what is done for which mirror.

    Args:
        dice: Spreads what would come all at once.
    """

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._rows: dict[str, _Row] = {}
        self._left: dict[str, set[Kind]] = {}

    def want(self, wanted: Mapping[str, Wanted], past: Mapping[str, Past], now: Now) -> None:
        """Take what is wanted from now on; mirrors that are not named are let go.

        What goes on goes on, even if its mirror is let go and named again meanwhile; and what
        failed keeps its pause.

        Args:
            wanted: By the names of the mirrors.
            past: What is known of those that are new here.
            now: The present moment.
        """
        rows = {}
        for name, wish in wanted.items():
            row = self._rows.get(name)
            if row is None:
                row = self._new(wish, past.get(name, _NO_PAST), now)
                row.running = self._left.pop(name, row.running)
            elif row.wanted != wish:
                row = self._changed(row, wish, now)
            rows[name] = row
        for name, row in self._rows.items():
            if name not in rows and row.running:
                self._left[name] = row.running
        self._rows = rows

    def _new(self, wish: Wanted, past: Past, now: Now) -> _Row:
        """Return a row; audits and hand-overs begin with the first pull, if there was none."""
        due = {Kind.PULL: self._first(wish.pull, past.pulled, now)}
        if wish.audit is not None:
            is_known = past.audited is not None
            due[Kind.AUDIT] = self._first(wish.audit, past.audited, now) if is_known else inf
        if wish.hands_on:
            due[Kind.HAND_ON] = inf if past.pulled is None else now.steady
        return _Row(wanted=wish, past=past, due=due)

    def _first(self, timetable: Timetable, last: float | None, now: Now) -> float:
        """Return when something is due for the first time; what is overdue is due at once."""
        if last is None:
            return now.steady
        gone = max(now.wall - last, 0.0)
        return timetable.next(Now(now.wall - gone, now.steady - gone), now, self._dice)

    def _changed(self, row: _Row, wish: Wanted, now: Now) -> _Row:
        fresh = self._new(wish, row.past, now)
        for kind in fresh.due:
            table = wish.audit if kind is Kind.AUDIT else wish.pull
            last = row.began.get(kind)
            if kind is Kind.HAND_ON or row.failures.get(kind):
                fresh.due[kind] = row.due.get(kind, now.steady)
            elif last is not None and table is not None:
                fresh.due[kind] = table.next(last, now, self._dice)
        fresh.began, fresh.failures, fresh.running = row.began, row.failures, row.running
        fresh.hinted, fresh.calm = row.hinted and wish.takes_hints, row.calm
        return fresh

    def reckon(self, now: Now) -> None:
        """Find out again when all is due, after somebody set the clock on the wall."""
        for row in self._rows.values():
            for kind in row.due.keys() - row.running - row.failures.keys():
                last = row.began.get(kind)
                table = row.wanted.audit if kind is Kind.AUDIT else row.wanted.pull
                if last is not None and table is not None and kind is not Kind.HAND_ON:
                    since = now.steady - last.steady
                    row.due[kind] = table.next(Now(now.wall - since, last.steady), now, self._dice)

    def begin(self, now: Now, room: int, room_to_tell: int) -> list[Errand]:
        """Return what is to be begun now, what waits longest first; it counts as running.

        Args:
            now: The present moment.
            room: How many pulls and audits more can be worked on.
            room_to_tell: How many other programs more can be told of changes; these may take as
                long as they like.
        """
        left = {True: room_to_tell, False: room}
        waiting = [
            (_moment(row, kind, due), name, kind)
            for name, row in self._rows.items()
            for kind, due in row.due.items()
            if row.is_free(kind) and _moment(row, kind, due) <= now.steady
        ]
        chosen: list[Errand] = []
        for _, name, kind in sorted(waiting):
            row = self._rows[name]
            if left[kind is Kind.HAND_ON] > 0 and row.is_free(kind):
                left[kind is Kind.HAND_ON] -= 1
                row.running.add(kind)
                row.began[kind] = now
                row.hinted = row.hinted and kind is not Kind.PULL
                if kind is Kind.HAND_ON:
                    row.due[kind] = inf
                chosen.append(Errand(mirror=name, kind=kind))
        return chosen

    def next_moment(self, *, work: bool = True, tell: bool = True) -> float:
        """Return when, by the steady clock, something is due; ``inf`` when only ends matter.

        Args:
            work: Whether pulls and audits count.
            tell: Whether it counts that other programs are told of changes.
        """
        return min(
            (
                _moment(row, kind, due)
                for row in self._rows.values()
                for kind, due in row.due.items()
                if row.is_free(kind) and (tell if kind is Kind.HAND_ON else work)
            ),
            default=inf,
        )

    def hint(self, mirror: str) -> bool:
        """Note that a Source says that something changed; return whether it is heeded."""
        row = self._rows.get(mirror)
        if row is None or not row.wanted.takes_hints:
            return False
        row.hinted = True
        return True

    def ended(self, errand: Errand, how: Ended, now: Now) -> float:
        """Note how an errand ended.

        Returns:
            When, by the steady clock, it is due again; ``inf`` when that is open.
        """
        row = self._rows.get(errand.mirror)
        if row is None:
            left = self._left.get(errand.mirror, set())
            left.discard(errand.kind)
            if not left:
                self._left.pop(errand.mirror, None)
            return inf
        kind = errand.kind
        row.running.discard(kind)
        if kind not in row.due:
            return inf
        if how.verdict is Verdict.FAILED:
            row.failures[kind] = row.failures.get(kind, 0) + 1
        elif how.verdict is Verdict.DONE:
            row.failures.pop(kind, None)
        row.due[kind] = max(self._again(row, kind, how, now), now.steady + how.retry_after)
        if kind is Kind.PULL:
            row.calm = now.steady + max(_CALM[how.verdict], how.retry_after)
            self._first_audit(row, how, now)
        if how.changed and Kind.HAND_ON in row.due and not row.failures.get(Kind.HAND_ON):
            row.due[Kind.HAND_ON] = now.steady
        return row.due[kind]

    def _first_audit(self, row: _Row, how: Ended, now: Now) -> None:
        """Let the first audit of a mirror follow its first pull."""
        is_first = Kind.AUDIT not in row.began and row.due.get(Kind.AUDIT) == inf
        if is_first and how.verdict is Verdict.DONE:
            row.due[Kind.AUDIT] = now.steady

    def _again(self, row: _Row, kind: Kind, how: Ended, now: Now) -> float:
        if how.verdict is Verdict.HELD:
            return now.steady + HELD_PAUSE
        first, longest = FIRST_PAUSE, LONGEST_PAUSE
        if kind is Kind.HAND_ON:
            first, longest = HAND_ON_PAUSE, _HAND_ON_LONGEST
        if how.verdict is Verdict.FAILED:
            pause = min(first * 2.0 ** min(row.failures[kind] - 1, 30), longest)
            return now.steady + pause * self._dice.uniform(1.0, 1.0 + _SPREAD)
        if kind is Kind.HAND_ON:
            return row.due[kind]  # what came meanwhile
        table = row.wanted.audit if kind is Kind.AUDIT else row.wanted.pull
        return inf if table is None else table.next(row.began.get(kind, now), now, self._dice)

    def failures(self, mirror: str, kind: Kind) -> int:
        """Return how many times in a row something failed."""
        row = self._rows.get(mirror)
        return 0 if row is None else row.failures.get(kind, 0)

    def running(self, mirror: str) -> frozenset[Kind]:
        """Return what is being done for a mirror."""
        row = self._rows.get(mirror)
        return frozenset() if row is None else frozenset(row.running)


def _moment(row: _Row, kind: Kind, due: float) -> float:
    """Return when something is to be begun, a hint counted in."""
    return min(due, row.calm) if kind is Kind.PULL and row.hinted else due
