"""Intervals of lists and packages, the gaps between them, and the times of changes since T.

And what was read: the history of changes since T, or since a Resource List. Pure.

A list that gives no interval (D-Lib, figure 6; `resync-build`) may be the changes of a day, or a
window of the last ones, and the list before it may be gone. That none is missing is proven only by
what the two lists share, or by the time of a change.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import dropwhile, pairwise
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from resourcesync.errors import SourceUnavailableError
from resourcesync.mirror_state.rows import ProcessedDocument
from resourcesync.model import timestamps
from resourcesync.model.digests import format_digests
from resourcesync.model.entries import Change, Header, Part
from resourcesync.model.vocabulary import Capability, ChangeKind

if TYPE_CHECKING:
    from resourcesync.destination.external_sort import ExternalSorter
    from resourcesync.destination.planner import ListedEntry

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
    time = None if change.time is None else timestamps.to_microseconds(change.time)
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

    Where the list is in another order, such as that of addresses, its resources tell.
    """
    times = [change.time for change in changes if change.time is not None]
    if len(set(times)) > 1 and times in (sorted(times), sorted(times, reverse=True)):
        return times[0] > times[-1]
    own = sorted((change for change in changes if change.is_own), key=attrgetter("uri"))
    falls = {
        (later.time or 0) < (earlier.time or 0)
        for earlier, later in pairwise(own)
        if earlier.uri == later.uri and earlier.time != later.time
    }
    if falls:
        return None if len(falls) > 1 else falls.pop()
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
    last_time: timestamps.Microseconds | None = None


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
    """True if a list ends before the processed one: it is an older copy of it."""
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
    """Return the changes outside of a block that both lists have; ``None`` if there is none."""
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


class ChangeListSpan(msgspec.Struct, frozen=True, kw_only=True):
    """URI of a Change List and the interval that it covers, in microseconds.

    ``None`` is an unknown start, and an open or unknown end. ``announced``: an index gave the
    interval, so the list itself must agree.
    """

    uri: str
    from_: int | None = None
    until: int | None = None
    announced: bool = False
    version: str = ""


class LatestChangeTime:
    """Latest plausible time among the changes of a list.

    Times that may be those of resources count only where no change has its own: the clock of the
    resources may be ahead of that of the lists, and what is listed next would seem known.

    ``change_time`` is the latest time that a change has of its own, T if all are earlier;
    ``reported`` is the same, though it be earlier. ``ahead`` is a time that cannot be true yet.
    ``is_resource_clock_ahead``: a resource was modified after its change, by both clocks.
    """

    def __init__(self, since: int, now: int) -> None:
        self._since = since
        self._now = now
        self.change_time: int | None = None
        self.reported: int | None = None
        self.ahead: datetime | None = None
        self.is_resource_clock_ahead = False
        self._resource_time = since

    def add(self, change: Change) -> None:
        """Add the next change."""
        if change.time is None:
            return
        time = timestamps.to_microseconds(change.time)
        if not is_plausible(time, through=self._since, now=self._now):
            self.ahead = change.time
            return
        if has_own_time(change):
            self.change_time = max(self.change_time or self._since, time)
            self.reported = max(self.reported or time, time)
            modified = timestamps.known_microseconds(change.resource.lastmod)
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
    """
    is_borrowed = change.kind is ChangeKind.DELETED and change.time == change.resource.lastmod
    return replace(change, time=None) if is_borrowed and span.from_ is None else change


def is_since(change: Change, begin: int) -> bool:
    """True if a change has a time at ``begin`` or later."""
    return change.time is not None and timestamps.to_microseconds(change.time) >= begin


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
    """Return the new T after a list was read to its end; implausible times do not count."""
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
    return moment <= max(now, through) + timestamps.DAY


OLD_COPY: Final = "run again; if it repeats, check the Source's lists"
"""Hint for copies of lists that are inconsistent."""


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """Change Lists to read, oldest first, and whether they reach back to T without a gap."""

    lists: tuple[ChangeListSpan, ...]
    starts_in_time: bool = True
    is_contiguous: bool = True

    @property
    def reaches_back(self) -> bool:
        """True if the lists reach back to T without a gap."""
        return self.starts_in_time and self.is_contiguous


def chain(spans: Sequence[ChangeListSpan], through: int) -> Chain:
    """Choose the lists that may have changes after ``through`` (§12.2).

    Both ends of an interval belong to it, so a list that ends at ``through``, or within the second
    before, is read: changes of that second are checked again (`is_since`), and a Source that was
    restored from an older state may have ended its list there. A list without a known start keeps
    its position: after the one before it.
    """
    ordered, since = _in_order(spans), through - OVERLAP
    useful = [span for span in ordered if span.until is None or span.until >= since]
    if not useful:
        return Chain(lists=())
    first = useful[0]
    begins, is_whole = first.from_ is None or first.from_ <= through, True
    kept = [first]
    for span in useful[1:]:
        end = kept[-1].until
        if end is not None and span.from_ is not None and span.from_ > max(end, through):
            if not through:  # from anywhere on: the changes behind the last gap are the state
                kept = [span]
                continue
            is_whole = False  # changes behind the gap must not be applied
            break
        kept.append(span)
    return Chain(lists=tuple(kept), starts_in_time=begins, is_contiguous=is_whole)


def _in_order(spans: Sequence[ChangeListSpan]) -> list[ChangeListSpan]:
    begun, keyed = -1, list[tuple[int, ChangeListSpan]]()
    for span in spans:
        start = begun if span.from_ is None else span.from_
        keyed.append((start, span))
        begun = start if span.until is None else max(start, span.until)
    return [span for _, span in sorted(keyed, key=itemgetter(0))]


def span_of(uri: str, header: Header) -> ChangeListSpan:
    """Return the interval in a Change List's own header."""
    return ChangeListSpan(
        uri=uri,
        from_=timestamps.known_microseconds(header.from_),
        until=timestamps.known_microseconds(header.until),
    )


def announced_span(uri: str, part: Part) -> ChangeListSpan:
    """Return the interval of a Change List as announced by an index or archive."""
    from_, until = part.from_, part.until
    return ChangeListSpan(
        uri=uri,
        from_=timestamps.known_microseconds(from_),
        until=timestamps.known_microseconds(until),
        announced=from_ is not None,
    )


def effective_span(
    announced: ChangeListSpan, header: Header, now: int
) -> tuple[ChangeListSpan, bool]:
    """Return the interval of a list: its own, else the one of its index; and if it may yet change.

    Some Sources write the interval into the index only, and end the last list at the moment of
    the request. So an end that only the index gives counts a day later: by then it is final,
    whatever the clock of the Source. Until then the list may grow.
    """
    own = span_of(announced.uri, header)
    if not announced.announced or own.from_ is not None or own.until is not None:
        check_announced(announced, header)
        return own, False
    if announced.until is None or announced.until <= now - timestamps.DAY:
        return announced, False
    return replace(announced, until=None), True


def is_archive(header: Header) -> bool:
    """True if a document is a Change List Archive or its index."""
    return header.capability is Capability.CHANGE_LIST_ARCHIVE


def check_announced(announced: ChangeListSpan, header: Header) -> None:
    """Check that a list is the one that its index announces, not a stale or mixed copy.

    A list that was closed after the index was read is no older than the index, so that is fine.
    """
    own = span_of(announced.uri, header)
    from_agrees = announced.from_ is None or own.from_ == announced.from_
    until_agrees = announced.until is None or own.until == announced.until
    if announced.announced and not (from_agrees and until_agrees):
        raise SourceUnavailableError(
            "a Change List does not match its index (a stale or mixed copy)",
            uri=announced.uri,
            evidence=(
                ("index", f"from {_iso(announced.from_)} until {_iso(announced.until)}"),
                ("list", f"from {_iso(own.from_)} until {_iso(own.until)}"),
                ("kept", "nothing was changed"),
            ),
            code="mixed-copies",
            hint=f"{OLD_COPY}: resourcesync validate URL",
        )


def _iso(moment: int | None) -> str:
    return "-" if moment is None else timestamps.from_microseconds(moment).isoformat()


class ListPrefix:
    """Number and digest of the first changes of a list, in order."""

    def __init__(self, address: Callable[[str], str] = str) -> None:
        from hashlib import sha256  # noqa: PLC0415 - the status of a mirror needs no digest

        self._address = address
        self._hash = sha256()
        self.entries = 0

    def add(self, change: Change) -> None:
        """Add the next change."""
        resource = change.resource
        time = "" if change.time is None else timestamps.to_microseconds(change.time)
        self._hash.update(
            f"{self._address(resource.uri)}\0{change.kind}\0{time}"
            f"\0{format_digests(resource.digests)}\0{resource.length}\n".encode(
                "utf-8", "surrogatepass"
            )
        )
        self.entries += 1

    def hexdigest(self) -> str:
        """Return the digest over all changes so far."""
        return self._hash.hexdigest()


class ReadingStart(msgspec.Struct, frozen=True, kw_only=True):
    """Moment from which Change Lists are read. Moments are microseconds.

    ``checkpoint`` is T, ``list_clock`` the same by the clock of the lists. ``is_resource_list``: it
    is the moment of a Resource List, which has all up to it, so that earlier changes are older than
    its entries; else a list may add a change of the second before late. ``is_beginning``: all
    changes count, those that were processed too. ``open_lists`` are behind an index. ``window`` is
    the processed list, if it gives no interval.
    """

    checkpoint: int
    list_clock: int
    is_resource_list: bool = False
    is_beginning: bool = False
    resource_list_at: int | None = None
    head: str = ""
    processed: tuple[ProcessedDocument, ...] = ()
    open_lists: tuple[str, ...] = ()
    last_changes: tuple[tuple[str, int | None], ...] = ()
    is_resource_clock_ahead: bool = False
    window: Window | None = None

    @property
    def new_since(self) -> int:
        """Start of new changes where no processed prefix tells."""
        if self.is_resource_list:  # whatever happened within its second may be later
            return self.list_clock - self.list_clock % OVERLAP
        return self.list_clock - OVERLAP

    def find(self, span: ChangeListSpan, address: Callable[[str], str]) -> ProcessedDocument | None:
        """Return the record of a list: by its start, or else by its address."""
        uri, start = address(span.uri), span.from_ or 0
        same = [done for done in self.processed if done.from_ == start]
        at_uri = [done for done in same if address(done.uri) == uri]
        return next(iter(at_uri or (same if start else ())), None)


class ListPositions(msgspec.Struct, frozen=True):
    """Number of changes in each list when a Resource List was first read.

    It is unknown whether the Resource List includes later changes, whatever their times; also if it
    is read again.

    ``stored`` has the numbers by list, if the Resource List was read before; ``window`` stands for
    a processed list that gives no interval, ``first_window`` is what that was at the first reading.
    ``vouched``: the operator vouches for the lists, and what was processed says nothing.
    """

    stored: Mapping[str, int] | None = None
    processed: tuple[ProcessedDocument, ...] = ()
    window: Window | None = None
    first_window: Window | None = None
    vouched: bool = False

    @property
    def processed_keys(self) -> tuple[str, ...]:
        """Keys of the changes that the last pull acted on, in a list that gives no interval."""
        return self.window.keys if self.window is not None and not self.vouched else ()

    def position_of(self, span: ChangeListSpan) -> int | None:
        """Return the number of changes that a list had; ``None`` if unknown."""
        if self.stored is not None:
            return self.stored.get(_list_key(span.uri, span.from_), 0)
        done = self.processed_of(span)
        return None if done is None else done.entries

    def processed_of(self, span: ChangeListSpan) -> ProcessedDocument | None:
        """Return a list as the last pull processed it; ``None`` if it did not."""
        return ReadingStart(checkpoint=0, list_clock=0, processed=self.processed).find(span, str)

    def is_over(self, span: ChangeListSpan) -> bool:
        """True if a list begins before one that was processed: lists follow each other (§12.2)."""
        begin = span.from_
        return begin is not None and any(done.from_ > begin for done in self.processed)

    def first_read(self, history: "ChangeHistory") -> tuple[Mapping[str, int], Window | None]:
        """Return the numbers and the window of the first reading, which may be this one."""
        if self.stored is not None:
            return self.stored, self.first_window
        records = (read.record for read in history.lists)
        counts = {_list_key(record.uri, record.from_): record.entries for record in records}
        return counts, history.window


def _list_key(uri: str, from_: int | None) -> str:
    return str(from_) if from_ else uri


class ReadList(msgspec.Struct, frozen=True):
    """A Change List behind the head, requested or known to be the same.

    ``known`` is the list as it was processed. It is intact if it begins with the changes that were.
    """

    record: ProcessedDocument
    known: ProcessedDocument | None
    is_intact: bool = True
    has_news: bool = False

    def is_of(self, done: ProcessedDocument) -> bool:
        """True if this is a list that was processed."""
        return self.known is not None and self.known[:2] == done[:2]


class ChangeHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Change Lists as read. Moments are microseconds.

    Moments are microseconds; ``checkpoint`` is the new T, ``list_clock`` the same by the
    clock of the lists, ``reported`` the latest moment that they give by their own clock.
    ``has_undated``: a new change has no time that counts. ``is_resource_clock_ahead``: times of
    resources never say how far the lists report. ``is_unchanged_head``: only its open lists were
    requested. ``window`` is the last list, if it gives no interval: then ``is_continuous`` says
    that no change before it is missing, and ``is_older`` that it is an older copy of the processed
    one. ``may_be_old``: some changes may be older than the Resource List.
    """

    head: str
    sorter: "ExternalSorter[ListedEntry]"
    checkpoint: int
    list_clock: int
    reported: int | None
    lists: tuple[ReadList, ...]
    starts_in_time: bool
    is_contiguous: bool
    change_count: int
    has_undated: bool
    documents: tuple[ProcessedDocument, ...]
    last_changes: tuple[tuple[str, int | None], ...]
    has_last_change: bool
    is_resource_clock_ahead: bool
    is_unchanged_head: bool
    is_of_dump: bool
    archive: str
    window: Window | None = None
    is_continuous: bool = True
    is_older: bool = False
    may_be_old: bool = False

    @property
    def reaches_back(self) -> bool:
        """True if the lists reach back to the old T without a gap."""
        return self.starts_in_time and self.is_contiguous and self.is_continuous

    @property
    def begins_at(self) -> int | None:
        """Start of the oldest list, by its own word; ``None`` if it gives none."""
        starts = [read.record.from_ for read in self.lists]
        return min(starts, default=None) if all(starts) else None

    @property
    def news_before_processed(self) -> tuple[ReadList, ...]:
        """Unknown lists whose news stand before processed changes, which may be later."""
        rest = dropwhile(lambda read: read.known is None, reversed(self.lists))
        return tuple(read for read in rest if read.known is None and read.has_news)


class LastChanges:
    """The change that was listed last, and whether lists still have the one processed last."""

    def __init__(self, known: Sequence[tuple[str, int | None]]) -> None:
        self._known = self._last = known[-1] if known else None
        self._is_listed = False

    def add(self, change: Change, begin: int | None) -> None:
        """Add the next change of a list, new or not."""
        time = None if change.time is None else timestamps.to_microseconds(change.time)
        self._last = change.resource.uri, time
        if time is not None and time >= (begin or time):
            self._is_listed |= self._last == self._known

    @property
    def recent(self) -> tuple[tuple[str, int | None], ...]:
        """The last one now, if there is one."""
        return () if self._last is None else (self._last,)

    @property
    def has_last(self) -> bool:
        """True if the lists have the change that was read last: then later ones are listed, too.

        It must be the same change: another one of the same resource proves nothing, and one without
        a time is never known to be the same.
        """
        return self._is_listed
