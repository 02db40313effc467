"""Cursor of a mirror in the Source's history: a chain of Change Lists, not a timestamp.

A timestamp alone loses changes: times repeat, are missing, come late, and lists are rewritten. So
the cursor is T (the checkpoint: everything up to it is known) and, for each list, the number of its
processed changes, proven by a digest over them. What stands behind that prefix is new. T may come
from the clock of the resources, so T by the clock of the lists is stored beside it.

A pull that is killed while it stores new changes leaves tasks behind, and has replaced others. They
are valid only while the lists still report what it read: each list with new changes must still
begin as before; it may have a new URI and more changes behind those.

A list that no longer begins with its processed prefix may have been sorted, merged, or cut at its
old end by its Source; then nothing is lost. Or the Source was restored from an older state and no
longer lists changes that were processed; or the list is a stale copy. The last changes read tell
which.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter
from typing import Final

import msgspec

from resourcesync.errors import SourceUnavailableError
from resourcesync.model.capabilities import Header
from resourcesync.model.digests import format_digests
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import from_microseconds, known_microseconds, to_microseconds
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.mirror import MirrorStateStore, ProcessedDocument

OLD_COPY: Final = "run again; if it repeats, check the Source's lists: resourcesync validate URL"
"""Hint for copies of lists that are inconsistent."""
DAY: Final = 24 * 3_600_000_000
OVERLAP: Final = 1_000_000
"""Interval before T that is read again in an unknown list: one second, in microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeListSpan:
    """URI of a Change List and the interval that it covers, in microseconds.

    Attributes:
        uri: The list's URI.
        from_: Start of the interval; ``None`` if unknown.
        until: End of the interval; ``None`` if the list is open, or the end is unknown.
        announced: An index gave the interval, so the list itself must agree.
        version: Version of a package among those of its name.
    """

    uri: str
    from_: int | None = None
    until: int | None = None
    announced: bool = False
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Change Lists to read, oldest first, and whether they reach back to T without a gap.

    Attributes:
        lists: The lists.
        starts_in_time: The first list begins at T or before.
        is_contiguous: There is no gap between the lists.
    """

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

    Args:
        spans: The present lists.
        through: T by the clock of the lists.
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
        uri=uri, from_=known_microseconds(header.from_), until=known_microseconds(header.until)
    )


def check_announced(announced: ChangeListSpan, header: Header) -> None:
    """Check that a list is the one that its index announces, not a stale or mixed copy.

    A list that was closed after the index was read is no older than the index, so that is fine.

    Raises:
        SourceUnavailableError: It is not; a later attempt may find them consistent.
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
            hint=OLD_COPY,
        )


def _iso(moment: int | None) -> str:
    return "-" if moment is None else from_microseconds(moment).isoformat()


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
        change_time: Latest time that a change has of its own; ``None`` if none has.
        is_resource_clock_ahead: A resource was modified after its change, by both clocks.
    """

    def __init__(self, since: int, now: int) -> None:
        self._since = since
        self._now = now
        self.change_time: int | None = None
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
            modified = known_microseconds(change.resource.lastmod)
            self.is_resource_clock_ahead |= modified is not None and modified > time + OVERLAP
        else:
            self._resource_time = max(self._resource_time, min(time, max(self._since, self._now)))

    @property
    def is_after_checkpoint(self) -> bool:
        """True if a change has its own time after T: no stale copy has such a change."""
        return self.change_time is not None and self.change_time > self._since

    @property
    def moment(self) -> int:
        """Latest time in microseconds; T itself if no change is later."""
        return self._resource_time if self.change_time is None else self.change_time


def find_superseded_list(
    spans: Sequence[ChangeListSpan],
    known: Iterable[ProcessedDocument],
    newest: int | None = None,
    *,
    margin: int = OVERLAP,
) -> str:
    """Return a processed list whose interval other lists cover now; empty if there is none.

    The interval of a dropped list stays uncovered. Where another list begins before it and ends
    after its start, or its end moved, the past was rewritten: it may have less than was processed.
    The same holds where a list that was open ends before one of its changes.

    Args:
        spans: The present lists.
        known: Records of processed lists.
        newest: Time of the newest processed change; ``None`` if none had one.
        margin: Tolerance, since a Source may write whole seconds. 0 finds also what the tolerance
            hides, and so proves nothing.
    """
    for seen in known:
        if not seen.from_:
            continue
        same = [
            span
            for span in spans
            if span.from_ is not None and abs(span.from_ - seen.from_) <= margin
        ]
        if any(_is_inside(seen.from_, span, margin) for span in spans) and not same:
            return seen.uri
        ends = [span.until for span in same if span.until is not None]
        if seen.until is not None:
            if ends and all(abs(end - seen.until) > margin for end in ends):
                return seen.uri
        elif len(ends) == len(same) > 0 and max(ends) < (newest or 0) - margin:
            return seen.uri
    return ""


def find_missing_newest_list(
    spans: Sequence[ChangeListSpan], known: Iterable[ProcessedDocument]
) -> str:
    """Return the newest processed list, where only older ones are left; empty if there is none.

    Old lists are dropped; the newest is not, unless others continue from its end, or from its start
    while it was open. Where all lists are closed and end earlier, one is missing, or the Source was
    restored from an older state.

    Args:
        spans: The present lists.
        known: Records of processed lists.
    """
    ends = [span.until for span in spans if span.until is not None]
    newest = max(known, key=lambda document: document.until or document.from_, default=None)
    if newest is None or len(ends) < len(spans):  # one is open
        return ""
    return newest.uri if max(ends, default=0) < (newest.until or newest.from_) else ""


def find_list_within_processed(
    spans: Sequence[ChangeListSpan], known: Iterable[ProcessedDocument], newest: int | None
) -> str:
    """Return a list that begins among the processed changes of an open one; empty if there is none.

    A Source that closes its list begins the next one after all its changes. One that was restored
    from an older state does not know them. One whose list covers the last day still has them.

    Args:
        spans: The present lists.
        known: Records of processed lists.
        newest: Time of the newest processed change; ``None`` if none had one.
    """
    documents = list(known)
    begins = [document.from_ for document in documents if document.from_ and document.until is None]
    if newest is None or not begins:
        return ""
    read = {(document.uri, document.from_) for document in documents}
    for span in spans:
        is_among = span.from_ is not None and min(begins) < span.from_ < newest
        if is_among and (span.uri, span.from_) not in read:
            return span.uri
    return ""


def _is_inside(moment: int, span: ChangeListSpan, margin: int) -> bool:
    if span.from_ is None or not span.from_ < moment - margin:
        return False
    return span.until is None or span.until > moment + margin


class ListPrefix:
    """Number and digest of the first changes of a list, in order."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.entries = 0

    def add(self, change: Change) -> None:
        """Add the next change."""
        resource = change.resource
        time = change.time
        self._hash.update(
            f"{resource.uri}\0{change.kind}\0{'' if time is None else to_microseconds(time)}"
            f"\0{format_digests(resource.digests)}\0{resource.length}\n".encode(
                "utf-8", "surrogatepass"
            )
        )
        self.entries += 1

    def hexdigest(self) -> str:
        """Return the digest over all changes so far."""
        return self._hash.hexdigest()


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


def is_new(
    change: Change, position: int, *, seen: ProcessedDocument | None, intact: bool, begin: int
) -> bool:
    """True if a change has to be processed.

    Args:
        change: The change.
        position: Its position in the list, from 0.
        seen: Record of this list.
        intact: The list still begins with its processed prefix.
        begin: Changes before this moment are known, microseconds.
    """
    if seen is not None and intact:
        return position >= seen.entries
    return is_undated(change, begin) or is_since(change, begin)


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


INTERRUPTED_CHANGES: Final = "cut-off-changes"
"""Name of the note of lists whose new changes are being stored; empty once all are."""
REPAIR_CHANGES: Final = "changes-beyond"
"""Name of the note of lists with changes that a repair acted on before T moved."""
_MAX_PREFIXES: Final = 10_000
PrefixRecord = tuple[int, int, str]
"""Start of a list, or 0, the number of its changes, and their digest."""
_UNPROVEN: Final[tuple[PrefixRecord, ...]] = ((-1, 0, ""),)
"""A prefix that no list has."""
_PREFIXES_DECODER: Final = msgspec.json.Decoder(tuple[PrefixRecord, ...])


class InterruptedReading:
    """Lists of an interrupted reading, until other lists prove to begin with the same prefixes.

    Args:
        read: Prefixes of the lists.
    """

    def __init__(self, read: Iterable[PrefixRecord]) -> None:
        self.missing = set(read)
        self._lengths = {entries for _, entries, _ in self.missing}
        self._matched = set[PrefixRecord]()
        self._list_begin = 0
        self._prefix = ListPrefix()

    @classmethod
    def from_notes(cls, *notes: str | None) -> "InterruptedReading":
        """Return the reading from notes; one that cannot be decoded is never proven."""
        try:
            return cls(read for note in notes for read in _PREFIXES_DECODER.decode(note or "[]"))
        except msgspec.MsgspecError:
            return cls(_UNPROVEN)

    @classmethod
    def from_state(cls, state: MirrorStateStore | None) -> "InterruptedReading":
        """Return the reading of lists whose changes were acted on before T moved."""
        return (
            cls(())
            if state is None
            else cls.from_notes(state.note(INTERRUPTED_CHANGES), state.note(REPAIR_CHANGES))
        )

    def begin_list(self, from_: int | None) -> None:
        """Begin with the first change of a list.

        Args:
            from_: Start of the list, microseconds; ``None`` if unknown.
        """
        self._matched, self._list_begin, self._prefix = set(), from_ or 0, ListPrefix()

    def add(self, change: Change) -> None:
        """Add the next change of the list, new or not."""
        if not self.missing:
            return
        prefix = self._prefix
        prefix.add(change)
        if prefix.entries in self._lengths:
            self._matched.add((self._list_begin, prefix.entries, prefix.hexdigest()))

    def end_list(self, *, is_news: bool) -> None:
        """End the list: what was new in it then must be new now.

        Args:
            is_news: The list had something new.
        """
        if is_news:
            self.missing -= self._matched

    @property
    def is_lost(self) -> bool:
        """True if some of what was read is no longer listed, as far as lists were read."""
        return bool(self.missing)


def encode_prefixes(read: Iterable[PrefixRecord]) -> str:
    """Return the note of the prefixes; too many to note are recorded as never proven."""
    kept = sorted(set(read))
    return msgspec.json.encode(kept if len(kept) <= _MAX_PREFIXES else list(_UNPROVEN)).decode()


MAX_RECENT: Final = 16
"""Number of resources whose last changes are stored."""
_MAX_BUFFERED: Final = 16 * MAX_RECENT
_LAST_CHANGES_DECODER: Final = msgspec.json.Decoder(tuple[int | None, list[tuple[str, int | None]]])


class LastChanges:
    """Resources that changed last, each with the time of its change, the newest at the end.

    Args:
        known: Changes of the previous reading, by URI.
        newest: Latest time that a change had of its own; a time that may be a resource's does not
            show when it was listed.
    """

    def __init__(self, known: Mapping[str, int | None], newest: int | None = None) -> None:
        self.newest = newest
        self._known = dict(known)
        self._recent = dict(known)
        self._listed_times: dict[str, int | None] = {}
        self._found_times: dict[str, int] = {}

    @classmethod
    def from_note(cls, note: str | None) -> "LastChanges":
        """Return the changes in a note; none if it cannot be decoded."""
        try:
            newest, known = _LAST_CHANGES_DECODER.decode(note or "[null,[]]")
            return cls(dict(known), newest)
        except msgspec.MsgspecError:
            return cls({})

    def encode(self) -> str:
        """Return the note of the last changes."""
        skipped = max(0, len(self._recent) - MAX_RECENT)
        kept = list(islice(self._recent.items(), skipped, None))
        return msgspec.json.encode((self.newest, kept)).decode()

    def add(self, change: Change) -> None:
        """Add the next change of the lists, new or not."""
        uri = change.resource.uri
        time = None if change.time is None else to_microseconds(change.time)
        if uri in self._known:
            known, met = self._known[uri], self._listed_times.get(uri)
            if time is not None and time == known:
                self._found_times[uri] = time
            self._listed_times[uri] = met if time is None else max(time, met or 0)
        if time is not None and change.time != change.resource.lastmod:
            self.newest = max(time, self.newest or time)
        recent = self._recent
        recent.pop(uri, None)
        recent[uri] = time
        if len(recent) > _MAX_BUFFERED:
            self._recent = dict(islice(recent.items(), len(recent) - MAX_RECENT, None))

    def are_found(self, begin: int | None) -> bool:
        """Return whether a known change is listed: then all later changes are listed, too.

        It must be the same change. Another change of the same resource proves nothing, however near
        its time is.

        Args:
            begin: Start of the first list, as it gives it; older changes prove nothing.
        """
        return any(begin is None or time >= begin for time in self._found_times.values())

    @property
    def are_withdrawn(self) -> bool:
        """True if no list has the newest known change, nor a later one of its resource.

        The newest is the change listed last, and also the one with the latest time: some Sources
        list earlier changes late. Where the resource changed again and only that is listed, the one
        before it decides, and so on. A change without a time proves nothing, but its resource must
        be listed.
        """
        listed = list(reversed(self._known.items()))
        timed = sorted(listed, key=lambda item: item[1] or 0, reverse=True)
        return self._is_first_lost(listed) or self._is_first_lost(timed)

    def _is_first_lost(self, known_changes: Iterable[tuple[str, int | None]]) -> bool:
        for uri, known in known_changes:
            if uri in self._found_times:
                return False
            if uri not in self._listed_times:
                return True
            met = self._listed_times[uri]
            if known is not None and met is not None and met < known:
                return True
        return False
