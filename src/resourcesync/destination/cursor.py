"""Where in the Source's history a mirror is: a chain of Change Lists, not a timestamp.

A timestamp alone loses changes: times repeat, are missing, come late, and lists are rewritten.
So the cursor is: T (everything up to it is known), and for each list how many of its changes were
processed, proven by a digest over them. What is new is what stands after that prefix. T may come
from the clock of the resources; so what the clock of the lists says of it is known beside it.

A reading of Change Lists whose news were not written down to their end: was it taken back?

A pull that is killed while it writes news down leaves tasks behind, and made others go. They are
right only as long as the lists still tell what it read. So each list with news must still begin as
it was; it may have a new place, and more changes behind those.

The changes that were read last: what a list that was written anew must still account for.

A list that does not begin any more with what was processed may have been sorted, merged or cut at
its old end by its Source; then nothing is lost. Or the Source was set back, and changes that were
processed are listed nowhere any more; or the list is an old copy. The last changes tell which.
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

OLD_COPY: Final = "run it again; if it repeats, look at its lists: resourcesync validate URL"
"""What to do about copies of lists that do not fit together."""
DAY: Final = 24 * 3_600_000_000
OVERLAP: Final = 1_000_000
"""How far before T a list is read again when it is met anew: one second, in microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeListSpan:
    """One Change List: where it is and which interval it covers, in microseconds.

    Attributes:
        uri: The list's URI.
        from_: All changes since here; ``None`` when nobody says.
        until: All changes up to here; ``None`` when it is open, or nobody says.
        announced: Whether an index said so, so that the list itself must agree.
        version: Of a package: what tells it from another one of its name.
    """

    uri: str
    from_: int | None = None
    until: int | None = None
    announced: bool = False
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The Change Lists to read, oldest first, and whether they reach back to T without a hole.

    Attributes:
        lists: The lists.
        begins: Whether the first of them begins at T or before.
        is_whole: Whether there is no hole behind it.
    """

    lists: tuple[ChangeListSpan, ...]
    starts_in_time: bool = True
    is_contiguous: bool = True

    @property
    def reaches_back(self) -> bool:
        """Whether they do."""
        return self.starts_in_time and self.is_contiguous


def chain(spans: Sequence[ChangeListSpan], through: int) -> Chain:
    """Choose the lists that may tell of changes after ``through`` (§12.2).

    Both ends of an interval belong to it, so a list that ends at ``through`` is read, or within the
    second before: changes of that second are looked at again (`is_since`), and a Source that was
    set back may have ended its list there. A list of which nobody says when it begins stands in
    its place: after the one before it.

    Args:
        spans: The lists that there are.
        through: T, as the clock of the lists has it.
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
            is_whole = False  # what stands behind the hole must not be applied
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
    """Return the interval that a Change List gives of itself."""
    return ChangeListSpan(
        uri=uri, from_=known_microseconds(header.from_), until=known_microseconds(header.until)
    )


def check_announced(announced: ChangeListSpan, header: Header) -> None:
    """Check that a list is the one that its index tells of, not an old or a mixed copy.

    A list that was closed after the index was read is no older than the index, so that is fine.

    Raises:
        SourceUnavailableError: It is not; a later try may find them in agreement.
    """
    own = span_of(announced.uri, header)
    from_agrees = announced.from_ is None or own.from_ == announced.from_
    until_agrees = announced.until is None or own.until == announced.until
    if announced.announced and not (from_agrees and until_agrees):
        raise SourceUnavailableError(
            "a Change List is not the one that its index tells of (an old or mixed copy)",
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
    """Whether a change has a time, and one that cannot be that of its resource."""
    return change.time is not None and change.time != change.resource.lastmod


class LatestChangeTime:
    """The latest time that the changes of a list tell, as far as it is believed.

    Times that may be those of resources count only where no change has one of its own: the clock
    of the resources may be ahead of that of the lists, and what is listed next would seem known.

    Args:
        since: Everything up to here is known, as the clock of the lists says.
        now: The present moment.

    Attributes:
        own: The latest time that a change has of its own; ``None`` when none has.
        is_ahead: Whether a resource was modified after its change, as both clocks tell.
    """

    def __init__(self, since: int, now: int) -> None:
        self._since = since
        self._now = now
        self.change_time: int | None = None
        self.is_resource_clock_ahead = False
        self._resource_time = since

    def add(self, change: Change) -> None:
        """Take the next change."""
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
        """Whether a change has a time of its own after T: no old copy tells of that."""
        return self.change_time is not None and self.change_time > self._since

    @property
    def moment(self) -> int:
        """It, in microseconds; T itself where no change is later."""
        return self._resource_time if self.change_time is None else self.change_time


def find_superseded_list(
    spans: Sequence[ChangeListSpan],
    known: Iterable[ProcessedDocument],
    newest: int | None = None,
    *,
    margin: int = OVERLAP,
) -> str:
    """Return a list that was processed and whose time others cover now; empty for none.

    Lists that are dropped leave their time to nobody. Where another one begins before it and ends
    after its beginning, or where its end is another one, the past was written anew: it may tell of
    less than was processed. So it was where a list that was open ends before a change of it.

    Args:
        spans: The lists that there are.
        known: Lists that were processed.
        newest: The time of the newest change that was processed; ``None`` when none had one.
        margin: What is so near counts as the same moment: who writes whole seconds is believed. 0
            finds also what is hidden there, and so proves nothing.
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
    """Return the newest list that was processed, where only older ones are left; empty for none.

    Old lists are dropped, the newest one is not, unless others go on from its end, or from its
    beginning while it was open: where all lists are closed, and end earlier, one is left out, or
    the Source was set back.

    Args:
        spans: The lists that there are.
        known: Lists that were processed.
    """
    ends = [span.until for span in spans if span.until is not None]
    newest = max(known, key=lambda document: document.until or document.from_, default=None)
    if newest is None or len(ends) < len(spans):  # one is open
        return ""
    return newest.uri if max(ends, default=0) < (newest.until or newest.from_) else ""


def find_list_within_processed(
    spans: Sequence[ChangeListSpan], known: Iterable[ProcessedDocument], newest: int | None
) -> str:
    """Return a list that begins among the changes that were read of an open one; empty for none.

    A Source that closes its list lets the next one begin after all changes of it. One that was set
    back does not know of them. One whose list tells of the last day has them still.

    Args:
        spans: The lists that there are.
        known: Lists that were processed.
        newest: The time of the newest change that was processed; ``None`` when none had one.
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
    """Counts and digests the changes of a list, in order."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.entries = 0

    def add(self, change: Change) -> None:
        """Take the next change."""
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
    """Return a deletion without its time, where that may be the one of the resource it was of.

    Who compares two Resource Lists knows when a resource was last modified, not when it went, and
    writes that down: ``resync`` does. In a list that tells of an interval a wrong time shows; in
    one that tells of none, the deletion stands where it stands, as one without a time does.

    Args:
        change: A change.
        span: The interval of its list.
    """
    is_borrowed = change.kind is ChangeKind.DELETED and change.time == change.resource.lastmod
    return replace(change, time=None) if is_borrowed and span.from_ is None else change


def is_new(
    change: Change, position: int, *, seen: ProcessedDocument | None, intact: bool, begin: int
) -> bool:
    """Whether a change has to be processed.

    Args:
        change: The change.
        position: Its place in the list, from 0.
        seen: What is known of this list.
        intact: Whether the prefix that is known stands there unaltered.
        begin: What happened before is known, microseconds.
    """
    if seen is not None and intact:
        return position >= seen.entries
    return is_undated(change, begin) or is_since(change, begin)


def is_since(change: Change, begin: int) -> bool:
    """Return whether a change tells that it happened at ``begin`` or later."""
    return change.time is not None and to_microseconds(change.time) >= begin


def is_undated(change: Change, begin: int) -> bool:
    """Whether nothing tells that a change happened before ``begin``.

    It has no time, or one that may be its resource's: a file that came from elsewhere was last
    modified long before it came here, and a Source may have two clocks. So an old ``lastmod`` says
    of no change that it is known already.
    """
    if change.time is None:
        return True
    return change.time == change.resource.lastmod and not is_since(change, begin)


def count_old_entries(changes: Iterable[Change], begin: int) -> int:
    """Return how many changes at the start of a list are known, as their order tells.

    Changes are listed in the order of their times (§12.1). So what stands before one that happened
    before ``begin`` did so as well, though it has no time itself.

    Args:
        changes: All changes of the list, in its order.
        begin: What happened before is known, microseconds.

    Returns:
        How many; 0 where their times are in no order, which then tells nothing.
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
    """Return the new T after a list was read to its end; times that are not believed do not count.

    Args:
        through: T before.
        until: The list's own ``until``, if it is closed.
        last: The latest believed time of its changes.
        now: The present moment.
    """
    if until is not None and is_plausible(until, through=through, now=now):
        return max(through, until)
    return through if last is None else max(through, last)


def is_later(at: int, read_at: int) -> bool:
    """Return whether a Resource List of ``at`` may be later than the one that was read.

    A time in whole seconds stands for all of its second.
    """
    return at > read_at or (at == read_at and at % OVERLAP == 0)


def is_plausible(moment: int, *, through: int, now: int) -> bool:
    """Whether a time may move T: it is not more than a day ahead of both ``now`` and T.

    One entry from the far future would otherwise hide all later changes. Such a time is not cut
    to a day either: changes of that day would be hidden.
    """
    return moment <= max(now, through) + DAY


INTERRUPTED_CHANGES: Final = "cut-off-changes"
"""The note of the lists whose news are being written down; empty when all of them are."""
REPAIR_CHANGES: Final = "changes-beyond"
"""The note of lists with news of which some were acted on, by a repair, before T moves."""
_MAX_PREFIXES: Final = 10_000
PrefixRecord = tuple[int, int, str]
"""When a list begins, or 0, how many changes it had, and their digest."""
_UNPROVEN: Final[tuple[PrefixRecord, ...]] = ((-1, 0, ""),)
"""What no list begins with."""
_PREFIXES_DECODER: Final = msgspec.json.Decoder(tuple[PrefixRecord, ...])


class InterruptedReading:
    """The lists of a reading that was cut off, until other lists prove to begin as they were.

    Args:
        read: What they were.
    """

    def __init__(self, read: Iterable[PrefixRecord]) -> None:
        self.missing = set(read)
        self._lengths = {entries for _, entries, _ in self.missing}
        self._matched = set[PrefixRecord]()
        self._list_begin = 0
        self._prefix = ListPrefix()

    @classmethod
    def from_notes(cls, *notes: str | None) -> "InterruptedReading":
        """Return what notes tell; nothing proves one that cannot be read."""
        try:
            return cls(read for note in notes for read in _PREFIXES_DECODER.decode(note or "[]"))
        except msgspec.MsgspecError:
            return cls(_UNPROVEN)

    @classmethod
    def from_state(cls, state: MirrorStateStore | None) -> "InterruptedReading":
        """Return what a mirror's memory tells of lists whose news were acted on before T moved."""
        return (
            cls(())
            if state is None
            else cls.from_notes(state.note(INTERRUPTED_CHANGES), state.note(REPAIR_CHANGES))
        )

    def begin_list(self, from_: int | None) -> None:
        """Begin with the first change of a list.

        Args:
            from_: When it begins, microseconds; ``None`` where it does not tell.
        """
        self._matched, self._list_begin, self._prefix = set(), from_ or 0, ListPrefix()

    def add(self, change: Change) -> None:
        """Take the next change of the list, new or not."""
        if not self.missing:
            return
        prefix = self._prefix
        prefix.add(change)
        if prefix.entries in self._lengths:
            self._matched.add((self._list_begin, prefix.entries, prefix.hexdigest()))

    def end_list(self, *, is_news: bool) -> None:
        """Take note of the list: what was news in it then must be so now.

        Args:
            is_news: Whether it told of something new.
        """
        if is_news:
            self.missing -= self._matched

    @property
    def is_lost(self) -> bool:
        """Whether what was read is not all listed any more, as far as lists were read."""
        return bool(self.missing)


def encode_prefixes(read: Iterable[PrefixRecord]) -> str:
    """Return what was read as a note; more than is worth to be noted is never proven."""
    kept = sorted(set(read))
    return msgspec.json.encode(kept if len(kept) <= _MAX_PREFIXES else list(_UNPROVEN)).decode()


MAX_RECENT: Final = 16
"""How many resources are remembered whose changes were read last."""
_MAX_BUFFERED: Final = 16 * MAX_RECENT
_LAST_CHANGES_DECODER: Final = msgspec.json.Decoder(tuple[int | None, list[tuple[str, int | None]]])


class LastChanges:
    """The resources that changed last, each with the time of its change, the newest at the end.

    Args:
        known: Those of the reading before, by URI.
        newest: The latest time that a change had of its own; one that may be that of a resource
            says nothing of when it was listed.
    """

    def __init__(self, known: Mapping[str, int | None], newest: int | None = None) -> None:
        self.newest = newest
        self._known = dict(known)
        self._recent = dict(known)
        self._listed_times: dict[str, int | None] = {}
        self._found_times: dict[str, int] = {}

    @classmethod
    def from_note(cls, note: str | None) -> "LastChanges":
        """Return what a note tells; nothing for one that cannot be read."""
        try:
            newest, known = _LAST_CHANGES_DECODER.decode(note or "[null,[]]")
            return cls(dict(known), newest)
        except msgspec.MsgspecError:
            return cls({})

    def encode(self) -> str:
        """Return the last ones as a note."""
        skipped = max(0, len(self._recent) - MAX_RECENT)
        kept = list(islice(self._recent.items(), skipped, None))
        return msgspec.json.encode((self.newest, kept)).decode()

    def add(self, change: Change) -> None:
        """Take the next change of the lists, new or not."""
        uri = change.resource.uri
        time = None if change.time is None else to_microseconds(change.time)
        if uri in self._known:
            self._compare(uri, time)
        if time is not None and change.time != change.resource.lastmod:
            self.newest = max(time, self.newest or time)
        recent = self._recent
        recent.pop(uri, None)
        recent[uri] = time
        if len(recent) > _MAX_BUFFERED:
            self._recent = dict(islice(recent.items(), len(recent) - MAX_RECENT, None))

    def _compare(self, uri: str, time: int | None) -> None:
        known, met = self._known[uri], self._listed_times.get(uri)
        if time is not None and time == known:
            self._found_times[uri] = time
        self._listed_times[uri] = met if time is None else max(time, met or 0)

    def are_found(self, begin: int | None) -> bool:
        """Return whether one of the known changes is listed: then all that came later is, too.

        It must be the very change. Another change of the same resource proves nothing, however
        near its time is.

        Args:
            begin: When the first of the lists begins, as it says; what is older proves nothing.
        """
        return any(begin is None or time >= begin for time in self._found_times.values())

    @property
    def are_withdrawn(self) -> bool:
        """Whether the newest of the known changes is in none of the lists, nor a later one for it.

        The newest is the one that was listed last, and so is the one with the latest time: some
        Sources list late what happened before. Where the resource changed again since, and only
        that is listed, the one before it tells, and so on. What has no time proves nothing; but
        its resource must be listed.
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
