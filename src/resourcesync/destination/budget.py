"""What one run may take: time and bytes. When it is spent, the run ends in good order.

Long passes over rows, in which somebody may still ask for the run to stop.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Final, Literal, TypeVar

from resourcesync.errors import BudgetError
from resourcesync.ports import Clock

Spent = Literal["", "time", "bytes"]
"""What a run ran out of; nothing when it came to its end."""


class Deadline:
    """A clock that ends a run when its time is over, by what it raises.

    All long work asks for the time again and again, and it is safe to be cut at each of these
    places. What is raised is raised again should it get lost on its way.

    Args:
        clock: Time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: float | None = None
        self._error: BudgetError | None = None

    def set(self, seconds: float | None) -> None:
        """Let the time be over in so many seconds; ``None``: never."""
        self._error = None
        self._until = None if seconds is None else self._clock.monotonic() + seconds

    @contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """Let the time of the block be over in so many seconds; ``None``: never.

        Raises:
            BudgetError: It is over.
        """
        self.set(seconds)
        try:
            yield
        finally:
            self.lift()

    def lift(self) -> None:
        """Take the deadline away: the run is ending in good order."""
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
                "the time that this run was given is over",
                evidence=(("kept", "what was complete"),),
                hint="run it again: it goes on from here",
            )
        elif is_propagating(self._error):
            return
        raise self._error


def is_propagating(error: BaseException | None) -> bool:
    """Whether a ``finally``, an ``except`` or a ``with`` above us is passing it on."""
    current, seen = sys.exception(), set[int]()
    while error is not None and current is not None and id(current) not in seen:
        if current is error:
            return True
        seen.add(id(current))
        current = current.__context__
    return False


class Budget:
    """How many bytes a run may still fetch, and whether anything was left undone for that.

    At least one resource is always fetched, however large: the next run would come no further.

    Args:
        limit: Bytes; ``None``: any number.
        received: Returns the bytes received so far.
        lift: Takes the deadline away, once the time is over.

    Attributes:
        spent: What the run ran out of; nothing as long as all could be begun.
    """

    def __init__(
        self,
        limit: int | None = None,
        received: Callable[[], int] = lambda: 0,
        lift: Callable[[], None] = lambda: None,
    ) -> None:
        self._limit = limit
        self._received = received
        self._start = received()
        self._lift = lift
        self._reserved = 0
        self._has_reserved = False
        self.spent: Spent = ""

    def expire(self) -> None:
        """Say that the time is over: nothing more is begun, and what is done may be written."""
        self.spent = "time"
        self._lift()

    def fits(self, length: int | None) -> bool:
        """Whether so many bytes (``None``: nobody knows how many) may be fetched besides."""
        if self.spent or self._limit is None:
            return not self.spent
        # What nobody knows the length of takes a byte at least.
        wanted = self._received() - self._start + self._reserved + (length or 1)
        return wanted <= self._limit

    def reserve(self, length: int | None) -> bool:
        """Take note of a request that is about to be sent; whether it may be."""
        if not self.fits(length) and (self._has_reserved or self.spent):
            self.spent = self.spent or "bytes"
            return False
        self._has_reserved = True
        self._reserved += length or 0
        return True

    def release(self, length: int | None) -> None:
        """Take note of its end: what came counts as received from now on."""
        self._reserved -= length or 0


_CHECK_INTERVAL: Final = 256
T = TypeVar("T")


def check_cancelled(
    items: Iterable[T], clock: Clock, *, every: int = _CHECK_INTERVAL
) -> Iterator[T]:
    """Yield items, and ask for the time now and then: a clock may end a run by what it raises.

    Args:
        items: Rows, or what was decided about them.
        clock: Asked before every group of items.
        every: How many items one group has.
    """
    rest = iter(items)
    while group := list(islice(rest, every)):
        clock.monotonic()
        yield from group
