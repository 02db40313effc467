"""Limits of one run, in time and bytes: a run that reaches one ends cleanly."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Final, Literal, TypeVar

from resourcesync.errors import BudgetError
from resourcesync.ports import Clock

Spent = Literal["", "time", "bytes"]
"""Limit that a run reached; empty if it completed."""


class Deadline:
    """Clock that ends a run by an exception when its time is over.

    All long work reads this clock often, and may safely be interrupted there. An exception that was
    swallowed on its way is raised again.

    Args:
        clock: Time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: float | None = None
        self._error: BudgetError | None = None

    def set(self, seconds: float | None) -> None:
        """Set the deadline to so many seconds from now; ``None``: no deadline."""
        self._error = None
        self._until = None if seconds is None else self._clock.monotonic() + seconds

    @contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """Limit the block to so many seconds; ``None``: no limit.

        Raises:
            BudgetError: The time is over.
        """
        self.set(seconds)
        try:
            yield
        finally:
            self.lift()

    def lift(self) -> None:
        """Remove the deadline: the run is ending cleanly."""
        self.set(None)

    def now(self) -> datetime:
        """Return the present moment, in UTC."""
        return self._clock.now()

    def monotonic(self) -> float:
        """Return seconds that never go back.

        Raises:
            BudgetError: The time is over.
        """
        moment = self._clock.monotonic()
        if self._until is not None and moment >= self._until:
            self._raise_expired()
        return moment

    def sleep(self, seconds: float) -> None:
        """Wait, but not beyond the deadline.

        Raises:
            BudgetError: The time is over.
        """
        if self._until is not None:
            left = max(0.0, self._until - self._clock.monotonic())
            if seconds >= left:
                self._clock.sleep(left)
                self._raise_expired()
                return
        self._clock.sleep(seconds)

    def _raise_expired(self) -> None:
        if self._error is None:
            self._error = BudgetError(
                "the time limit of this run is reached",
                evidence=(("kept", "what was complete"),),
                hint="run again to continue",
            )
        elif is_propagating(self._error):
            return
        raise self._error


def is_propagating(error: BaseException | None) -> bool:
    """True if an enclosing ``finally``, ``except`` or ``with`` is passing the error on."""
    current, seen = sys.exception(), set[int]()
    while error is not None and current is not None and id(current) not in seen:
        if current is error:
            return True
        seen.add(id(current))
        current = current.__context__
    return False


class Budget:
    """Limit of the bytes that a run may fetch, and the reason why a run ended early.

    At least one resource is always fetched, however large: the next run would get no further.

    Args:
        limit: Bytes; ``None``: no limit.
        received: Returns the bytes received so far.
        lift: Removes the deadline once the time is over.

    Attributes:
        spent: The limit that was reached; empty while every request could be sent.
        is_limited: There is a limit of bytes: requests must reserve theirs.
    """

    def __init__(
        self,
        limit: int | None = None,
        received: Callable[[], int] = lambda: 0,
        lift: Callable[[], None] = lambda: None,
    ) -> None:
        self._limit = limit
        self.is_limited = limit is not None
        self._received = received
        self._start = received()
        self._lift = lift
        self._reserved = 0
        self._has_reserved = False
        self.spent: Spent = ""

    def expire(self) -> None:
        """Record that the time is over: no request is begun, and finished work may be written."""
        self.spent = "time"
        self._lift()

    def fits(self, length: int | None) -> bool:
        """True if so many more bytes (``None``: unknown) may be fetched."""
        if self.spent or self._limit is None:
            return not self.spent
        # A resource of unknown length has at least one byte.
        wanted = self._received() - self._start + self._reserved + (length or 1)
        return wanted <= self._limit

    def reserve(self, length: int | None) -> bool:
        """Reserve the bytes of a request; return whether it may be sent."""
        if not self.fits(length) and (self._has_reserved or self.spent):
            self.spent = self.spent or "bytes"
            return False
        self._has_reserved = True
        self._reserved += length or 0
        return True

    def release(self, length: int | None) -> None:
        """Release a reservation at the end of its request: received bytes count from now on."""
        self._reserved -= length or 0


_CHECK_INTERVAL: Final = 256
T = TypeVar("T")


def check_cancelled(
    items: Iterable[T], clock: Clock, *, every: int = _CHECK_INTERVAL
) -> Iterator[T]:
    """Yield items, and read the clock between groups: it may end the run by an exception.

    Args:
        items: Rows or decisions.
        clock: Read before every group of items.
        every: Number of items in a group.
    """
    rest = iter(items)
    while group := list(islice(rest, every)):
        clock.monotonic()
        yield from group
