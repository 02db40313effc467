"""Hints for mirrors: at once, but no more often than is good for their Sources."""

from collections import Counter
from collections.abc import Callable

from resourcesync.ports import Clock


class HintThrottle:
    """Says which mirrors should poll; a flood of reasons is one hint now and one later.

    Args:
        clock: Time.
        on_hint: Told the name of a mirror that should poll now; it must return at once.
        wake: Called when a hint is held back: ``give_owed`` is due sooner than it was.
        every: Seconds between two hints for a mirror, at least.
        counts: Counts ``hinted`` and ``coalesced``.
    """

    def __init__(
        self,
        clock: Clock,
        on_hint: Callable[[str], None],
        *,
        wake: Callable[[], None],
        every: float,
        counts: Counter[str],
    ) -> None:
        self._clock, self._on_hint, self._wake = clock, on_hint, wake
        self._every, self._counts = every, counts
        self._last_sent: dict[str, float] = {}
        self._delayed: dict[str, float] = {}

    def send(self, name: str, every: float | None = None) -> None:
        """Say that a mirror should poll: at once, or when the last time was a while ago.

        Args:
            name: The mirror.
            every: Seconds that are to lie between this hint and the last; ``None`` for the usual.
        """
        now = self._clock.monotonic()
        last = self._last_sent.get(name)
        due = now if last is None else last + (self._every if every is None else every)
        if now < due:
            self._counts["coalesced"] += 1
            self._delayed[name] = min(due, self._delayed.get(name, due))
            self._wake()
            return
        self._last_sent[name] = now
        self._delayed.pop(name, None)
        self._counts["hinted"] += 1
        self._on_hint(name)

    def send_due(self) -> None:
        """Give the hints that were held back long enough."""
        now = self._clock.monotonic()
        for name, due in list(self._delayed.items()):
            if now >= due:
                self.send(name)

    def pause(self) -> float | None:
        """Return the seconds until one is to be given; ``None`` when none is held back."""
        soonest = min(list(self._delayed.values()), default=None)
        return None if soonest is None else max(soonest - self._clock.monotonic(), 0.0)
