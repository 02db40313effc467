"""Waits for events, never for a time: clocks during whose waits something happens."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from resourcesync.adapters.system import SystemClock


class PlannedClock:
    """A clock that never waits: where somebody waits, time passes, and what was planned happens.

    It begins at the present moment, so that the times of real files agree with it.
    """

    def __init__(self) -> None:
        self._began = datetime.now(UTC)
        self._passed = 0.0
        self._planned: list[tuple[float, Callable[[], object]]] = []

    def after(self, seconds: float, act: Callable[[], object]) -> None:
        """Plan what happens so many seconds from now."""
        self._planned.append((self._passed + seconds, act))
        self._planned.sort(key=lambda planned: planned[0])

    def now(self) -> datetime:
        """Return the moment."""
        return self._began + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        """Return the seconds that were waited."""
        return self._passed

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        end = self._passed + seconds
        while self._planned and self._planned[0][0] <= end:
            self._passed, act = self._planned.pop(0)
            act()
        self._passed = end


class NoticedClock(SystemClock):
    """The machine's clock, which tells that somebody has begun to wait by it."""

    def __init__(self) -> None:
        self.is_waited_for = threading.Event()

    def sleep(self, seconds: float) -> None:
        """Wait, and tell it."""
        self.is_waited_for.set()
        super().sleep(seconds)


@contextmanager
def once(event: Callable[[], object], act: Callable[[], object]) -> Iterator[None]:
    """Do something in a thread of its own as soon as an event is there.

    Args:
        event: Waits for it, or tells whether it is there.
        act: What is done then.
    """

    def wait_and_act() -> None:
        wait_until(event)
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def wait_until(event: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until something is so.

    Raises:
        AssertionError: It did not come about in time.
    """
    end = time.monotonic() + seconds
    while not event():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)
