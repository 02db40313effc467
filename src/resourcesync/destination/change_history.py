"""Change history: what was read of a Source's Change Lists (§12).

A list that was processed before is read from behind its processed prefix, another one by its times.
`ChangeHistory` also records which lists were rewritten.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from resourcesync.destination.cursor import (
    OLD_COPY,
    OVERLAP,
    ChangeListSpan,
    InterruptedReading,
    LastChanges,
    LatestChangeTime,
    ListPrefix,
    PrefixRecord,
    advance_checkpoint,
    count_old_entries,
    find_list_within_processed,
    find_missing_newest_list,
    find_superseded_list,
    has_own_time,
    is_new,
    is_plausible,
    is_since,
    is_undated,
    without_borrowed_time,
)
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.planner import ListedEntry
from resourcesync.destination.resource_reader import document_record
from resourcesync.destination.selection import ResourceSelection
from resourcesync.destination.sync_state import SyncState, encode_notes
from resourcesync.discovery import FetchedDocument
from resourcesync.documents.reader import Document
from resourcesync.errors import RollbackError, SourceUnavailableError
from resourcesync.model.capabilities import RefusedEntry
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import format_w3c, from_microseconds
from resourcesync.model.vocabulary import Dialect
from resourcesync.ports.mirror import MirrorStateStore, ProcessedDocument

LAST_CHANGES: Final = "last-changes"
"""Name of the note of the last changes read."""
RESOURCE_CLOCK_AHEAD: Final = "clock-ahead"
"""Name of the note that the clock of the resources is ahead of that of the lists."""


@dataclass(slots=True, kw_only=True)
class ChangeHistory:
    """Change Lists as read.

    Attributes:
        head: URI of the Change List or its index.
        sorter: New changes, in the order of the lists. Close it after use.
        old_checkpoint: The old T: everything up to it was known.
        old_list_clock_checkpoint: The old T by the clock of the lists, no later.
        new_since: Start of new changes where no processed prefix tells: one second before T, since
            a list may add a change late. A Resource List has all up to its own moment: earlier
            changes are older than its entries.
        checkpoint: The new T: everything up to it is in the sorter or was known.
        list_clock_checkpoint: The new T by the clock of the lists.
        reaches_back: The lists reach back to the old T without a gap; else the sorter is
            incomplete.
        change_count: Number of new changes.
        has_undated: A new change has no time that counts, so its age is unknown: all behind it
            count as new, or an old one would be the last for its URI.
        documents: Records of the lists, to be stored.
        is_outdated: The index calls a list open that is closed: it is older than that list.
        open_lists: Lists to which changes will be added, unless that is the head itself.
        archive: URI of the archive of older lists, if a list links to it.
        archived_lists: Archived lists that are read too.
        is_after_list: The changes since a Resource List are read, not those since T.
        is_of_dump: The manifests of a Change Dump were read in place of lists.
        rewritten: A list that no longer begins with its processed changes.
        superseded: A processed list whose interval other lists cover now.
        suspect: A sign that the Source was restored from an older state: a new list that begins
            among the processed changes of another, or other lists that cover its interval by less
            than a second.
        last_changes: The changes that were read last.
        new_prefixes: Prefixes of the lists with new changes.
        interrupted: Prefixes of the lists of an interrupted reading.
        is_resource_clock_ahead: The clock of the resources is ahead of that of the lists: its times
            never say how far the lists report.
        is_unchanged: The Source answered that nothing is new.
        dialect: Dialect of the last list.
    """

    head: str
    sorter: ExternalSorter[ListedEntry]
    old_checkpoint: int
    old_list_clock_checkpoint: int
    new_since: int
    checkpoint: int
    list_clock_checkpoint: int
    reaches_back: bool = True
    change_count: int = 0
    has_undated: bool = False
    documents: list[ProcessedDocument] = field(default_factory=list)
    is_outdated: bool = False
    open_lists: list[str] = field(default_factory=list)
    archive: str = ""
    archived_lists: tuple[ChangeListSpan, ...] = ()
    is_after_list: bool = False
    is_of_dump: bool = False
    rewritten: str = ""
    superseded: str = ""
    suspect: str = ""
    last_changes: LastChanges = field(default_factory=lambda: LastChanges({}))
    new_prefixes: list[PrefixRecord] = field(default_factory=list)
    interrupted: InterruptedReading = field(default_factory=lambda: InterruptedReading(()))
    is_resource_clock_ahead: bool = False
    is_unchanged: bool = False
    dialect: Dialect | None = None

    def record(self, change: Change) -> None:
        """Record a change of the lists, new or not."""
        self.last_changes.add(change)
        self.interrupted.add(change)


def new_history(
    head: str,
    spool: ExternalSorter[ListedEntry],
    *,
    since: int,
    listed: int,
    past: Iterable[ChangeListSpan],
    state: MirrorStateStore | None,
) -> ChangeHistory:
    """Return the history before anything is read.

    Args:
        head: URI of the Change List or its index.
        spool: Empty sorter for new changes.
        since: T: everything up to here is known, microseconds.
        listed: T by the clock of the lists.
        past: Archived lists that are read too.
        state: State of the mirror; ``None`` if all is read again.
    """
    noted = (lambda _: None) if state is None else state.note
    return ChangeHistory(
        head=head,
        sorter=spool,
        old_checkpoint=since,
        old_list_clock_checkpoint=listed,
        new_since=listed if state is None else listed - OVERLAP,
        checkpoint=since,
        list_clock_checkpoint=listed,
        archived_lists=tuple(past),
        last_changes=LastChanges.from_note(noted(LAST_CHANGES)),
        interrupted=InterruptedReading.from_state(state),
        is_resource_clock_ahead=noted(RESOURCE_CLOCK_AHEAD) == "1",
        is_after_list=state is None,
    )


def open_lists_of(head: str, state: MirrorStateStore) -> list[str]:
    """Return the open lists of an index, as of its last reading."""
    return (state.note(_open_lists_key(head)) or "").split()


def open_lists_note(history: ChangeHistory) -> dict[str, str]:
    """Return the note of the open lists of an index."""
    return {_open_lists_key(history.head): " ".join(history.open_lists)}


def _open_lists_key(head: str) -> str:
    return f"open-list {head}"


def check_no_older(at: int, known: int | None) -> None:
    """Check that a Resource List is not of an earlier moment than the last one processed.

    Args:
        at: Moment of the list, microseconds.
        known: Moment of the last list; ``None`` if none had one.

    Raises:
        RollbackError: It is older: a stale copy of a cache, or the Source was restored from an
            older state.
    """
    if known is not None and at < known:
        raise RollbackError(
            "the Source's Resource List is older than the one already processed",
            evidence=(
                ("here", f"Resource List at {format_w3c(from_microseconds(known))}"),
                ("got", f"Resource List at {format_w3c(from_microseconds(at))}"),
                ("kept", "nothing was changed"),
            ),
            hint="if the Source was restored from an older state:"
            " resourcesync pull --mode baseline",
        )


def continue_from(history: ChangeHistory, uri: str, *, known: int, listed: int, now: int) -> None:
    """Check that lists report all that was read of them before, so that T does not go back.

    The clock of the lists is exact. T itself may be ahead of it, and changes of one moment that are
    read one by one each move T by a microsecond, which no list has.

    Args:
        history: What the lists report since an earlier moment.
        uri: The Change List or its index.
        known: T of the mirror, microseconds.
        listed: T by the clock of the lists.
        now: The present moment.

    Raises:
        SourceUnavailableError: The lists report less: a stale or cut copy.
    """
    if not history.reaches_back:
        return
    if (
        history.list_clock_checkpoint < min(listed, known)
        or history.checkpoint < min(known, now) - OVERLAP
    ):
        raise SourceUnavailableError(
            "the Change Lists have fewer changes than before (a stale copy)",
            uri=uri,
            evidence=(
                ("here", f"complete to {format_w3c(from_microseconds(known))}"),
                ("got", f"changes to {format_w3c(from_microseconds(history.checkpoint))}"),
                ("kept", "nothing was changed"),
            ),
            code="stale-copy",
            hint=OLD_COPY,
        )
    history.checkpoint = max(history.checkpoint, known)


def find_list_record(
    head: str, span: ChangeListSpan, state: MirrorStateStore
) -> ProcessedDocument | None:
    """Return the record of a list; a closed list may have been processed while open.

    Args:
        head: The Change List or its index.
        span: The list.
        state: State of the mirror.
    """
    known = state.document(span.uri, span.from_ or 0)
    if known is not None or not span.from_:
        return known
    places = (head, *open_lists_of(head, state))
    return next(filter(None, (state.document(place, span.from_) for place in places)), None)


class ListPositions:
    """Number of changes in each list when a Resource List was first read.

    It is unknown whether the Resource List includes later changes, whatever their times; also if it
    is read again.

    Args:
        state: State of the mirror.
        at: Moment of the Resource List, microseconds.
    """

    def __init__(self, state: MirrorStateStore, at: int) -> None:
        self._state, self._at = state, at
        noted_at, noted = SyncState(state).list_positions
        self._stored = noted if noted_at == at else None

    def position_of(self, head: str, span: ChangeListSpan) -> int | None:
        """Return the number of changes that a list had; ``None`` if unknown.

        Args:
            head: The Change List or its index.
            span: The list.
        """
        if self._stored is not None:
            return self._stored.get(_list_key(span.uri, span.from_), 0)
        seen = find_list_record(head, span, self._state)
        return None if seen is None else seen.entries

    def encode(self, seen: Iterable[ProcessedDocument]) -> dict[str, str]:
        """Return the note of the lists read now; empty if it is stored already."""
        if self._stored is not None:
            return {}
        read = {
            _list_key(document.uri, document.from_): document.entries
            for document in seen
            if document.prefix
        }
        return encode_notes(beside_list=(self._at, read))


def _list_key(uri: str, from_: int | None) -> str:
    """Return the key of a list: its start, independent of its URI."""
    return str(from_) if from_ else uri


def index_record(index: FetchedDocument, history: ChangeHistory) -> ProcessedDocument:
    """Return the record of an index; without validators if it is outdated."""
    seen = document_record(index)
    return seen._replace(etag="", last_modified="") if history.is_outdated else seen


def record_rewritten_lists(
    history: ChangeHistory, spans: Sequence[ChangeListSpan], state: MirrorStateStore | None
) -> None:
    """Record which processed lists are covered, or may be covered, by other lists now.

    Args:
        history: Result of the reading.
        spans: The present lists.
        state: State of the mirror.

    Raises:
        SourceUnavailableError: All lists end before what was read: a stale copy.
    """
    if state is None:
        return
    head = history.head
    uris = {head, *open_lists_of(head, state), *(span.uri for span in spans)}
    known = [*filter(None, map(state.document, uris)), *state.closed_documents(1)]
    newest = LastChanges.from_note(state.note(LAST_CHANGES)).newest
    history.superseded = find_superseded_list(spans, known, newest)
    history.suspect = find_list_within_processed(spans, known, newest) or find_superseded_list(
        spans, known, newest, margin=0
    )
    if missing := find_missing_newest_list(spans, known):
        raise SourceUnavailableError(
            "the Change Lists end before changes already read (a stale copy)",
            uri=missing,
            evidence=(("kept", "nothing was changed"),),
            code="stale-copy",
            hint=OLD_COPY,
        )


def check_begins_no_earlier(span: ChangeListSpan, newest: ProcessedDocument | None) -> None:
    """Check that a list does not begin before the last one read from its URI.

    Raises:
        SourceUnavailableError: It does: a stale copy.
    """
    if newest is not None and newest.from_ > (span.from_ or 0):
        raise SourceUnavailableError(
            "a Change List begins earlier than the last one read (a stale copy)",
            uri=span.uri,
            evidence=(("kept", "nothing was changed"),),
            code="stale-copy",
            hint=OLD_COPY,
        )


def check_no_shorter(entries: int, seen: ProcessedDocument) -> None:
    """Check that a list has as many changes as were processed.

    Args:
        entries: Number of processed changes that it still has.
        seen: Record of the list.

    Raises:
        SourceUnavailableError: It has fewer: a stale copy.
    """
    if entries < seen.entries:
        raise SourceUnavailableError(
            "a Change List is shorter than before (a stale copy)",
            uri=seen.uri,
            evidence=(
                ("here", f"{seen.entries} changes were processed"),
                ("got", f"{entries} changes"),
                ("kept", "nothing was changed"),
            ),
            code="stale-copy",
            hint=OLD_COPY,
        )


def is_intact(prefix: ListPrefix, seen: ProcessedDocument) -> bool:
    """True if a list still begins with the changes that were processed."""
    return (prefix.entries, prefix.hexdigest()) == (seen.entries, seen.prefix)


def changes_of(document: Document) -> Iterator[Change]:
    """Yield the changes of a list that is no index."""
    for entry in document.entries():
        assert isinstance(entry, Change), "a Change List that is no index has changes"
        yield entry


class ChangeListScan:
    """Reader of one Change List: one pass, unless it was rewritten or gives no times.

    Args:
        fetched: The list.
        span: Interval that it covers.
        history: Receives what is new.
        selection: Turns entries into rows.
        now: The present moment, microseconds.
        ended: End of the list, if its index calls it open.
    """

    def __init__(
        self,
        fetched: FetchedDocument,
        span: ChangeListSpan,
        history: ChangeHistory,
        *,
        selection: ResourceSelection,
        now: int,
        ended: int | None = None,
    ) -> None:
        self._fetched = fetched
        self._span = span
        self._history = history
        self._selection = selection
        self._now = now
        self._ended = ended
        self._prefix = ListPrefix()
        self._latest = LatestChangeTime(history.old_list_clock_checkpoint, now)
        self._known = 0
        self._old_count: int | None = None
        self._baseline_position: int | None = None

    def read(self, seen: ProcessedDocument | None, before: int | None = None) -> None:
        """Collect the new changes of the list.

        Args:
            seen: Record of what was processed; all changes behind it are new.
            before: Number of changes in the list when the Resource List was first read, where the
                changes since that are read. Later ones count even with an earlier time.

        Raises:
            SourceUnavailableError: The list has fewer changes than were processed, and no later
                one: a stale copy.
            DocumentError: The list cannot be used.
        """
        history, span = self._history, self._span
        intact, changes_before, known = True, history.change_count, 0
        document, changes = self._open(0 if seen is None else seen.entries)
        if seen is not None:
            for change in islice(changes, self._known):
                self._prefix.add(change)
                self._history.record(change)
                self._latest.add(without_borrowed_time(change, self._span))
            known = document.dropped
            if not self._latest.is_after_checkpoint:
                check_no_shorter(self._prefix.entries, seen)
            intact = is_intact(self._prefix, seen)
        if not intact:
            history.rewritten = history.rewritten or span.uri
            document, changes = self._open(0)
            known = 0
        self._baseline_position = before
        self._collect_new(changes, seen, intact=intact)
        self._selection.refusals.count_dropped(document, before=known)
        now = self._now
        if not history.reaches_back and span.from_ is not None:
            # The gap lies before this list; from its start on everything is known.
            history.checkpoint = advance_checkpoint(
                history.checkpoint, until=span.from_, last=None, now=now
            )
        self._advance_list_clock()
        history.is_resource_clock_ahead |= self._latest.is_resource_clock_ahead
        last = self._latest.change_time if history.is_resource_clock_ahead else self._latest.moment
        history.checkpoint = advance_checkpoint(
            history.checkpoint, until=span.until, last=last, now=now
        )
        history.dialect = document.dialect
        self._record_list(is_news=history.change_count > changes_before)

    def _record_list(self, *, is_news: bool) -> None:
        """Record the list, now that it was read, and its prefix if it had something new."""
        history, span, prefix = self._history, self._span, self._prefix
        history.interrupted.end_list(is_news=is_news)
        if is_news:
            history.new_prefixes.append((span.from_ or 0, prefix.entries, prefix.hexdigest()))
        history.documents.append(
            document_record(self._fetched)._replace(
                from_=span.from_ or 0,
                until=span.until,
                entries=prefix.entries,
                prefix=prefix.hexdigest(),
            )
        )

    def _advance_list_clock(self) -> None:
        """Advance T by the clock of the lists: times of changes, else the start of the list."""
        history, now, begun = self._history, self._now, self._span.from_
        last = self._latest.change_time
        if last is None and begun is not None:
            last = (
                begun
                if is_plausible(begun, through=history.list_clock_checkpoint, now=now)
                else None
            )
        history.list_clock_checkpoint = advance_checkpoint(
            history.list_clock_checkpoint, until=self._span.until, last=last, now=now
        )

    def _open(self, known: int) -> tuple[Document, Iterator[Change]]:
        """Open the list, whose first ``known`` changes were processed."""
        self._prefix, self._known = ListPrefix(), known
        self._history.interrupted.begin_list(self._span.from_)
        self._latest = LatestChangeTime(self._history.old_list_clock_checkpoint, self._now)
        document = self._fetched.open(self._refuse)
        return document, changes_of(document)

    def _refuse(self, entry: RefusedEntry) -> None:
        # Entries before the new ones were refused when they were new.
        if self._prefix.entries >= self._known:
            self._selection.refuse(entry)

    def _collect_new(
        self, changes: Iterator[Change], seen: ProcessedDocument | None, *, intact: bool
    ) -> None:
        history, prefix = self._history, self._prefix
        is_known = seen is not None and intact
        until = self._span.until
        is_over = history.is_after_list and until is not None and until <= history.new_since
        for listed in changes:
            position = prefix.entries
            prefix.add(listed)
            history.record(listed)
            change = without_borrowed_time(listed, self._span)
            self._latest.add(change)
            if is_over:  # the Resource List has all of it
                continue
            is_late = self._baseline_position is not None and position >= self._baseline_position
            if not (history.has_undated or is_late) and not is_new(
                change, position, seen=seen, intact=intact, begin=history.new_since
            ):
                continue
            if is_undated(change, history.new_since) or not (is_known or has_own_time(change)):
                if not (is_known or history.has_undated) and self._is_old(change, position):
                    continue
                history.has_undated = True
            history.change_count += 1
            row = self._selection.change_row(change)
            if row is not None:
                history.sorter.add(
                    row._replace(undated=True) if self._is_age_unknown(change) else row
                )

    def _is_age_unknown(self, change: Change) -> bool:
        """True if it is unknown whether the Resource List includes this change.

        The list includes what happened up to its moment, that moment included. The packages of a
        dump hold what they list.
        """
        history = self._history
        if history.is_of_dump or not history.is_after_list:
            return False
        return not is_since(change, history.new_since + 1)

    def _is_old(self, change: Change, position: int) -> bool:
        """True if the position of a change without its own time shows that it is older than T.

        All changes of a list that ended before T are, where a stale copy of its index calls it
        open. Otherwise one listed before an old change is, unless its time, even if that of the
        resource, is later: then its age is unknown, and the last change listed counts.
        """
        if (
            self._ended is not None
            and self._ended < self._history.old_list_clock_checkpoint - OVERLAP
        ):
            return True
        return (
            not is_since(change, self._history.new_since) and position < self._count_old_entries()
        )

    def _count_old_entries(self) -> int:
        """Return how many changes are older than T by their order; read once."""
        stream, span = self._fetched.stream, self._span
        if self._old_count is None:
            place = stream.tell()  # the list is being read; reading continues from here
            changes = changes_of(self._fetched.open())
            timed = (without_borrowed_time(change, span) for change in changes)
            self._old_count = count_old_entries(timed, self._history.new_since)
            stream.seek(place)
        return self._old_count
