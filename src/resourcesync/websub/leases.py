"""Leases of subscriptions: their length and renewal, and the delays of retries."""

from typing import Final

MICROSECONDS: Final = 1_000_000
HOUR: Final = 3_600
DAY: Final = 24 * HOUR

DEFAULT_LEASE: Final = 10 * DAY
"""Default lease in seconds, as WebSub §5.1 suggests."""
LONGEST_LEASE: Final = 30 * DAY
SHORTEST_LEASE: Final = HOUR

_DIGITS: Final = 12
_FIRST_DELAY: Final = 1.0
_LONGEST_DELAY: Final = float(HOUR)
_MOST_DOUBLINGS: Final = 30


def parse_seconds(text: str) -> int | None:
    """Return a positive whole number of seconds; ``None`` for any other text."""
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        return None
    return int(text) or None


def bounded_lease(
    asked: int | None, *, shortest: int = SHORTEST_LEASE, longest: int = LONGEST_LEASE
) -> int:
    """Return the seconds of a lease within its bounds; ``None`` gets the default."""
    return max(shortest, min(DEFAULT_LEASE if asked is None else asked, longest))


def renewal_time(now: int, lease: int, chance: float) -> int:
    """Return when to renew a lease that begins now, between 50 and 80 % of it.

    Args:
        now: The moment, in microseconds.
        lease: Seconds that it lasts.
        chance: From 0 to 1; so that not all renew at the same time.
    """
    return now + int(lease * MICROSECONDS * (0.5 + 0.3 * chance))


def retry_delay(attempts: int, chance: float, *, longest: float = _LONGEST_DELAY) -> float:
    """Return the seconds to wait after failures in a row: doubled each time, with jitter.

    Args:
        attempts: Number of failures so far, at least 1.
        chance: From 0 to 1.
        longest: Most seconds.
    """
    doublings = min(max(attempts, 1) - 1, _MOST_DOUBLINGS)
    return float(min(_FIRST_DELAY * 2**doublings, longest) * (0.5 + chance / 2))


class MonotonicTime:
    """Time for leases, in microseconds, which never goes back when the machine's clock does.

    Args:
        wall: The machine's time now.
        elapsed: Its monotonic time now, in seconds.
        latest: The latest moment that was ever used, by this process or the one before.
    """

    def __init__(self, wall: int, elapsed: float, latest: int = 0) -> None:
        self._begin = max(wall, latest)
        self._elapsed = elapsed

    def at(self, wall: int, elapsed: float) -> int:
        """Return the moment; a clock that was set forward counts, one set back does not."""
        passed = self._begin + int((elapsed - self._elapsed) * MICROSECONDS)
        return max(wall, passed)
