"""Cancellation: the request to stop a run, and the run's time limit."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import Final, TypeVar

from resourcesync.errors import BudgetError, StoppedError, is_propagating
from resourcesync.ports import Clock

POLL_SECONDS: Final = 0.05
"""Seconds between two calls of a token's ``is_requested``."""

_CHECK_INTERVAL: Final = 256
_WAIT_SECONDS: Final = 0.2
_KEPT: Final = (("kept", "what was complete"),)

T = TypeVar("T")


class CancelToken:
    """A request to stop, and a time limit; long work checks both wherever it may safely end.

    An error that was swallowed on its way is raised again by the next check. While a ``finally``,
    an ``except`` or a ``with`` passes it on, checks raise nothing: clean-up runs to its end.

    Args:
        clock: Time of the limit and of waits.
        is_requested: Called many times a second; true cancels. ``None``: only ``cancel`` does.
    """

    def __init__(self, clock: Clock, is_requested: Callable[[], bool] | None = None) -> None:
        self.clock = clock
        self._is_requested = is_requested
        self._poll_at = 0.0
        self._ends_at: float | None = None
        self._stopped: StoppedError | None = None
        self._expired: BudgetError | None = None
        self.is_heard = False
        """True once the work found out that its end was requested."""

    def cancel(self) -> None:
        """Request the end of the work; from any thread, or from a signal handler."""
        self._stopped = self._stopped or StoppedError(
            "the program asked to stop",
            evidence=_KEPT,
            hint="call it again: it continues from here",
        )

    def reset(self) -> None:
        """Withdraw the request: other work begins."""
        self._stopped, self._poll_at, self.is_heard = None, 0.0, False

    @contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """Limit the block to so many seconds; ``None``: no limit. Such blocks do not nest.

        Raises:
            BudgetError: The time is over.
        """
        self.lift_limit()
        if seconds is not None:
            self._ends_at = self.clock.monotonic() + seconds
        try:
            yield
        finally:
            self.lift_limit()

    def lift_limit(self) -> None:
        """Remove the time limit: the work ends cleanly."""
        self._ends_at = self._expired = None

    @property
    def is_cancelled(self) -> bool:
        """True if the work is to end: by request, or since its time is over."""
        return self._find_error() is not None

    def raise_if_cancelled(self) -> None:
        """Raise if the work is to end.

        Raises:
            StoppedError: The end was requested.
            BudgetError: The time is over.
        """
        error = self._find_error()
        if error is not None and not is_propagating(error):
            raise error

    def checked(self, items: Iterable[T], *, every: int = _CHECK_INTERVAL) -> Iterator[T]:
        """Return the items, and raise between groups of so many if the work is to end."""
        return chain.from_iterable(self._checked_groups(iter(items), every))

    def _checked_groups(self, rest: Iterator[T], size: int) -> Iterator[list[T]]:
        while group := list(islice(rest, size)):
            self.raise_if_cancelled()
            yield group

    def wait(self, seconds: float) -> None:
        """Wait; end the wait at most 0.2 seconds after the work is cancelled.

        Raises:
            StoppedError: The end was requested.
            BudgetError: The time is over.
        """
        left = seconds
        while left > 0 and not self.is_cancelled:
            self.clock.sleep(min(left, _WAIT_SECONDS))
            left -= _WAIT_SECONDS
        self.raise_if_cancelled()

    def _find_error(self) -> StoppedError | None:
        if self._is_requested is not None and self._stopped is None:
            self._poll(self._is_requested)
        if self._stopped is not None:
            self.is_heard = True
            return self._stopped
        is_late = self._ends_at is not None and self.clock.monotonic() >= self._ends_at
        if is_late and self._expired is None:
            self._expired = BudgetError(
                "the time limit of this run is reached",
                evidence=_KEPT,
                hint="run again to continue",
            )
        return self._expired

    def _poll(self, is_requested: Callable[[], bool]) -> None:
        now = self.clock.monotonic()
        if now >= self._poll_at:
            self._poll_at = now + POLL_SECONDS
            if is_requested():
                self.cancel()
