"""The context of one call into the library: the receiver of its events, and the request to stop."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from resourcesync.destination.budget import is_propagating
from resourcesync.errors import ConfigurationError, StoppedError
from resourcesync.ports import Clock

_CHECK_SECONDS: Final = 0.05
_SLICE: Final = 0.2


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened while a call goes on.

    Attributes:
        kind: ``source`` (lists were found), ``plan``, ``progress``, ``item`` (one resource was
            dealt with), ``warning`` or ``finding``; further kinds may come.
        fields: The fields of the event, as the lines of the command line's ``--json`` have them.
    """

    kind: str
    fields: Mapping[str, object]


OnEvent = Callable[[Event], object]
"""Receives an event, on the thread of the call; what it raises ends the call."""

Stop = Callable[[], bool]
"""Called many times a second; ``True`` stops the call."""


class CallContext:
    """The clock and the receiver of events for one mirror, one call at a time.

    All long work reads the clock again and again, and is safe to be interrupted at each of these
    places. So a request to stop is raised there, and raised again should it get lost.

    Args:
        clock: Time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._on_event: OnEvent | None = None
        self._stop: Stop | None = None
        self._is_busy = False
        self._stopped: StoppedError | None = None
        self._asked = 0.0

    @contextmanager
    def during(self, on_event: OnEvent | None, stop: Stop | None) -> Iterator[None]:
        """Report events of the block to ``on_event``, and raise in it when ``stop`` says so.

        Raises:
            ConfigurationError: Another call is active.
            StoppedError: ``stop`` said so.
        """
        if self._is_busy:
            raise ConfigurationError(
                "this Mirror is busy with another call",
                hint="make a Mirror for each thread, and call none from its own events",
            )
        self._is_busy = True
        self._on_event, self._stop = on_event, stop
        self._stopped, self._asked = None, 0.0
        try:
            self._check_stop()
            yield
        finally:
            self._is_busy = False
            self._on_event = self._stop = None

    def report(self, event: str, fields: Mapping[str, object]) -> None:
        """Report an event (``Reporter``)."""
        if self._on_event is not None:
            self._on_event(Event(event, fields))

    def now(self) -> datetime:
        """Return the present moment, in UTC."""
        return self._clock.now()

    def monotonic(self) -> float:
        """Return seconds that never go back.

        Raises:
            StoppedError: The caller asked to stop.
        """
        if self._stop is not None and self._clock.monotonic() - self._asked >= _CHECK_SECONDS:
            self._check_stop()
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait.

        Raises:
            StoppedError: The caller asked to stop.
        """
        until = self._clock.monotonic() + seconds
        while (left := until - self._clock.monotonic()) > 0:
            self._check_stop()
            self._clock.sleep(left if self._stop is None else min(_SLICE, left))

    def _check_stop(self) -> None:
        if self._stop is None or is_propagating(self._stopped):
            return
        self._asked = self._clock.monotonic()
        if self._stopped is None and self._stop():
            self._stopped = StoppedError(
                "the program asked to stop",
                evidence=(("kept", "what was complete"),),
                hint="call it again: it continues from here",
            )
        if self._stopped is not None:
            raise self._stopped
