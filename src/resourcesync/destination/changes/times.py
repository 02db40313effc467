"""Times of changes: which count, which are the resource's own, and how far they move T."""

from typing import Final

from resourcesync.destination.changes.spans import OVERLAP
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import to_microseconds

DAY: Final = 24 * 3_600_000_000


def has_own_time(change: Change) -> bool:
    """True if a change has a time that cannot be that of its resource."""
    return change.time is not None and change.time != change.resource.lastmod


class LatestChangeTime:
    """Latest plausible time among the changes of a list.

    Times that may be those of resources count only where no change has its own, and never beyond
    now: the clock of the resources may be ahead of that of the lists, and what is listed next would
    seem known.

    Args:
        since: T by the clock of the lists.
        now: The present moment.

    Attributes:
        own: Latest time that a change has of its own; ``None`` if none has.
    """

    def __init__(self, since: int, now: int) -> None:
        self._since = since
        self._now = now
        self.own: int | None = None
        self._borrowed: int | None = None

    def add(self, change: Change) -> None:
        """Add the next change."""
        if change.time is None:
            return
        time = to_microseconds(change.time)
        if not is_plausible(time, through=self._since, now=self._now):
            return
        if has_own_time(change):
            self.own = max(self.own or time, time)
        else:
            self._borrowed = max(self._borrowed or 0, min(time, self._now))

    @property
    def moment(self) -> int | None:
        """Latest time in microseconds; ``None`` if no change has one."""
        return self._borrowed if self.own is None else self.own


def is_since(change: Change, begin: int) -> bool:
    """True if a change has a time at ``begin`` or later."""
    return change.time is not None and to_microseconds(change.time) >= begin


def is_later(at: int, read_at: int) -> bool:
    """True if a Resource List of ``at`` may be later than the one that was read.

    A time in whole seconds stands for all of its second.
    """
    return at > read_at or (at == read_at and at % OVERLAP == 0)


def is_plausible(moment: int, *, through: int, now: int) -> bool:
    """True if a time may move T: it is at most a day ahead of ``now`` or T.

    One entry from the far future would otherwise hide all later changes. Such a time is not reduced
    to a day either: changes of that day would be hidden.
    """
    return moment <= max(now, through) + DAY
