"""Turns of units: the number of units that use one host at a time, and their shares. Pure.

Workers share no state. Each unit is given its share of the host's allowance, and no more units are
in progress than there are shares; so all together stay within the whole. Every moment is given by
the caller, in seconds of a clock that never goes back.
"""

from collections import deque
from collections.abc import Iterable
from math import inf
from typing import Final, NamedTuple

import msgspec

from resourcesync.errors import ConfigurationError
from resourcesync_cluster.ports import HostShare, UnitOutcome, WorkUnit

LONGEST_WAIT: Final = 3_600.0
"""Seconds: the longest pause of a host for one outcome with a delay."""

_AHEAD: Final = 1_000
_REMEMBERED: Final = 10_000
_ROUNDING: Final = 1 + 1e-9


class HostLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one host, for all workers together.

    Attributes:
        units: Most units in progress at a time.
        rate: Requests per second; ``None`` sets no limit.
        jobs: Requests at a time; ``None`` sets no limit.
    """

    units: int = 8
    rate: float | None = None
    jobs: int | None = None

    def __post_init__(self) -> None:
        for name in ("units", "rate", "jobs"):
            value = getattr(self, name)
            if value is not None and not 0 < value < inf:
                raise ConfigurationError(f"{name} must be more than 0, not {value}")

    def parts(self, slots: int) -> int:
        """Return the number of shares of a host's allowance, for a number of slots."""
        return max(1, min(self.units, slots, self.units if self.jobs is None else self.jobs))

    def share(self, parts: int) -> HostShare:
        """Return one share."""
        return HostShare(
            rate=None if self.rate is None else self.rate / parts,
            jobs=None if self.jobs is None else max(1, self.jobs // parts),
        )


class Turn(NamedTuple):
    """One submission of a unit to the engine.

    Attributes:
        number: A number that no other turn of the run has.
        share: Its share of its host's allowance.
    """

    number: int
    unit: WorkUnit
    share: HostShare


class _HostQueue(msgspec.Struct):
    """State of one host.

    Attributes:
        waiting: Its units that were read and are not in progress.
        running: The shares of those in progress, by the number of their turn.
        limit: Their maximum after the host requested a pause; infinite before, and when it has
            grown back.
        clean: Number of successes since the limit changed.
        cut: The last turn before the limit was halved.
        quiet_until: The end of its pause.
    """

    waiting: deque[WorkUnit] = msgspec.field(default_factory=deque)
    running: dict[int, HostShare] = msgspec.field(default_factory=dict)
    limit: float = inf
    clean: int = 0
    cut: int = 0
    quiet_until: float = -inf


class TurnQueue:
    """The units of a run, each of which gets a turn when its host is free.

    Units are read one by one, as there is room. Those whose host is busy are queued, up to a
    number; then nothing more is read until one of them has its turn. So units of other hosts should
    not all come last.
    """

    def __init__(
        self, units: Iterable[WorkUnit], limits: HostLimits, *, ahead: int = _AHEAD
    ) -> None:
        self._units = iter(units)
        self._limits = limits
        self._ahead = ahead
        self._hosts: dict[str, _HostQueue] = {}
        self._ring: deque[str] = deque()
        self._idle: dict[str, None] = {}
        self._waiting = 0
        self._running = 0
        self._parts = 1
        self._given = 0
        self._read_all = False

    @property
    def done(self) -> bool:
        """True if no unit is left, neither queued nor in progress."""
        return self._read_all and not self._waiting and not self._running

    def next_turn(self, now: float, slots: int) -> Turn | None:
        """Give a unit its turn, if there is room and a host is free.

        There is room for one unit more than run at a time, so that no worker waits for us.
        """
        self._parts = self._limits.parts(slots)
        if self._running > slots:
            return None
        while self._waiting < min(self._parts + 1, self._ahead) and self._read():
            pass  # a single unit may use the whole allowance, so check for others first
        turn = self._next_waiting(now)
        while turn is None and self._waiting < self._ahead and self._read():
            turn = self._next_waiting(now)
        return turn

    def try_unit(self, unit: WorkUnit, now: float) -> Turn | None:
        """Give this unit its turn, if its host is free; it is not one of the queued ones."""
        lane = self._host_queue(unit.host)
        return self._give(lane, unit, now, len(lane.waiting) + 1)

    def requeue(self, unit: WorkUnit) -> None:
        """Queue a lost unit for another turn, before the others of its host."""
        self._enqueue(unit, first=True)

    def finish(self, turn: Turn, outcome: UnitOutcome | None, now: float) -> None:
        """Record the end of a turn; ``None`` when the outcome of the unit is not known."""
        lane = self._hosts[turn.unit.host]
        del lane.running[turn.number]
        self._running -= 1
        if outcome is not None and turn.unit.host:
            if outcome.wait is not None:
                lane.quiet_until = max(lane.quiet_until, now + _bounded(outcome.wait))
                lane.clean = 0
                if turn.number > lane.cut:  # once for all that were in progress together
                    lane.cut = self._given
                    lane.limit = max(1, min(lane.limit, self._parts) // 2)
            elif outcome.failed is None and turn.number > lane.cut and lane.limit < inf:
                lane.clean += 1
                if lane.clean >= lane.limit:
                    lane.clean = 0
                    lane.limit = lane.limit + 1 if lane.limit + 1 < self._limits.units else inf
        if not lane.running and not lane.waiting:
            self._retire_host(turn.unit.host, lane, now)

    def ready_at(self, now: float) -> float | None:
        """Return the end of the next pause of a host; ``None`` for none."""
        quiet = (self._hosts[host].quiet_until for host in self._ring)
        return min((moment for moment in quiet if moment > now), default=None)

    def quiet_until(self, host: str) -> float:
        """Return the end of a host's pause; in the past without one."""
        lane = self._hosts.get(host)
        return -inf if lane is None else lane.quiet_until

    def _next_waiting(self, now: float) -> Turn | None:
        for _ in range(len(self._ring)):
            host = self._ring.popleft()
            lane = self._hosts[host]
            turn = self._give(lane, lane.waiting[0], now, len(lane.waiting))
            if turn is not None:
                self._waiting -= 1
                lane.waiting.popleft()
            if lane.waiting:
                self._ring.append(host)
            if turn is not None:
                return turn
        return None

    def _read(self) -> bool:
        """Queue one unit more; return whether there was one."""
        unit = None if self._read_all else next(self._units, None)
        if unit is None:
            self._read_all = True
            return False
        self._enqueue(unit, first=False)
        return True

    def _enqueue(self, unit: WorkUnit, *, first: bool) -> None:
        lane = self._host_queue(unit.host)
        if not lane.waiting:
            self._ring.append(unit.host)
        if first:
            lane.waiting.appendleft(unit)
        else:
            lane.waiting.append(unit)
        self._waiting += 1

    def _host_queue(self, host: str) -> _HostQueue:
        self._idle.pop(host, None)
        return self._hosts.setdefault(host, _HostQueue())

    def _give(self, lane: _HostQueue, unit: WorkUnit, now: float, left: int) -> Turn | None:
        """Give a unit its turn, if its host is free; ``left`` units are not queued yet."""
        share = HostShare()
        if unit.host:
            running = len(lane.running)
            parts = min(self._parts, running + left) if self._read_all else self._parts
            share = self._limits.share(parts)
            full = running >= min(parts, lane.limit) or not self._fits(lane, share)
            if full or now < lane.quiet_until:
                return None
        self._given += 1
        lane.running[self._given] = share
        self._running += 1
        return Turn(self._given, unit, share)

    def _fits(self, lane: _HostQueue, share: HostShare) -> bool:
        """True if a share is left: some units still have larger ones from before a cut."""
        shares = (share, *lane.running.values())
        rate = sum(share.rate or 0 for share in shares)
        jobs = sum(share.jobs or 0 for share in shares)
        return rate <= (self._limits.rate or 0) * _ROUNDING and jobs <= (self._limits.jobs or 0)

    def _retire_host(self, host: str, lane: _HostQueue, now: float) -> None:
        if lane.limit == inf and lane.quiet_until <= now:
            del self._hosts[host]
            return
        self._idle[host] = None
        if len(self._idle) > _REMEMBERED:
            oldest = next(iter(self._idle))
            del self._idle[oldest], self._hosts[oldest]


def _bounded(wait: float) -> float:
    return min(wait, LONGEST_WAIT) if wait > 0 else 0.0
