"""The context of one call into the library: the receiver of its events, and the request to stop."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from resourcesync.errors import ConfigurationError
from resourcesync.ports import Clock
from resourcesync.ports.cancellation import CancelToken


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
    """The receiver of events and the request to stop, for one mirror, one call at a time.

    Args:
        clock: Time.
    """

    def __init__(self, clock: Clock) -> None:
        self.cancel = CancelToken(clock, self._is_stop_requested)
        self._on_event: OnEvent | None = None
        self._stop: Stop | None = None
        self._is_busy = False

    @contextmanager
    def during(self, on_event: OnEvent | None, stop: Stop | None) -> Iterator[None]:
        """Report events of the block to ``on_event``, and cancel it when ``stop`` says so.

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
        self.cancel.reset()
        try:
            self.cancel.raise_if_cancelled()
            yield
        finally:
            self._is_busy = False
            self._on_event = self._stop = None

    def report(self, event: str, fields: Mapping[str, object]) -> None:
        """Report an event (``Reporter``)."""
        if self._on_event is not None:
            self._on_event(Event(event, fields))

    def _is_stop_requested(self) -> bool:
        return self._stop is not None and self._stop()
