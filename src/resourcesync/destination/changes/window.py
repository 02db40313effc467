"""Continuity of Change Lists that give no interval (D-Lib, figure 6; `resync-build`). Pure.

Such a list may be the changes of a day, or a window of the last ones, and the list before it may be
gone. That none is missing is proven only by what the two lists share, or by the time of a change.
"""

from collections.abc import Sequence
from itertools import dropwhile
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from resourcesync.model.digests import format_digests
from resourcesync.model.timestamps import Microseconds, to_microseconds

if TYPE_CHECKING:
    from resourcesync.model.resources import Change

OVERLAP: Final = 1_000_000
"""Interval before T that is read again in an unknown list: one second, in microseconds."""
_MAX_STORED: Final = 1_000
_VAGUE: Final = "~"
"""Begins the key of a change without a time: an equal one may be another change."""


def has_own_time(change: "Change") -> bool:
    """True if a change has a time that cannot be that of its resource."""
    return change.time is not None and change.time != change.resource.lastmod


class ChangeMark(NamedTuple):
    """A change of a list, as far as continuity depends on it.

    ``key`` is a digest of its address, kind, time, hashes and length. ``is_own``: the time cannot
    be that of its resource.
    """

    uri: str
    key: str
    time: int | None
    is_own: bool

    @property
    def own_time(self) -> int | None:
        """Its time, if it cannot be that of its resource."""
        return self.time if self.is_own else None


def mark_of(change: "Change", latest: int) -> ChangeMark:
    """Return a change as far as continuity depends on it."""
    from hashlib import sha256  # noqa: PLC0415 - the status of a mirror needs no digest

    resource = change.resource
    time = None if change.time is None else to_microseconds(change.time)
    time = time if time is None or time <= latest else None
    text = (
        f"{resource.uri}\0{change.kind}\0{time}"
        f"\0{format_digests(resource.digests)}\0{resource.length}"
    )
    key = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    key = key if time is not None else _VAGUE + key
    return ChangeMark(resource.uri, key, time, time is not None and has_own_time(change))


def is_newest_first(changes: Sequence[ChangeMark], known: "Window | None") -> bool | None:
    """Return whether a list has the newest change first; ``None`` if nothing shows its order.

    Its times show it, as far as it gives some; else those of the list that was processed did.
    """
    times = [change.time for change in changes if change.time is not None]
    if len(set(times)) > 1 and times == sorted(times, reverse=True):
        return True
    if len(set(times)) > 1 and times == sorted(times):
        return False
    return None if known is None else known.is_newest_first


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The last changes of the list that was processed, oldest first.

    At most 1,000 ``keys``; ``last_key`` and ``last_time`` are those of the change with the latest
    time of its own. ``is_newest_first`` is ``None`` if nothing has shown the order.
    """

    keys: tuple[str, ...] = ()
    is_whole: bool = True
    is_newest_first: bool | None = None
    last_key: str = ""
    last_time: Microseconds | None = None


def window_of(changes: Sequence[ChangeMark], *, newest_first: bool | None) -> Window:
    """Return what is stored of a list, whose changes are given oldest first."""
    own = [change for change in changes if change.is_own]
    last = max(own, key=lambda change: change.time or 0, default=None)
    return Window(
        keys=tuple(change.key for change in changes[-_MAX_STORED:]),
        is_whole=len(changes) <= _MAX_STORED,
        is_newest_first=newest_first,
        last_key="" if last is None else last.key,
        last_time=None if last is None else last.time,
    )


class Continuation(NamedTuple):
    """The new changes of a list.

    ``is_proven``: none between the processed ones and these is missing. ``news`` are positions in
    the order in which they happened. ``is_older``: the list is an older copy of the processed one.
    """

    is_proven: bool
    news: Sequence[int]
    is_older: bool = False


def continuation(changes: Sequence[ChangeMark], known: Window | None, since: int) -> Continuation:
    """Return what is new in a list without an interval."""
    shared = None if known is None else _after_shared(changes, known)
    if shared is not None:
        return Continuation(is_proven=True, news=shared)
    if known is not None and _is_older(changes, known):
        return Continuation(is_proven=False, news=(), is_older=True)
    times = [change.own_time for change in changes]
    earliest = min((time for time in times if time is not None), default=None)
    if known is not None and _lacks_processed(changes, known):
        return Continuation(is_proven=False, news=range(len(changes)))
    last_time = None if known is None else known.last_time
    is_found = known is not None and any(change.key == known.last_key for change in changes)
    if known is not None and last_time is not None and is_found and None not in times:
        return Continuation(is_proven=True, news=_unknown(changes, known, last_time))
    # A list that reaches back to the last change and lacks it was rewritten, or is an older copy.
    is_told = known is None or not known.keys
    is_behind = earliest is not None and last_time is not None and earliest > last_time
    if earliest is not None and earliest <= since and (is_found or is_told or is_behind):
        return Continuation(is_proven=True, news=_unknown(changes, known, since - OVERLAP))
    return Continuation(is_proven=False, news=range(len(changes)))


def _lacks_processed(changes: Sequence[ChangeMark], known: Window) -> bool:
    """True if a list has some of the processed changes and lacks later ones: it was rewritten."""
    present = {change.key for change in changes}
    rest = dropwhile(lambda key: key not in present, known.keys)
    return any(key not in present for key in rest)


def _is_older(changes: Sequence[ChangeMark], known: Window) -> bool:
    """True if a list ends before the processed one: it is an older copy of it.

    Its end is the beginning of the processed one, or all of its changes have earlier times.
    """
    keys, stored = [change.key for change in changes], list(known.keys)
    for size in range(min(len(keys), len(stored) - 1), 0, -1):
        shared = keys[-size:]
        is_clear = any(not key.startswith(_VAGUE) for key in shared)
        if shared == stored[:size] and is_clear and known.is_whole:
            return True
    times = [change.own_time for change in changes if change.own_time is not None]
    is_dated = known.last_time is not None and len(times) == len(changes) > 0
    return is_dated and max(times) < (known.last_time or 0)


def _unknown(changes: Sequence[ChangeMark], known: Window | None, begin: int) -> Sequence[int]:
    """Return the changes that were not processed, in the order of their times.

    A change may be inserted late. Where the processed list is not known as a whole, or none was
    processed, those count that did not happen before a moment.
    """
    keys = frozenset(() if known is None else known.keys)
    is_whole = known is not None and known.is_whole
    news = [
        position
        for position, change in enumerate(changes)
        if change.key not in keys
        and (is_whole or change.own_time is None or change.own_time >= begin)
    ]
    if all(changes[position].is_own for position in news):
        news.sort(key=lambda position: changes[position].time or 0)
    return news


def shares(changes: Sequence[ChangeMark], known: Window | None) -> bool:
    """True if a list continues the one that was processed, by changes that both have."""
    ordered = changes[::-1] if is_newest_first(changes, known) else changes
    return known is not None and _after_shared(ordered, known) is not None


def _after_shared(changes: Sequence[ChangeMark], known: Window) -> Sequence[int] | None:
    """Return the changes outside of a block that both lists have; ``None`` if there is none.

    The block is all of the old list, or its end at the beginning of the new one.
    """
    keys, stored = [change.key for change in changes], list(known.keys)
    if not any(not key.startswith(_VAGUE) for key in stored):
        return None
    for end in range(len(keys), 0, -1):
        if keys[end - 1] != stored[-1]:
            continue
        size = min(end, len(stored))
        block = keys[end - size : end]
        if block != stored[-size:] or all(key.startswith(_VAGUE) for key in block):
            continue
        after, before = range(end, len(keys)), range(end - size)
        if not before or not known.is_whole:
            return after
        if not after:  # newest first, which times did not show
            return before[::-1]
    return None
