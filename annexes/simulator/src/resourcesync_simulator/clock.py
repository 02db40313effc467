"""Virtual time: nothing waits, and events happen when the clock reaches their time."""

import heapq
from collections.abc import Callable
from datetime import datetime
from itertools import count
from typing import Final

from resourcesync.model.timestamps import from_microseconds, to_microseconds

_SECOND: Final = 1_000_000


class SimulatedClock:
    """A ``Clock``, and the events that are due at their times."""

    def __init__(self, start: datetime) -> None:
        self._start = self._now = to_microseconds(start)
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()

    @property
    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return (self._now - self._start) / _SECOND

    def now(self) -> datetime:
        """Return the present moment, UTC."""
        return from_microseconds(self._now)

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return self.elapsed

    def sleep(self, seconds: float) -> None:
        """Let time pass, with all events due in it."""
        self.pass_until(self.elapsed + max(0.0, seconds))

    def call_at(self, elapsed: float, event: Callable[[], None]) -> None:
        """Schedule an event at a time, in seconds since the start; never in the past."""
        moment = max(self._now, self._start + round(elapsed * _SECOND))
        heapq.heappush(self._due, (moment, next(self._numbers), event))

    def pass_until(self, elapsed: float) -> None:
        """Let time pass up to a time; events happen at their own moments, in order."""
        until = self._start + round(elapsed * _SECOND)
        while self._due and self._due[0][0] <= until:
            moment, _, event = heapq.heappop(self._due)
            self._now = max(self._now, moment)
            event()
        self._now = max(self._now, until)

    def pass_to_next(self, elapsed: float) -> None:
        """Let time pass to the next event, which happens, or up to a time."""
        if self._due and self._due[0][0] <= self._start + round(elapsed * _SECOND):
            moment = self._due[0][0]
            self.pass_until((moment - self._start) / _SECOND)
        else:
            self.pass_until(elapsed)

    def cancel_all(self) -> None:
        """Cancel all scheduled events."""
        self._due.clear()


class SteppingClock:
    """The time of another clock plus steps: the clock of a Source whose clock is wrong."""

    def __init__(self, true: SimulatedClock) -> None:
        self._true = true
        self._ahead = 0

    def step(self, seconds: float) -> None:
        """Step by some seconds."""
        self._ahead += round(seconds * _SECOND)

    def now(self) -> datetime:
        """Return this clock's present moment, UTC."""
        return from_microseconds(to_microseconds(self._true.now()) + self._ahead)

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return self._true.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self._true.sleep(seconds)
