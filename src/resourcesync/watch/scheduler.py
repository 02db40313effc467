"""The scheduler: due jobs of the mirrors, by their timetables, failures, hints and turns.

Pure: time comes in, jobs go out. The intervals after failures and hints are those of ADR 0055.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from functools import cached_property
from math import inf
from typing import Final, NamedTuple, Protocol
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError

from resourcesync.errors import ConfigurationError

MAX_JITTER_SHARE: Final = 0.1
"""Greatest random extension of an interval, as a share: it spreads the requests of mirrors."""

_MAX_JITTER_SECONDS: Final = 300.0
_FIELDS: Final = 5
_ANY_YEAR: Final = datetime(2026, 1, 1, tzinfo=UTC)


class Now(NamedTuple):
    """A moment in seconds by the wall clock, and by the steady one, in which all is due."""

    wall: float
    steady: float


class Jitter(Protocol):
    """A source of random delays, such as ``random.Random``."""

    def uniform(self, a: float, b: float) -> float:
        """Return any number from ``a`` to ``b``."""


class Every(msgspec.Struct, frozen=True):
    """A fixed interval after the last start, with a random extension."""

    seconds: float

    def next_due(self, last: float, now: Now, dice: Jitter) -> float:
        """Return the moment, at once when it is long past; all by the steady clock."""
        spread = min(self.seconds * MAX_JITTER_SHARE, _MAX_JITTER_SECONDS)
        return max(last + self.seconds, now.steady) + dice.uniform(0, spread)


class Cron(msgspec.Struct, frozen=True, dict=True):
    """At the minutes that a line of ``crontab`` names, such as ``5 2 * * * Europe/Vienna``.

    Without a time zone it is UTC. Around a change of the clock it does as Debian's cron does.
    """

    line: str

    def __post_init__(self) -> None:
        self._after(_ANY_YEAR)

    @cached_property
    def _zone(self) -> tzinfo:
        name = " ".join(self.line.split()[_FIELDS:])
        try:
            return ZoneInfo(name) if name else UTC
        except (ValueError, OSError, LookupError) as error:  # missing, or not a valid name
            raise ConfigurationError(
                f"there is no time zone {name!r}",
                hint="name one such as Europe/Vienna, or none for UTC",
            ) from error

    def next_due(self, last: float, now: Now, dice: Jitter) -> float:
        """Return the moment by the steady clock; a time missed while not running is due now."""
        since = now.wall - max(now.steady - last, 0.0)
        due = self._after(datetime.fromtimestamp(since, UTC)).timestamp()
        return now.steady + max(due - now.wall, 0.0) + dice.uniform(0, 10.0)

    @property
    def longest_wait(self) -> int:
        """The most days, begun ones counted, from a midnight to the next of its times."""
        nights = (_ANY_YEAR + timedelta(days=number) for number in range(366))
        return 1 + max((self._after(night) - night).days for night in nights)

    def _after(self, moment: datetime) -> datetime:
        try:
            times = " ".join(self.line.split()[:_FIELDS])
            return next(CronSim(times, moment.astimezone(self._zone)))
        except (CronSimError, StopIteration) as error:
            raise ConfigurationError(
                f"{self.line!r} is not a crontab line",
                evidence=(("got", str(error) or "no such day"),),
                hint="write five fields: minute hour day month weekday, such as 5 2 * * *",
            ) from error


Timetable = Every | Cron


FIRST_PAUSE: Final = 60.0
"""Most seconds from the first failure to the next try."""

LONGEST_PAUSE: Final = 86_400.0
"""Most seconds between two tries of a mirror that is pulled as rarely."""

LONGEST_OFTEN: Final = 3_600.0
"""The same of a mirror that is pulled more often: an outage ends so much later for it at most."""

PULL_TURN: Final = 600.0
"""Seconds of a pull while others wait for a worker; doubled each time it is interrupted."""

_MOST_DOUBLINGS: Final = 7
LOCKED_PAUSE: Final = 60.0
"""Seconds to the next try of a mirror that another process has locked."""

HINT_GAP: Final = 0.2
"""Seconds from the end of a pull to the next one that hints ask for."""

HINT_GAP_FAILING: Final = 60.0
_SPREAD: Final = 0.1


def retry_pause(failures: int, every: float) -> float:
    """Return the seconds from a failure to the next try."""
    most = min(max(every, LONGEST_OFTEN), LONGEST_PAUSE)
    return min(min(FIRST_PAUSE, every) * 2.0 ** min(failures - 1, 30), most)


class JobKind(StrEnum):
    """The kinds of jobs of a mirror."""

    PULL = "pull"
    AUDIT = "audit"
    HAND_OVER = "hand on"


class JobStatus(StrEnum):
    """The outcome of a job, as far as the next try depends on it.

    ``DONE``: it completed. ``FAILED``: it failed. ``HELD``: another process has locked the
    mirror. ``CUT``: it was asked to stop, and resumes from there.
    """

    DONE = "done"
    FAILED = "failed"
    LOCKED = "held"
    PREEMPTED = "cut"


class PullReason(StrEnum):
    """The reasons for a pull."""

    SCHEDULED = "scheduled"
    RETRY = "retry"
    RETRY_AFTER = "asked to wait"
    LOCKED = "locked"
    NOTIFIED = "notified"
    PREEMPTED = "others first"
    REQUESTED = "requested"
    PAUSED = "paused"
    RUNNING = "running"


class NextPull(NamedTuple):
    """The next pull of a mirror, in seconds since 1970, UTC (``None`` if unknown), and why then."""

    time: float | None
    reason: PullReason
    failures: int
    is_paused: bool = False


class MirrorSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """The configured schedule of one mirror; another program gets its changes if ``hands_over``.

    Of the mirrors of one ``host`` one works at a time: all limits of requests are of that host.
    """

    pull: Timetable
    audit: Timetable | None = None
    hands_over: bool = False
    accepts_hints: bool = False
    host: str = ""


class MirrorHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The last runs of a mirror, by the wall clock; ``None`` for never.

    The Source asked to wait until ``wait_until``. Whether it ``is_paused`` is not known (``None``)
    while its disk is away.
    """

    pulled: float | None = None
    audited: float | None = None
    has_failed: bool = False
    wait_until: float = 0.0
    is_paused: bool | None = None


class MirrorJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job for one mirror."""

    mirror: str
    kind: JobKind


class JobOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a job: ``retry_after`` are seconds that the Source asks to wait."""

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


class _ScheduleRow(msgspec.Struct):
    schedule: MirrorSchedule
    began: dict[JobKind, float]
    due: dict[JobKind, float] = msgspec.field(default_factory=dict)
    failures: dict[JobKind, int] = msgspec.field(default_factory=dict)
    running: set[JobKind] = msgspec.field(default_factory=set)
    hinted: bool = False
    is_paused: bool = False
    requested_at: float = inf
    hints_from: float = -inf
    retry_from: float = -inf
    reason: PullReason = PullReason.SCHEDULED
    preemptions: int = 0
    is_stopping: bool = False

    @property
    def turn_ends(self) -> float:
        if JobKind.PULL not in self.running:
            return inf
        doublings = min(self.preemptions, _MOST_DOUBLINGS)
        return self.began.get(JobKind.PULL, inf) + PULL_TURN * 2.0**doublings

    def table(self, kind: JobKind) -> Timetable | None:
        """The timetable of a kind of jobs; a hand-over has that of pulls."""
        return self.schedule.audit if kind is JobKind.AUDIT else self.schedule.pull

    def is_wanted(self, kind: JobKind) -> bool:
        if kind is JobKind.HAND_OVER:
            return self.schedule.hands_over
        return self.table(kind) is not None

    def is_free(self, kind: JobKind) -> bool:
        """True if nothing blocks it: one pull or audit at a time, one hand-over."""
        rivals = {kind} if kind is JobKind.HAND_OVER else {JobKind.PULL, JobKind.AUDIT}
        return not self.running & rivals


class Scheduler:
    """Decides which job of which mirror is due."""

    def __init__(self, dice: Jitter) -> None:
        self._dice = dice
        self._rows: dict[str, _ScheduleRow] = {}
        self._left: dict[str, set[JobKind]] = {}
        self._blocked = 0
        self._crowded: set[str] = set()
        self._is_long_full = False

    def configure(
        self, wanted: Mapping[str, MirrorSchedule], past: Mapping[str, MirrorHistory], now: Now
    ) -> None:
        """Replace the schedules; mirrors that are not named are removed.

        Running jobs continue, even if their mirror is removed and named again meanwhile; a pause
        after a failure stays.
        """
        rows = {}
        for name, schedule in wanted.items():
            row = self._rows.get(name)
            if row is None:
                row = _ScheduleRow(schedule, _began(known := past.get(name, MirrorHistory()), now))
                if known.pulled is None and known.wait_until > now.wall:  # a killed one waits, too
                    row.due[JobKind.PULL] = now.steady + known.wait_until - now.wall
                    row.reason = PullReason.RETRY_AFTER
                self._plan(row, now)
                row.running = self._left.pop(name, row.running)
            elif row.schedule != schedule:
                row.schedule = schedule
                row.hinted = row.hinted and schedule.accepts_hints
                self._plan(row, now)
            rows[name] = row
        for name, row in self._rows.items():
            if name not in rows and row.running:
                self._left[name] = row.running
        self._rows = rows
        for name in rows:
            self.record_external_pull(name, past.get(name, MirrorHistory()), now)

    def recompute(self, now: Now) -> None:
        """Compute all times again, after the wall clock was set."""
        for row in self._rows.values():
            self._plan(row, now)

    def _plan(self, row: _ScheduleRow, now: Now) -> None:
        row.due = {kind: due for kind, due in row.due.items() if row.is_wanted(kind)}
        for kind in filter(row.is_wanted, JobKind):
            last, table = row.began.get(kind), row.table(kind)
            is_set = kind in row.due and (kind in row.running or kind in row.failures)
            if kind is JobKind.HAND_OVER:
                row.due.setdefault(kind, now.steady if JobKind.PULL in row.began else inf)
            elif last is None:
                row.due.setdefault(kind, now.steady if kind is JobKind.PULL else inf)
            elif table is not None and not is_set:
                row.due[kind] = table.next_due(last, now, self._dice)

    def retry(self, now: Now) -> None:
        """End all pauses after failures, except those that a Source asked for."""
        for row in self._rows.values():
            for kind in row.failures:
                if kind in row.due and kind not in row.running:
                    row.due[kind] = max(
                        now.steady, row.retry_from if kind is JobKind.PULL else -inf
                    )
            row.failures = {}

    def failing(self) -> list[str]:
        """Return the mirrors that wait after a failed pull."""
        return [
            name
            for name, row in self._rows.items()
            if JobKind.PULL in row.failures and JobKind.PULL not in row.running
        ]

    def record_external_pull(self, mirror: str, past: MirrorHistory, now: Now) -> None:
        """Record a failed pull of another process, or of an earlier service, as one of ours."""
        row = self._rows[mirror]
        if past.is_paused is not None:
            row.is_paused = past.is_paused
        is_known = past.has_failed is (JobKind.PULL in row.failures)
        if past.pulled is None or is_known or JobKind.PULL in row.running:
            return
        pulled = _began(past, now)[JobKind.PULL]
        if pulled < row.began.get(JobKind.PULL, -inf):
            return
        if past.has_failed:
            wait = max(past.wait_until - past.pulled, 0.0)
            failed = JobOutcome(status=JobStatus.FAILED, retry_after=wait)
            job = MirrorJob(mirror=mirror, kind=JobKind.PULL)
            self.record_end(job, failed, Now(past.pulled, pulled))
            return
        del row.failures[JobKind.PULL]
        row.began[JobKind.PULL], row.reason = pulled, PullReason.SCHEDULED
        row.due[JobKind.PULL] = row.schedule.pull.next_due(pulled, now, self._dice)
        self._schedule_hand_over(row, now)

    def pause(self, mirror: str, *, is_paused: bool) -> None:
        """Start no pull and no audit of a mirror, or resume it."""
        if mirror in self._rows:
            self._rows[mirror].is_paused = is_paused

    def pull_now(self, mirror: str, now: Now) -> None:
        """Make a mirror due now, also if it waits after a failure, or is paused."""
        row = self._rows.get(mirror)
        if row is not None:
            row.requested_at = now.steady

    def next_pull(self, mirror: str, ahead: float) -> NextPull | None:
        """Return the next pull of a mirror; ``None`` for an unknown one."""
        row = self._rows.get(mirror)
        if row is None:
            return None
        failures = row.failures.get(JobKind.PULL, 0)
        if JobKind.PULL in row.running:
            return NextPull(None, PullReason.RUNNING, failures, row.is_paused)
        due = row.due[JobKind.PULL]
        moment = _begin_moment(row, JobKind.PULL, due)
        reason = row.reason if moment == due else PullReason.NOTIFIED
        if row.is_paused:
            reason = PullReason.PAUSED
        if row.requested_at <= moment < inf:
            reason = PullReason.REQUESTED
        time = moment + ahead if moment < inf else None
        return NextPull(time, reason, failures, row.is_paused)

    def preempt(self, now: Now, room: int) -> list[str]:
        """Return the mirrors whose pulls are to stop, since others wait for their workers."""
        stopping = sum(row.is_stopping for row in self._rows.values())
        over = sorted(
            (row.turn_ends, name)
            for name, row in self._rows.items()
            if row.turn_ends <= now.steady and not row.is_stopping
        )
        rows = [(name, self._rows[name]) for _, name in over]
        places = [name for name, row in rows if row.preemptions or not room]
        hosts = [name for name, row in rows if row.schedule.host in self._crowded]
        chosen = [*dict.fromkeys([*places[: max(self._blocked - stopping, 0)], *hosts])]
        for name in chosen:
            self._rows[name].is_stopping = True
        return chosen

    def begin(self, now: Now, room: int, room_to_tell: int) -> list[MirrorJob]:
        """Return the jobs to start now, the longest waiting first; they count as running.

        Pulls that were interrupted for others use all workers but one: quick jobs always have one.
        """
        left = {True: room_to_tell, False: room}
        busy = [row.running for row in self._rows.values()] + list(self._left.values())
        places = room + sum(len(item - {JobKind.HAND_OVER}) for item in busy)
        chosen: list[MirrorJob] = []
        self._blocked, self._crowded, hosts = 0, set(), self._busy_hosts()
        for _, name, kind in self._waiting(now):
            row = self._rows[name]
            is_telling = kind is JobKind.HAND_OVER
            self._is_long_full = self._count_preempted() >= max(places - 1, 1)
            if not row.is_free(kind):
                continue
            if not is_telling and row.schedule.host in hosts:
                self._crowded.add(row.schedule.host)  # no place would help
                continue
            if left[is_telling] <= 0 or self._must_wait(row, kind):
                self._blocked += not is_telling
                continue
            left[is_telling] -= 1
            hosts |= {row.schedule.host} - {""} if not is_telling else set()
            row.running.add(kind)
            row.began[kind] = now.steady
            row.hinted = row.hinted and kind is not JobKind.PULL
            if kind is JobKind.HAND_OVER:
                row.due[kind] = inf
            chosen.append(MirrorJob(mirror=name, kind=kind))
        self._is_long_full = self._count_preempted() >= max(places - 1, 1)
        return chosen

    def _waiting(self, now: Now) -> list[tuple[float, str, JobKind]]:
        return sorted(
            (_begin_moment(row, kind, due), name, kind)
            for name, row in self._rows.items()
            for kind, due in row.due.items()
            if row.is_free(kind) and _begin_moment(row, kind, due) <= now.steady
        )

    def _count_preempted(self) -> int:
        return sum(
            row.preemptions > 0 and JobKind.PULL in row.running for row in self._rows.values()
        )

    def _must_wait(self, row: _ScheduleRow, kind: JobKind) -> bool:
        return self._is_long_full and kind is JobKind.PULL and row.preemptions > 0

    def _busy_hosts(self) -> set[str]:
        rows = self._rows.values()
        return {row.schedule.host for row in rows if not row.is_free(JobKind.PULL)} - {""}

    def next_moment(self, *, work: bool = True, tell: bool = True) -> float:
        """Return the time, by the steady clock, of the next job; ``inf`` when none is due."""
        hosts = self._busy_hosts()
        return min(
            (
                _begin_moment(row, kind, due)
                for row in self._rows.values()
                for kind, due in row.due.items()
                if row.is_free(kind) and (tell if kind is JobKind.HAND_OVER else work)
                if not self._must_wait(row, kind)
                if kind is JobKind.HAND_OVER or row.schedule.host not in hosts
            ),
            default=inf,
        )

    def hint(self, mirror: str) -> None:
        """Record that a Source reports a change."""
        row = self._rows.get(mirror)
        if row is not None:
            row.hinted = row.schedule.accepts_hints

    def record_end(self, errand: MirrorJob, how: JobOutcome, now: Now) -> float:
        """Record the outcome of a job."""
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
        is_paused = row.failures.get(JobKind.HAND_OVER) and JobKind.HAND_OVER not in row.running
        if JobKind.HAND_OVER in row.due and not is_paused:
            row.due[JobKind.HAND_OVER] = now.steady

    def _record_pull_end(self, row: _ScheduleRow, outcome: JobOutcome, now: Now) -> None:
        row.hints_from = now.steady + max(_HINT_PAUSES[outcome.status], outcome.retry_after)
        row.retry_from = now.steady + outcome.retry_after
        row.reason = (
            PullReason.RETRY_AFTER
            if row.due[JobKind.PULL] == row.retry_from
            else _REASONS[outcome.status]
        )
        # A request stays until a pull that began after it ran to its end, also of a paused mirror.
        is_cut = outcome.status in {JobStatus.LOCKED, JobStatus.PREEMPTED}
        if row.requested_at <= row.began.get(JobKind.PULL, -inf):
            row.requested_at = row.due[JobKind.PULL] if is_cut else inf
        row.is_stopping = False
        row.preemptions = row.preemptions + 1 if outcome.status is JobStatus.PREEMPTED else 0
        is_first = JobKind.AUDIT not in row.began and row.due.get(JobKind.AUDIT) == inf
        if is_first and outcome.status is JobStatus.DONE:
            row.due[JobKind.AUDIT] = now.steady

    def _next_due(self, row: _ScheduleRow, kind: JobKind, outcome: JobOutcome, now: Now) -> float:
        table = row.table(kind)
        if outcome.status is JobStatus.LOCKED:
            return now.steady + LOCKED_PAUSE
        if outcome.status is JobStatus.PREEMPTED:
            return now.steady
        if outcome.status is JobStatus.FAILED:
            every = table.seconds if isinstance(table, Every) else inf
            every = FIRST_PAUSE if kind is JobKind.HAND_OVER else every
            pause = retry_pause(row.failures[kind], every)
            return now.steady + pause * self._dice.uniform(1.0 - _SPREAD, 1.0)
        if kind is JobKind.HAND_OVER:
            return row.due[kind]  # a new request in the meantime
        if table is None:
            return inf
        return table.next_due(row.began.get(kind, now.steady), now, self._dice)

    def failures(self, mirror: str, kind: JobKind) -> int:
        """Return the number of failures in a row."""
        row = self._rows.get(mirror)
        return 0 if row is None else row.failures.get(kind, 0)


def _began(past: MirrorHistory, now: Now) -> dict[JobKind, float]:
    known = {JobKind.PULL: past.pulled, JobKind.AUDIT: past.audited}
    return {
        kind: now.steady - max(now.wall - last, 0.0)
        for kind, last in known.items()
        if last is not None
    }


def _begin_moment(row: _ScheduleRow, kind: JobKind, due: float) -> float:
    if kind is JobKind.HAND_OVER:
        return due
    if kind is JobKind.PULL and row.hinted:
        due = min(due, row.hints_from)
    if row.is_paused:
        due = inf
    return min(due, row.requested_at) if kind is JobKind.PULL else due
