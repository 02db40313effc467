"""When something is to be done again: every so often, or by the clock on the wall.

Who is due: the mirrors, their timetables, and what failures and hints make of these.

Pure: it is told the time, and it says what is to be done. The intervals of failures and hints are
those of ADR 0055.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from math import inf
from typing import Final, NamedTuple, Protocol
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from resourcesync.errors import ConfigurationError

MAX_JITTER_SHARE: Final = 0.1
"""The part of an interval by which it may be longer: mirrors do not ask all at once."""

_MAX_JITTER_SECONDS: Final = 300.0
_FIELDS: Final = 5


class Now(NamedTuple):
    """A moment by both clocks.

    Attributes:
        wall: Seconds since 1970, UTC; somebody may set this clock.
        steady: Seconds that never go back; all that is due is counted in them.
    """

    wall: float
    steady: float


class Jitter(Protocol):
    """What spreads things, such as ``random.Random``."""

    def uniform(self, a: float, b: float) -> float:
        """Return any number from ``a`` to ``b``."""
        ...


class Timetable(Protocol):
    """Says when something is due again."""

    def next_due(self, last: Now, now: Now, dice: Jitter) -> float:
        """Return the moment, by the steady clock, from which it is due again.

        Args:
            last: When it was last begun.
            now: The present moment, not before ``last``.
            dice: Spreads what would come all at once.
        """
        ...


@dataclass(frozen=True, slots=True)
class Every:
    """Again so many seconds after it was last begun, and a little later than that.

    Attributes:
        seconds: The interval.
    """

    seconds: float

    def next_due(self, last: Now, now: Now, dice: Jitter) -> float:
        """Return the moment; at once when it is long past (``Timetable``)."""
        spread = min(self.seconds * MAX_JITTER_SHARE, _MAX_JITTER_SECONDS)
        return max(last.steady + self.seconds, now.steady) + dice.uniform(0, spread)


@dataclass(frozen=True)
class Cron:
    """At the minutes that a line of ``crontab`` names, such as ``5 2 * * *``.

    Attributes:
        line: Five fields, and the name of a time zone when it is not UTC, such as
            ``5 2 * * * Europe/Vienna``. Around a change of the clock it does as Debian's cron does.

    Raises:
        ConfigurationError: The line makes no sense.
    """

    line: str
    _zone: tzinfo = field(init=False, repr=False, compare=False)
    _fields: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = self.line.split()
        zone = " ".join(parts[_FIELDS:])
        object.__setattr__(self, "_fields", " ".join(parts[:_FIELDS]))
        object.__setattr__(self, "_zone", _zone_of(zone) if zone else UTC)
        self._after(datetime(2026, 1, 1, tzinfo=UTC))

    def next_due(self, last: Now, now: Now, dice: Jitter) -> float:
        """Return the moment (``Timetable``); what was missed while nobody watched is due now."""
        due = self._after(datetime.fromtimestamp(last.wall, UTC)).timestamp()
        following = self._after(datetime.fromtimestamp(now.wall, UTC)).timestamp()
        wait = max(min(due, following) - now.wall, 0.0)
        return now.steady + wait + dice.uniform(0, 10.0)

    def _after(self, moment: datetime) -> datetime:
        try:
            return next(CronSim(self._fields, moment.astimezone(self._zone)))
        except (CronSimError, StopIteration) as error:
            raise ConfigurationError(
                f"{self.line!r} is no line of crontab",
                evidence=(("got", str(error) or "no such day"),),
                hint="write five fields: minute hour day month weekday, such as 5 2 * * *",
            ) from error


def _zone_of(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:  # not there, or no name at all
        raise ConfigurationError(
            f"there is no time zone {name!r}",
            hint="name one such as Europe/Vienna, or none for UTC",
        ) from error


FIRST_PAUSE: Final = 60.0
"""Most seconds from the first failure to the next try."""

LONGEST_PAUSE: Final = 86_400.0
PULL_TURN: Final = 600.0
"""Seconds that a pull may take while others wait for its place; doubled each time it stops."""

_MOST_DOUBLINGS: Final = 7
LOCKED_PAUSE: Final = 60.0
"""Seconds until a mirror is tried again that another process holds."""

HINT_GAP: Final = 0.2
"""Seconds from the end of a pull to the next one that hints ask for."""

HINT_GAP_FAILING: Final = 60.0
_LONGEST_HAND_OVER_PAUSE: Final = 3_600.0
_SPREAD: Final = 0.1


def retry_pause(failures: int, every: float, longest: float = LONGEST_PAUSE) -> float:
    """Return the seconds from a failure to the next try.

    Args:
        failures: How many times in a row it failed, at least 1: each further one doubles the pause.
        every: Seconds between two tries when all is well; a first retry comes no later.
        longest: Most seconds.
    """
    return min(min(FIRST_PAUSE, every) * 2.0 ** min(failures - 1, 30), longest)


class JobKind(StrEnum):
    """What may be done for a mirror."""

    PULL = "pull"
    AUDIT = "audit"
    HAND_OVER = "hand on"


class JobStatus(StrEnum):
    """How something ended, as far as it decides when it is tried again.

    ``DONE``: it came to an end of its own. ``FAILED``: it could not be done. ``HELD``: another
    process works on the mirror. ``CUT``: it was asked to stop, and goes on from there.
    """

    DONE = "done"
    FAILED = "failed"
    LOCKED = "held"
    PREEMPTED = "cut"


class PullReason(StrEnum):
    """Why a mirror is pulled when it is."""

    SCHEDULED = "scheduled"
    RETRY = "retry"
    RETRY_AFTER = "asked to wait"
    LOCKED = "locked"
    NOTIFIED = "notified"
    PREEMPTED = "others first"
    RUNNING = "running"


class PlannedPull(NamedTuple):
    """The next pull of a mirror.

    Attributes:
        due: When, by the steady clock; ``inf`` when that is open.
        why: Why then.
        failures: How many times in a row it failed.
    """

    due: float
    reason: PullReason
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSchedule:
    """What is wanted of one mirror.

    Attributes:
        pull: When it is pulled.
        audit: When it is audited; ``None`` for never.
        hands_on: Whether another program is told of its changes.
        takes_hints: Whether its Source may call for a pull.
    """

    pull: Timetable
    audit: Timetable | None = None
    hands_over: bool = False
    accepts_hints: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorHistory:
    """What is known of a mirror when watching begins, by the clock on the wall.

    Attributes:
        pulled, audited: Seconds since 1970, UTC; ``None`` when never.
    """

    pulled: float | None = None
    audited: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorJob:
    """One thing to do for one mirror."""

    mirror: str
    kind: JobKind


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """How an errand ended.

    Attributes:
        verdict: As far as the timetable goes.
        retry_after: Seconds that the Source asks to be left alone; 0 for none.
        changed: Whether the next program may have something to be told.
    """

    status: JobStatus
    retry_after: float = 0.0
    changed: bool = False


_HINT_PAUSES: Final = {
    JobStatus.DONE: HINT_GAP,
    JobStatus.FAILED: HINT_GAP_FAILING,
    JobStatus.LOCKED: LOCKED_PAUSE,
    JobStatus.PREEMPTED: HINT_GAP,
}
_REASONS: Final = {
    JobStatus.DONE: PullReason.SCHEDULED,
    JobStatus.FAILED: PullReason.RETRY,
    JobStatus.LOCKED: PullReason.LOCKED,
    JobStatus.PREEMPTED: PullReason.PREEMPTED,
}
_NO_HISTORY: Final = MirrorHistory()


@dataclass(slots=True)
class _ScheduleRow:
    schedule: MirrorSchedule
    history: MirrorHistory
    due: dict[JobKind, float]
    began: dict[JobKind, Now] = field(default_factory=dict)
    failures: dict[JobKind, int] = field(default_factory=dict)
    running: set[JobKind] = field(default_factory=set)
    hinted: bool = False
    hints_from: float = -inf
    retry_from: float = -inf
    reason: PullReason = PullReason.SCHEDULED
    failed: float = -inf
    preemptions: int = 0
    is_stopping: bool = False

    @property
    def turn_ends(self) -> float:
        """When its pull has had its turn, by the steady clock."""
        if JobKind.PULL not in self.running or JobKind.PULL not in self.began:
            return inf
        return self.began[JobKind.PULL].steady + PULL_TURN * 2.0 ** min(
            self.preemptions, _MOST_DOUBLINGS
        )

    def is_free(self, kind: JobKind) -> bool:
        """Whether nothing stands in its way: one pull or audit at a time, one hand-over."""
        rivals = {kind} if kind is JobKind.HAND_OVER else {JobKind.PULL, JobKind.AUDIT}
        return not self.running & rivals


class Scheduler:
    """When what is done for which mirror.

    Args:
        dice: Spreads what would come all at once.
    """

    def __init__(self, dice: Jitter) -> None:
        self._dice = dice
        self._rows: dict[str, _ScheduleRow] = {}
        self._left: dict[str, set[JobKind]] = {}
        self._blocked = 0
        self._is_long_full = False

    def configure(
        self, wanted: Mapping[str, MirrorSchedule], past: Mapping[str, MirrorHistory], now: Now
    ) -> None:
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
                row = self._new(wish, past.get(name, _NO_HISTORY), now)
                row.running = self._left.pop(name, row.running)
            elif row.schedule != wish:
                row = self._changed(row, wish, now)
            rows[name] = row
        for name, row in self._rows.items():
            if name not in rows and row.running:
                self._left[name] = row.running
        self._rows = rows

    def _new(self, wish: MirrorSchedule, past: MirrorHistory, now: Now) -> _ScheduleRow:
        """Return a row; audits and hand-overs begin with the first pull, if there was none."""
        due = {JobKind.PULL: self._first(wish.pull, past.pulled, now)}
        if wish.audit is not None:
            is_known = past.audited is not None
            due[JobKind.AUDIT] = self._first(wish.audit, past.audited, now) if is_known else inf
        if wish.hands_over:
            due[JobKind.HAND_OVER] = inf if past.pulled is None else now.steady
        return _ScheduleRow(schedule=wish, history=past, due=due)

    def _first(self, timetable: Timetable, last: float | None, now: Now) -> float:
        """Return when something is due for the first time; what is overdue is due at once."""
        if last is None:
            return now.steady
        gone = max(now.wall - last, 0.0)
        return timetable.next_due(Now(now.wall - gone, now.steady - gone), now, self._dice)

    def _changed(self, row: _ScheduleRow, wish: MirrorSchedule, now: Now) -> _ScheduleRow:
        fresh = self._new(wish, row.history, now)
        for kind in fresh.due:
            table = wish.audit if kind is JobKind.AUDIT else wish.pull
            last = row.began.get(kind)
            if kind is JobKind.HAND_OVER or row.failures.get(kind):
                fresh.due[kind] = row.due.get(kind, now.steady)
            elif last is not None and table is not None:
                fresh.due[kind] = table.next_due(last, now, self._dice)
        return replace(row, schedule=wish, due=fresh.due, hinted=row.hinted and wish.accepts_hints)

    def recompute(self, now: Now) -> None:
        """Find out again when all is due, after somebody set the clock on the wall."""
        for row in self._rows.values():
            for kind in row.due.keys() - row.running - row.failures.keys():
                last = row.began.get(kind)
                table = row.schedule.audit if kind is JobKind.AUDIT else row.schedule.pull
                if last is not None and table is not None and kind is not JobKind.HAND_OVER:
                    since = now.steady - last.steady
                    row.due[kind] = table.next_due(
                        Now(now.wall - since, last.steady), now, self._dice
                    )

    def retry(self, now: Now) -> None:
        """End all pauses after failures, but where a Source asked to be left alone."""
        for row in self._rows.values():
            for kind in row.failures:
                if kind in row.due and kind not in row.running:
                    row.due[kind] = max(
                        now.steady, row.retry_from if kind is JobKind.PULL else -inf
                    )
            row.failures = {}

    def failing(self) -> dict[str, float]:
        """Return the mirrors that wait after a failed pull, and when it ended, by the wall."""
        return {
            name: row.failed
            for name, row in self._rows.items()
            if row.failures.get(JobKind.PULL) and JobKind.PULL not in row.running
        }

    def record_pull(self, mirror: str, wall: float, now: Now) -> None:
        """Take note that another program pulled a mirror: its pause after a failure is over."""
        row = self._rows.get(mirror)
        if row is not None and row.failures.pop(JobKind.PULL, 0):
            row.due[JobKind.PULL] = max(self._first(row.schedule.pull, wall, now), row.retry_from)
            row.reason = PullReason.SCHEDULED

    def next_pull(self, mirror: str) -> PlannedPull | None:
        """Return when a mirror is pulled next, and why then; ``None`` for no mirror of ours."""
        row = self._rows.get(mirror)
        if row is None:
            return None
        failures = row.failures.get(JobKind.PULL, 0)
        if JobKind.PULL in row.running:
            return PlannedPull(inf, PullReason.RUNNING, failures)
        due = row.due[JobKind.PULL]
        moment = _begin_moment(row, JobKind.PULL, due)
        return PlannedPull(moment, row.reason if moment == due else PullReason.NOTIFIED, failures)

    def preempt(self, now: Now, room: int) -> list[str]:
        """Return the mirrors whose pulls are to stop, since others wait for their places.

        Args:
            now: The present moment.
            room: How many pulls and audits more can be worked on.
        """
        stopping = sum(row.is_stopping for row in self._rows.values())
        over = sorted(
            (row.turn_ends, name)
            for name, row in self._rows.items()
            if row.turn_ends <= now.steady and not row.is_stopping and (row.preemptions or not room)
        )
        chosen = [name for _, name in over[: max(self._blocked - stopping, 0)]]
        for name in chosen:
            self._rows[name].is_stopping = True
        return chosen

    def begin(self, now: Now, room: int, room_to_tell: int) -> list[MirrorJob]:
        """Return what is to be begun now, what waits longest first; it counts as running.

        Pulls that had to stop for others take all places but one: who is quick always has a place.

        Args:
            now: The present moment.
            room: How many pulls and audits more can be worked on.
            room_to_tell: How many other programs more can be told of changes; these may take as
                long as they like.
        """
        left = {True: room_to_tell, False: room}
        busy = [row.running for row in self._rows.values()] + list(self._left.values())
        places = room + sum(len(item - {JobKind.HAND_OVER}) for item in busy)
        chosen: list[MirrorJob] = []
        self._blocked = 0
        for _, name, kind in self._waiting(now):
            row = self._rows[name]
            is_telling = kind is JobKind.HAND_OVER
            self._is_long_full = self._count_preempted() >= max(places - 1, 1)
            if not row.is_free(kind):
                continue
            if left[is_telling] <= 0 or self._must_wait(row, kind):
                self._blocked += not is_telling
                continue
            left[is_telling] -= 1
            self._start(row, kind, now)
            chosen.append(MirrorJob(mirror=name, kind=kind))
        self._is_long_full = self._count_preempted() >= max(places - 1, 1)
        return chosen

    def _waiting(self, now: Now) -> list[tuple[float, str, JobKind]]:
        """Return what is due, what waits longest first."""
        return sorted(
            (_begin_moment(row, kind, due), name, kind)
            for name, row in self._rows.items()
            for kind, due in row.due.items()
            if row.is_free(kind) and _begin_moment(row, kind, due) <= now.steady
        )

    def _start(self, row: _ScheduleRow, kind: JobKind, now: Now) -> None:
        row.running.add(kind)
        row.began[kind] = now
        row.hinted = row.hinted and kind is not JobKind.PULL
        if kind is JobKind.HAND_OVER:
            row.due[kind] = inf

    def _count_preempted(self) -> int:
        """Return how many pulls go on that had to stop for others before."""
        return sum(
            row.preemptions > 0 and JobKind.PULL in row.running for row in self._rows.values()
        )

    def _must_wait(self, row: _ScheduleRow, kind: JobKind) -> bool:
        return self._is_long_full and kind is JobKind.PULL and row.preemptions > 0

    def next_moment(self, *, work: bool = True, tell: bool = True) -> float:
        """Return when, by the steady clock, something is due; ``inf`` when only ends matter.

        Args:
            work: Whether pulls and audits count.
            tell: Whether it counts that other programs are told of changes.
        """
        return min(
            (
                _begin_moment(row, kind, due)
                for row in self._rows.values()
                for kind, due in row.due.items()
                if row.is_free(kind) and (tell if kind is JobKind.HAND_OVER else work)
                if not self._must_wait(row, kind)
            ),
            default=inf,
        )

    def hint(self, mirror: str) -> bool:
        """Note that a Source says that something changed; return whether it is heeded."""
        row = self._rows.get(mirror)
        if row is None or not row.schedule.accepts_hints:
            return False
        row.hinted = True
        return True

    def record_end(self, errand: MirrorJob, how: JobOutcome, now: Now) -> float:
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
        if how.status is JobStatus.FAILED:
            row.failures[kind] = row.failures.get(kind, 0) + 1
        elif how.status is JobStatus.DONE:
            row.failures.pop(kind, None)
        row.due[kind] = max(self._next_due(row, kind, how, now), now.steady + how.retry_after)
        if kind is JobKind.PULL:
            self._record_pull_end(row, how, now)
        if how.changed:
            self._schedule_hand_over(row, now)
        return row.due[kind]

    def _schedule_hand_over(self, row: _ScheduleRow, now: Now) -> None:
        """Let changes be handed on now, or after what goes on; what failed keeps its pause."""
        is_paused = row.failures.get(JobKind.HAND_OVER) and JobKind.HAND_OVER not in row.running
        if JobKind.HAND_OVER in row.due and not is_paused:
            row.due[JobKind.HAND_OVER] = now.steady

    def _record_pull_end(self, row: _ScheduleRow, how: JobOutcome, now: Now) -> None:
        """Note why it is pulled next; the first audit of a mirror follows its first pull."""
        row.hints_from = now.steady + max(_HINT_PAUSES[how.status], how.retry_after)
        row.retry_from = now.steady + how.retry_after
        row.reason = (
            PullReason.RETRY_AFTER
            if row.due[JobKind.PULL] == row.retry_from
            else _REASONS[how.status]
        )
        row.failed = now.wall
        row.is_stopping = False
        row.preemptions = row.preemptions + 1 if how.status is JobStatus.PREEMPTED else 0
        is_first = JobKind.AUDIT not in row.began and row.due.get(JobKind.AUDIT) == inf
        if is_first and how.status is JobStatus.DONE:
            row.due[JobKind.AUDIT] = now.steady

    def _next_due(self, row: _ScheduleRow, kind: JobKind, how: JobOutcome, now: Now) -> float:
        table = row.schedule.audit if kind is JobKind.AUDIT else row.schedule.pull
        if how.status is JobStatus.LOCKED:
            return now.steady + LOCKED_PAUSE
        if how.status is JobStatus.PREEMPTED:
            return now.steady
        if how.status is JobStatus.FAILED:
            is_told = kind is JobKind.HAND_OVER
            every = table.seconds if isinstance(table, Every) and not is_told else inf
            longest = _LONGEST_HAND_OVER_PAUSE if is_told else LONGEST_PAUSE
            pause = retry_pause(row.failures[kind], every, longest)
            return now.steady + pause * self._dice.uniform(1.0 - _SPREAD, 1.0)
        if kind is JobKind.HAND_OVER:
            return row.due[kind]  # what came meanwhile
        return inf if table is None else table.next_due(row.began.get(kind, now), now, self._dice)

    def failures(self, mirror: str, kind: JobKind) -> int:
        """Return how many times in a row something failed."""
        row = self._rows.get(mirror)
        return 0 if row is None else row.failures.get(kind, 0)

    def running(self, mirror: str) -> frozenset[JobKind]:
        """Return what is being done for a mirror."""
        row = self._rows.get(mirror)
        return frozenset() if row is None else frozenset(row.running)


def _begin_moment(row: _ScheduleRow, kind: JobKind, due: float) -> float:
    """Return when something is to be begun, a hint counted in."""
    return min(due, row.hints_from) if kind is JobKind.PULL and row.hinted else due
