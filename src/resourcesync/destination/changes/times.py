"""Times of changes: which count, which are the resource's own, and how far they move T."""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from resourcesync.destination.changes.spans import OVERLAP, ChangeListSpan
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import known_microseconds, to_microseconds
from resourcesync.model.vocabulary import ChangeKind

DAY: Final = 24 * 3_600_000_000


def has_own_time(change: Change) -> bool:
    """True if a change has a time that cannot be that of its resource."""
    return change.time is not None and change.time != change.resource.lastmod


class LatestChangeTime:
    """Latest plausible time among the changes of a list.

    Times that may be those of resources count only where no change has its own: the clock of the
    resources may be ahead of that of the lists, and what is listed next would seem known.

    Args:
        since: T by the clock of the lists.
        now: The present moment.

    Attributes:
        change_time: Latest time that a change has of its own; ``None`` if none has. T if all are
            earlier.
        reported: The same, though it be earlier than T.
        is_resource_clock_ahead: A resource was modified after its change, by both clocks.
    """

    def __init__(self, since: int, now: int) -> None:
        self._since = since
        self._now = now
        self.change_time: int | None = None
        self.reported: int | None = None
        self.is_resource_clock_ahead = False
        self._resource_time = since

    def add(self, change: Change) -> None:
        """Add the next change."""
        if change.time is None:
            return
        time = to_microseconds(change.time)
        if not is_plausible(time, through=self._since, now=self._now):
            return
        if has_own_time(change):
            self.change_time = max(self.change_time or self._since, time)
            self.reported = max(self.reported or time, time)
            modified = known_microseconds(change.resource.lastmod)
            self.is_resource_clock_ahead |= modified is not None and modified > time + OVERLAP
        else:
            self._resource_time = max(self._resource_time, min(time, max(self._since, self._now)))

    @property
    def moment(self) -> int:
        """Latest time in microseconds; T itself if no change is later."""
        return self._resource_time if self.change_time is None else self.change_time


def without_borrowed_time(change: Change, span: ChangeListSpan) -> Change:
    """Return a deletion without its time, where that may be its resource's ``lastmod``.

    A program that compares two Resource Lists knows when a resource was last modified, not when it
    was deleted, and writes the former: ``resync`` does. In a list with an interval a wrong time
    shows; in one without, the position of the deletion counts, as for one without a time.

    Args:
        change: A change.
        span: Interval of its list.
    """
    is_borrowed = change.kind is ChangeKind.DELETED and change.time == change.resource.lastmod
    return replace(change, time=None) if is_borrowed and span.from_ is None else change


def is_since(change: Change, begin: int) -> bool:
    """True if a change has a time at ``begin`` or later."""
    return change.time is not None and to_microseconds(change.time) >= begin


def is_undated(change: Change, begin: int) -> bool:
    """True if nothing shows that a change happened before ``begin``.

    It has no time, or one that may be its resource's: a file from elsewhere was last modified long
    before it arrived, and a Source may have two clocks. So an old ``lastmod`` does not show that a
    change is known already.
    """
    if change.time is None:
        return True
    return change.time == change.resource.lastmod and not is_since(change, begin)


def count_old_entries(changes: Iterable[Change], begin: int) -> int:
    """Return how many changes at the start of a list are known by their order.

    Changes are listed in the order of their times (§12.1). So a change without a time before one
    that happened before ``begin`` happened before it as well.

    Args:
        changes: All changes of the list, in its order.
        begin: Changes before this moment are known, microseconds.

    Returns:
        The number; 0 if the times are out of order, which then proves nothing.
    """
    old, last = 0, None
    for position, change in enumerate(changes):
        if change.time is None or not has_own_time(change):
            continue
        if last is not None and change.time < last:
            return 0
        last = change.time
        if not is_since(change, begin):
            old = position + 1
    return old


def advance_checkpoint(through: int, *, until: int | None, last: int | None, now: int) -> int:
    """Return the new T after a list was read to its end; implausible times do not count.

    Args:
        through: T before.
        until: The list's own ``until``, if it is closed.
        last: Latest plausible time of its changes.
        now: The present moment.
    """
    if until is not None and is_plausible(until, through=through, now=now):
        return max(through, until)
    return through if last is None else max(through, last)


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
