"""Limits of one run, in time and bytes: a run that reaches one ends cleanly."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Final, Literal, TypeVar

from resourcesync.ports.cancellation import CancelToken

Spent = Literal["", "time", "bytes"]
"""Limit that a run reached; empty if it completed."""


class Budget:
    """Limit of the bytes that a run may fetch, and the reason why a run ended early.

    At least one resource is always fetched, however large: the next run would get no further.
    ``spent`` is the limit that was reached.
    """

    def __init__(
        self,
        limit: int | None = None,
        received: Callable[[], int] = lambda: 0,
        cancel: CancelToken | None = None,
    ) -> None:
        self._limit = limit
        self.is_limited = limit is not None
        self._received = received
        self._start = received()
        self._cancel = cancel
        self._reserved = 0
        self._has_reserved = False
        self.spent: Spent = ""

    def expire(self) -> None:
        """Record that the time is over: no request is begun, and finished work may be written."""
        self.spent = "time"
        if self._cancel is not None:
            self._cancel.lift_limit()

    def raise_if_cancelled(self) -> None:
        """Raise if the run is to end."""
        if self._cancel is not None:
            self._cancel.raise_if_cancelled()

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
    items: Iterable[T], cancel: CancelToken, *, every: int = _CHECK_INTERVAL
) -> Iterator[T]:
    """Return the items, and check between groups whether the run is to end."""
    return chain.from_iterable(_checked_groups(iter(items), cancel, every))


def _checked_groups(rest: Iterator[T], cancel: CancelToken, size: int) -> Iterator[list[T]]:
    while group := list(islice(rest, size)):
        cancel.raise_if_cancelled()
        yield group
