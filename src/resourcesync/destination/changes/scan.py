"""Scan of Change Lists (§12): whether they begin as processed, what is new, how far they move T."""

import sys
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from resourcesync.destination.changes import intervals
from resourcesync.destination.changes.intervals import has_own_time
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.lists.resource_reader import document_record
from resourcesync.destination.lists.selection import ResourceSelection
from resourcesync.destination.planner import UNREADABLE, ListedEntry
from resourcesync.discovery.document_fetcher import FetchedDocument
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import ProcessedDocument
from resourcesync.model.entries import Change, RefusedEntry
from resourcesync.model.timestamps import DAY
from resourcesync.model.vocabulary import ChangeKind

if TYPE_CHECKING:
    from resourcesync.documents.reader import Document

_NO_POSITIONS: Final = intervals.ListPositions()


class Reading:
    """Change Lists while they are read, one after the other."""

    def __init__(
        self,
        head: str,
        start: intervals.ReadingStart,
        sorter: ExternalSorter[ListedEntry],
        archived: Sequence[intervals.ChangeListSpan] = (),
        state: SqliteMirrorState | None = None,
    ) -> None:
        self._state = state
        self.head = head
        self.start = start
        self.sorter = sorter
        self.archived = tuple(archived)
        self.checkpoint = start.checkpoint
        self.list_clock = start.list_clock
        self.reported: int | None = None
        self.lists: list[intervals.ReadList] = []
        self.starts_in_time = self.is_contiguous = True
        self.change_count = 0
        self.documents: list[ProcessedDocument] = []
        self.last_changes = intervals.LastChanges(start.last_changes)
        self.is_resource_clock_ahead = start.is_resource_clock_ahead
        self.has_undated = self.is_outdated = False
        self.is_unchanged_head = self.is_of_dump = False
        self.archive = ""
        self.window: intervals.Window | None = None
        self.is_continuous = True
        self.is_older = self.may_be_old = False

    def history(self) -> intervals.ChangeHistory:
        """Return what was read."""
        fields: dict[str, Any] = {
            name: getattr(self, name, None) for name in intervals.ChangeHistory.__struct_fields__
        }
        fields |= {"lists": tuple(self.lists), "documents": tuple(self.documents)}
        fields["last_changes"] = self.last_changes.recent
        return intervals.ChangeHistory(**fields | {"has_last_change": self.last_changes.has_last})

    def known(self, uri: str, from_: int | None = None) -> ProcessedDocument | None:
        """Return the record of a document that an earlier pull processed."""
        return None if self._state is None else self._state.document(uri, from_)

    def add_processed(self, record: ProcessedDocument) -> None:
        """Add a list that was processed and is the same now."""
        self.lists.append(intervals.ReadList(record, record))
        self.report(record.until)

    def close_all_but_last(self) -> None:
        """Record all lists but the last as closed: they are not requested again."""
        for number, read in enumerate(self.lists[:-1]):
            until = read.record.until or read.record.from_
            self.lists[number] = replace(read, record=read.record._replace(until=until))

    def report(self, moment: int | None) -> None:
        """Record a moment that the lists give by their own clock."""
        if moment is not None:
            self.reported = max(moment, self.reported or moment)

    def follows(self, span: intervals.ChangeListSpan) -> bool:
        """True if all changes of an unknown list are new: it stands behind processed ones."""
        ends = {done.until for done in self.start.processed if done.until is not None}
        if span.from_ is not None and span.from_ in ends:
            return True
        return any(read.is_of(done) for done in self.start.processed for read in self.lists)


def changes_of(document: "Document") -> Iterator[Change]:
    """Yield the changes of a list that is no index."""
    for entry in document.entries():
        assert isinstance(entry, Change), "a Change List that is no index has changes"
        yield entry


class ChangeListScan:
    """Scan of one Change List: one pass, unless it gives no times."""

    def __init__(  # noqa: PLR0913 - what a list is read with
        self,
        fetched: FetchedDocument,
        span: intervals.ChangeListSpan,
        reading: Reading,
        *,
        selection: ResourceSelection,
        now: int,
        ended: int | None = None,
        positions: intervals.ListPositions = _NO_POSITIONS,
    ) -> None:
        self._fetched = fetched
        self._span = span
        self._reading = reading
        self._selection = selection
        self._now = now
        self._ended = ended
        self._positions = positions
        self._position_at_list = positions.position_of(span)
        self._prefix = intervals.ListPrefix(selection.addresses.mirror_uri)
        self._latest = intervals.LatestChangeTime(reading.start.list_clock, now)
        self._known = 0
        self._old_count: int | None = None
        self._processed: Container[int] | None = None

    def read(self, seen: ProcessedDocument | None) -> None:
        """Collect the new changes of the list."""
        reading, span, begins = self._reading, self._span, self._reading.start.is_beginning
        self._known = 0 if seen is None or begins else seen.entries
        document = self._fetched.open(self._refuse)
        changes = changes_of(document)
        for change in islice(changes, self._known):
            self._record(change)
        known, earlier = document.dropped, dict(document.tolerated_counts)
        count = reading.change_count
        is_intact = seen is None or (
            is_same_prefix(self._beginning(seen.entries) if begins else self._prefix, seen)
        )
        if is_intact or begins:
            self._collect_new(changes, is_known=seen is not None)
        else:  # it is not applied, but its times are of interest
            for change in changes:
                self._record(change)
        self._selection.refusals.count_tolerated(document, before=known, earlier=earlier)
        self._advance()
        record = document_record(self._fetched)._replace(
            from_=span.from_ or 0,
            until=span.until,
            entries=self._prefix.entries,
            prefix=self._prefix.hexdigest(),
        )
        reading.documents.append(record)
        has_news = reading.change_count > count and not begins
        reading.lists.append(intervals.ReadList(record, seen, is_intact, has_news))

    def read_window(self, *, follows: bool = False) -> None:
        """Collect the new changes of a list that gives no interval."""
        reading, start = self._reading, self._reading.start
        listed = list(self.listed_changes())
        order: Sequence[int] = range(len(listed))
        newest_first = intervals.is_newest_first(listed, start.window)
        if newest_first:
            order = order[::-1]
        ordered = [listed[position] for position in order]
        done = frozenset(self._positions.processed_keys)
        self._processed = {number for number, each in enumerate(listed) if each.key in done}
        if follows:
            news: Sequence[int] = range(len(ordered))
        elif start.is_resource_list:
            news = _since_list(ordered, start.list_clock, self._position_in(listed))
            own = (change.own_time for change in ordered)
            earliest = min((time for time in own if time is not None), default=None)
            reading.is_continuous = earliest is not None and earliest <= start.list_clock
        else:
            found = intervals.continuation(ordered, start.window, start.list_clock)
            reading.is_continuous, news, reading.is_older = found
            news = range(len(ordered)) if start.is_beginning else news
        reading.has_undated |= any(not ordered[number].is_own for number in news)
        reading.window = intervals.window_of(ordered, newest_first=newest_first)
        self._add_news([order[number] for number in news], in_order=newest_first is not None)
        self._advance()
        record = document_record(self._fetched)._replace(
            until=self._span.until, entries=self._prefix.entries, prefix=self._prefix.hexdigest()
        )
        reading.documents.append(record)
        reading.lists.append(intervals.ReadList(record, None, has_news=bool(news)))

    def _position_in(self, listed: Sequence[intervals.ChangeMark]) -> int | None:
        known = self._positions.first_window
        return self._position_at_list if known is None or intervals.shares(listed, known) else None

    def listed_changes(self) -> Iterator[intervals.ChangeMark]:
        """Yield the changes of the list, in its order, as far as continuity depends on them."""
        latest = max(self._now, self._reading.start.list_clock) + DAY
        for change in changes_of(self._fetched.open()):
            yield intervals.mark_of(intervals.without_borrowed_time(change, self._span), latest)

    def _add_news(self, positions: Sequence[int], *, in_order: bool) -> None:
        reading, start, wanted = self._reading, self._reading.start, set(positions)
        rows: dict[int, ListedEntry] = {}
        document = self._fetched.open(self._selection.refuse)
        for position, listed in enumerate(changes_of(document)):
            change = self._record(listed)
            if position not in wanted:
                continue
            reading.change_count += 1
            row = self._selection.change_row(change)
            if row is not None:
                row = self._with_age(row, change, position)
                # A deletion that may be old is a question to the Source.
                is_open = row.undated or not (
                    in_order and (reading.is_continuous or start.is_resource_list)
                )
                rows[position] = row._replace(undated=is_open)
        self._selection.refusals.count_tolerated(document)
        reading.sorter.add_all(rows[position] for position in positions if position in rows)

    def _record(self, listed: Change) -> Change:
        self._prefix.add(listed)
        self._reading.last_changes.add(listed, self._span.from_)
        change = intervals.without_borrowed_time(listed, self._span)
        self._latest.add(change)
        return change

    def _advance(self) -> None:
        reading, span, latest, now = self._reading, self._span, self._latest, self._now
        if not (reading.starts_in_time and reading.is_contiguous) and span.from_ is not None:
            # The gap lies before this list; from its start on everything is known.
            reading.checkpoint = intervals.advance_checkpoint(
                reading.checkpoint, until=span.from_, last=None, now=now
            )
        last, begun = latest.change_time, span.from_
        if last is None and begun is not None:
            last = (
                begun
                if intervals.is_plausible(begun, through=reading.list_clock, now=now)
                else None
            )
        reading.list_clock = intervals.advance_checkpoint(
            reading.list_clock, until=span.until, last=last, now=now
        )
        for moment in (span.from_, span.until, latest.reported):
            reading.report(moment)
        reading.is_resource_clock_ahead |= latest.is_resource_clock_ahead
        refusals = self._selection.refusals
        refusals.ahead = latest.ahead or refusals.ahead
        moved = latest.change_time if reading.is_resource_clock_ahead else latest.moment
        reading.checkpoint = intervals.advance_checkpoint(
            reading.checkpoint, until=span.until, last=moved, now=now
        )

    def _refuse(self, entry: RefusedEntry) -> None:
        # Entries before the new ones were refused when they were new.
        if self._prefix.entries >= self._known:
            self._selection.refuse(entry)
            row = self._selection.retained_row(entry.uri)
            if row is not None:
                self._reading.sorter.add(row._replace(change=UNREADABLE))

    def _collect_new(self, changes: Iterator[Change], *, is_known: bool) -> None:
        reading = self._reading
        until, begin = self._span.until, reading.start.new_since
        is_over = reading.start.is_resource_list and until is not None
        is_over = is_over and (until or 0) <= reading.start.list_clock
        is_new = is_known or reading.follows(self._span)
        for listed in changes:
            position = self._prefix.entries
            change = self._record(listed)
            if is_over:  # the Resource List has all of it
                continue
            if is_new:
                reading.has_undated |= intervals.is_undated(change, begin)
            elif not self._accept_by_time(change, position):
                continue
            reading.change_count += 1
            row = self._selection.change_row(change)
            if row is not None:
                reading.sorter.add(self._with_age(row, change, position))

    def _accept_by_time(self, change: Change, position: int) -> bool:
        """Return whether a change of a list that was not read before counts as new, by its time."""
        reading = self._reading
        begin = reading.start.new_since
        is_late = self._is_late(position)
        is_open = intervals.is_undated(change, begin)
        if not (reading.has_undated or is_late or is_open or intervals.is_since(change, begin)):
            return False
        if is_open or not has_own_time(change):
            if not reading.has_undated and self._is_old(change, position):
                return False
            reading.has_undated = True
        return True

    def _is_late(self, position: int) -> bool:
        before = self._position_at_list
        return before is not None and position >= before

    def _with_age(self, row: ListedEntry, change: Change, position: int) -> ListedEntry:
        if not self._is_age_unknown(change):
            return row
        self._reading.may_be_old = True
        start = self._reading.start
        is_dated = start.is_resource_list and change.time is not None
        is_older = is_dated and not intervals.is_since(change, start.new_since)
        # Whatever is in the mirror came later; or a Resource List did, that is new to it.
        if change.kind is ChangeKind.DELETED or self._positions.stored is None:
            is_older = is_older or position in self._processed_positions()
        elif self._is_late(position) and has_own_time(change):  # its Source lists late
            is_older = False
        return row._replace(undated=True, is_older=is_older)

    def _is_age_unknown(self, change: Change) -> bool:
        """True if it is unknown whether the Resource List includes this change.

        The list includes what happened up to its moment, that moment included. Later on, a change
        with an earlier time, though it is listed behind what was processed, may be late.
        """
        start = self._reading.start
        if start.is_resource_list:
            return not intervals.is_since(change, start.list_clock + 1)
        at = start.resource_list_at
        return at is not None and change.time is not None and not intervals.is_since(change, at)

    def _processed_positions(self) -> Container[int]:
        if self._processed is None:
            self._processed = range(self._count_processed())
        return self._processed

    def _count_processed(self) -> int:
        positions, span = self._positions, self._span
        done = positions.processed_of(span)
        if positions.vouched:
            return 0
        if done is None:
            return sys.maxsize if positions.is_over(span) else 0
        begin = self._beginning(done.entries)  # a list that got shorter may be an older copy
        is_known = begin.entries < done.entries or is_same_prefix(begin, done)
        return done.entries if is_known else 0

    def _beginning(self, entries: int) -> intervals.ListPrefix:
        prefix = intervals.ListPrefix(self._selection.addresses.mirror_uri)
        with self._reopened() as changes:
            for change in islice(changes, entries):
                prefix.add(change)
        return prefix

    @contextmanager
    def _reopened(self) -> Iterator[Iterator[Change]]:
        stream = self._fetched.stream
        place = stream.tell()
        yield changes_of(self._fetched.open())
        stream.seek(place)

    def _is_old(self, change: Change, position: int) -> bool:
        """True if the position of a change without its own time shows that it is older than T.

        All changes of a list that ended before T are, where a stale copy of its index calls it
        open. Otherwise one listed before an old change is, unless its time, even if that of the
        resource, is later: then its age is unknown, and the last change listed counts.
        """
        start = self._reading.start
        if self._ended is not None and self._ended < start.list_clock - intervals.OVERLAP:
            return True
        return (
            not intervals.is_since(change, start.new_since) and position < self._count_old_entries()
        )

    def _count_old_entries(self) -> int:
        if self._old_count is None:
            with self._reopened() as changes:
                timed = (intervals.without_borrowed_time(change, self._span) for change in changes)
                self._old_count = intervals.count_old_entries(timed, self._reading.start.new_since)
        return self._old_count


def is_same_prefix(prefix: intervals.ListPrefix, seen: ProcessedDocument) -> bool:
    """True if a list begins with the changes that were processed."""
    return (prefix.entries, prefix.hexdigest()) == (seen.entries, seen.prefix)


def _since_list(
    changes: Sequence[intervals.ChangeMark], at: int, before: int | None
) -> Sequence[int]:
    news: list[int] = []
    ended: set[str] = set()
    for position in range(len(changes) - 1, -1, -1):
        change = changes[position]
        is_late = before is not None and position >= before
        is_early = change.own_time is not None and change.own_time < at - at % intervals.OVERLAP
        if is_early and not is_late:
            ended.add(change.uri)  # what is listed before an old change of it is old, too
        elif change.own_time is not None or is_late or change.uri not in ended:
            news.append(position)
    return news[::-1]
