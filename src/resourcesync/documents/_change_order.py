"""The order of changes: oldest first (§12.1), or newest first, as many Sources write them."""

from collections.abc import Iterable
from datetime import datetime


class ChangeOrder:
    """The order of changes, from their times as they arrive.

    Attributes:
        rises: True if a change was met that is later than the one before it.
        falls: True if one was met that is earlier.
    """

    def __init__(self) -> None:
        self.rises = False
        self.falls = False
        self._last: datetime | None = None

    def watch(self, times: Iterable[datetime | None]) -> None:
        """Feed the next times; stop at the first that shows the right order."""
        if self.rises:
            return
        for time in times:
            if time is None:
                continue
            if self._last is not None and time != self._last:
                if time > self._last:
                    self.rises = True
                    return
                self.falls = True
            self._last = time

    @property
    def is_backwards(self) -> bool:
        """True if all changes so far come newest first, and not all at the same time."""
        return self.falls and not self.rises
