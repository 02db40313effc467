"""How often somebody may ask: so many times a minute, whoever it is."""

from collections import OrderedDict
from typing import Final

_MINUTE: Final = 60.0
_REMEMBERED: Final = 10_000


class RateLimiter:
    """A bucket for each of at most 10,000 askers, full at first, refilled as time goes by.

    Args:
        per_minute: What a bucket holds, and what flows in each minute.
    """

    def __init__(self, per_minute: float) -> None:
        self._most = per_minute
        self._tokens: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def acquire(self, asker: str, now: float) -> bool:
        """Take one from an asker's bucket at a moment in seconds; whether there was one."""
        left, since = self._tokens.pop(asker, (self._most, now))
        left = min(self._most, left + max(0.0, now - since) * self._most / _MINUTE)
        is_there = left >= 1
        self._tokens[asker] = (left - 1 if is_there else left, now)
        if len(self._tokens) > _REMEMBERED:
            self._tokens.popitem(last=False)
        return is_there
