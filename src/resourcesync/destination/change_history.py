"""What was read of a Source's changes (§12).

Change Lists that were processed before: what is new in them, and whether they were rewritten.

What is new in one Change List: behind what was processed, or by its times (§12).
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
"""The note of the changes that were read last."""
RESOURCE_CLOCK_AHEAD: Final = "clock-ahead"
"""The note of whether the clock of the resources is ahead of that of the lists."""


@dataclass(slots=True, kw_only=True)
class ChangeHistory:
    """Change Lists as read.

    Attributes:
        head: The Change List or its index.
        spool: What is new, in the order of the lists. Close it after use.
        known: The old T: everything up to it was known.
        since: What the clock of the lists says of it, no later.
        begin: Changes from here on are new, where no processed prefix tells: a second before that,
            since a list may tell late of a change. A Resource List has all up to its own moment:
            what a change says of a resource before that is older than what the list says.
        through: The new T: everything up to it is in the spool or was known.
        listed: What the clock of the lists says of that.
        reaches: Whether the lists reach back to the old T without a hole; without it the spool is
            not whole.
        changes: How many new changes were found.
        undated: Whether one of them has no time that counts: nobody knows how old it is, so all
            that stand after it count as new, or an old one would have the last word on its URI.
        seen: The lists, for the next time.
        is_outdated: Whether the index calls a list open that is closed: it is older than that list.
        open_lists: The lists that further changes will be added to, if the head is none itself.
        archive: Where the lists of the past are, if a list says so.
        past: Lists of the past that are read too.
        is_after_list: Whether the changes since a Resource List are read, and not those since T.
        is_of_dump: Whether the manifests of a Change Dump were read in place of lists.
        rewritten: A list that does not begin any more with the changes that were processed.
        displaced: A list that was processed and whose time others cover now.
        doubted: A list whose Source may have been set back: it is new, and begins among the changes
            that were processed of another; or others cover its time by less than a second.
        last: The changes that were read last.
        news: The lists that told of something new.
        cut_off: Those of a reading that was not written down to its end.
        is_ahead: Whether the clock of the resources is ahead of that of the lists: then it never
            says how far they tell.
        unchanged: Whether the Source said that nothing is new.
        dialect: How the last list is written.
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
        """Take note of a change of the lists, new or not."""
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
    """Return what is known of changes before anything is read.

    Args:
        head: The Change List or its index.
        spool: Takes what is new; empty.
        since: T: everything up to here is known, microseconds.
        listed: What the clock of the lists says of it.
        past: Lists of the past that are read too.
        state: What is known of the lists; ``None`` when all is read anew.
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
    """Return the open lists behind an index, as they were when it was read last."""
    return (state.note(_open_lists_key(head)) or "").split()


def open_lists_note(history: ChangeHistory) -> dict[str, str]:
    """Return the note of the open lists behind an index."""
    return {_open_lists_key(history.head): " ".join(history.open_lists)}


def _open_lists_key(head: str) -> str:
    return f"open-list {head}"


def check_no_older(at: int, known: int | None) -> None:
    """Check that a Resource List is of no earlier moment than the last one that was processed.

    Args:
        at: Its moment, microseconds.
        known: That of the last one; ``None`` when none told its own.

    Raises:
        RollbackError: It is older: a copy of a cache, or the Source was set back.
    """
    if known is not None and at < known:
        raise RollbackError(
            "the Source's Resource List is older than the one already processed",
            evidence=(
                ("here", f"Resource List at {format_w3c(from_microseconds(known))}"),
                ("got", f"Resource List at {format_w3c(from_microseconds(at))}"),
                ("kept", "nothing was changed"),
            ),
            hint="if the Source was really set back: resourcesync pull --mode baseline",
        )


def continue_from(history: ChangeHistory, uri: str, *, known: int, listed: int, now: int) -> None:
    """Check that lists tell of all that was read of them before, so that T does not go back.

    The clock of the lists tells it exactly. T itself may be ahead of that, and changes of one
    moment that are read one by one each move it by a microsecond, which no list says.

    Args:
        history: What they tell since an earlier moment.
        uri: The Change List or its index.
        known: The T of the mirror: it knows everything up to here, microseconds.
        listed: What the clock of the lists says of that.
        now: The present moment.

    Raises:
        SourceUnavailableError: They tell of less: an old copy, or one that was cut.
    """
    if not history.reaches_back:
        return
    if (
        history.list_clock_checkpoint < min(listed, known)
        or history.checkpoint < min(known, now) - OVERLAP
    ):
        raise SourceUnavailableError(
            "the Change Lists tell of less than before (an old copy)",
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
    """Return what is known of a list; one that was closed may have been processed while open.

    Args:
        head: The Change List or its index.
        span: The list.
        state: What is known of lists.
    """
    known = state.document(span.uri, span.from_ or 0)
    if known is not None or not span.from_:
        return known
    places = (head, *open_lists_of(head, state))
    return next(filter(None, (state.document(place, span.from_) for place in places)), None)


class ListPositions:
    """How many changes of each list there were when a Resource List was read first.

    Of those that came later nobody knows whether that list has them, whatever time they tell; also
    not when it is read once more.

    Args:
        state: What is known of lists.
        at: The moment of the Resource List, microseconds.
    """

    def __init__(self, state: MirrorStateStore, at: int) -> None:
        self._state, self._at = state, at
        noted_at, noted = SyncState(state).list_positions
        self._stored = noted if noted_at == at else None

    def position_of(self, head: str, span: ChangeListSpan) -> int | None:
        """Return how many changes of a list there were; ``None`` where nobody knows.

        Args:
            head: The Change List or its index.
            span: The list.
        """
        if self._stored is not None:
            return self._stored.get(_list_key(span.uri, span.from_), 0)
        seen = find_list_record(head, span, self._state)
        return None if seen is None else seen.entries

    def encode(self, seen: Iterable[ProcessedDocument]) -> dict[str, str]:
        """Return the note of lists that were read now; empty if it stands already."""
        if self._stored is not None:
            return {}
        read = {
            _list_key(document.uri, document.from_): document.entries
            for document in seen
            if document.prefix
        }
        return encode_notes(beside_list=(self._at, read))


def _list_key(uri: str, from_: int | None) -> str:
    """Return what a list is known by: when it begins, wherever it is."""
    return str(from_) if from_ else uri


def index_record(index: FetchedDocument, history: ChangeHistory) -> ProcessedDocument:
    """Return what is remembered of an index; of an outdated one nobody may say it is the same."""
    seen = document_record(index)
    return seen._replace(etag="", last_modified="") if history.is_outdated else seen


def record_rewritten_lists(
    history: ChangeHistory, spans: Sequence[ChangeListSpan], state: MirrorStateStore | None
) -> None:
    """Note which lists that were processed others cover now, or may cover.

    Args:
        history: Takes it.
        spans: The lists that there are.
        state: What is known of lists.

    Raises:
        SourceUnavailableError: All of them end before what was read: an old copy.
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
            "the Change Lists end before what was read of them (an old copy)",
            uri=missing,
            evidence=(("kept", "nothing was changed"),),
            code="stale-copy",
            hint=OLD_COPY,
        )


def check_begins_no_earlier(span: ChangeListSpan, newest: ProcessedDocument | None) -> None:
    """Check that a list at a URI is none that was there before the one read last.

    Raises:
        SourceUnavailableError: It is: an old copy.
    """
    if newest is not None and newest.from_ > (span.from_ or 0):
        raise SourceUnavailableError(
            "a Change List begins earlier than the one that was read last (an old copy)",
            uri=span.uri,
            evidence=(("kept", "nothing was changed"),),
            code="stale-copy",
            hint=OLD_COPY,
        )


def check_no_shorter(entries: int, seen: ProcessedDocument) -> None:
    """Check that a list has as many changes as were processed.

    Args:
        entries: How many it has, of those that were processed.
        seen: What was processed.

    Raises:
        SourceUnavailableError: It has fewer: an old copy.
    """
    if entries < seen.entries:
        raise SourceUnavailableError(
            "a Change List is shorter than it was (an old copy)",
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
    """Whether the changes that were processed still stand at the start of a list."""
    return (prefix.entries, prefix.hexdigest()) == (seen.entries, seen.prefix)


def changes_of(document: Document) -> Iterator[Change]:
    """Yield the changes of a list that is no index."""
    for entry in document.entries():
        assert isinstance(entry, Change), "a Change List that is no index has changes"
        yield entry


class ChangeListScan:
    """Reads one Change List, once, unless it was written anew or does not tell its times.

    Args:
        fetched: The list.
        span: The interval that it covers.
        history: Takes what is new.
        selection: Turns entries into rows.
        now: The present moment, microseconds.
        ended: When it ended, if its index calls it open.
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
        """Spool what is new.

        Args:
            seen: What was processed of the list, so that all behind it is new.
            before: Where the changes since a Resource List are read: how many of the list there
                were when that was read first. One behind these has a say, even if it tells a time
                before that.

        Raises:
            SourceUnavailableError: It has fewer changes than were processed, and none that is
                later: an old copy.
            DocumentError: It cannot be used.
        """
        history, span = self._history, self._span
        intact, changes_before, known = True, history.change_count, 0
        document, changes = self._open(0 if seen is None else seen.entries)
        if seen is not None:
            self._skip_processed(changes)
            known = document.dropped
            if not self._latest.is_after_checkpoint:
                check_no_shorter(self._prefix.entries, seen)
            intact = is_intact(self._prefix, seen)
        if not intact:
            history.rewritten = history.rewritten or span.uri
            (document, changes), known = self._open(0), 0
        self._baseline_position = before
        self._collect_new(changes, seen, intact=intact)
        self._selection.refusals.count_dropped(document, before=known)
        now = self._now
        if not history.reaches_back and span.from_ is not None:
            # What is missing lies before this list; from its start on we know everything.
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
        is_news, prefix = history.change_count > changes_before, self._prefix
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
        """Move what the clock of the lists says of T: by times of changes, else by the list's."""
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
        """Begin to read the list, with so many changes in front that were processed."""
        self._prefix, self._known = ListPrefix(), known
        self._history.interrupted.begin_list(self._span.from_)
        self._latest = LatestChangeTime(self._history.old_list_clock_checkpoint, self._now)
        document = self._fetched.open(self._refuse)
        return document, changes_of(document)

    def _refuse(self, entry: RefusedEntry) -> None:
        # What stands before the new entries was refused when it was new.
        if self._prefix.entries >= self._known:
            self._selection.refuse(entry)

    def _skip_processed(self, changes: Iterator[Change]) -> None:
        """Read what was processed."""
        for change in islice(changes, self._known):
            self._prefix.add(change)
            self._history.record(change)
            self._latest.add(without_borrowed_time(change, self._span))

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
        """Return whether nobody knows if the Resource List has what this change led to.

        The list has what happened up to its own moment, and so at that very moment, too. Of a dump
        the packages have what they list.
        """
        history = self._history
        if history.is_of_dump or not history.is_after_list:
            return False
        return not is_since(change, history.new_since + 1)

    def _is_old(self, change: Change, position: int) -> bool:
        """Whether a change without a time of its own is older than T, as its place tells.

        All are in a list that ended before T, and that an old copy of its index calls open. Else
        one that stands before an old one is, unless its time, whose ever, is a later one: then
        nobody knows, and what stands behind it has the last word.
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
        """Return how many changes are older than T, as their order tells; read for it once."""
        stream, span = self._fetched.stream, self._span
        if self._old_count is None:
            place = stream.tell()  # the list is being read, and will be from here on
            changes = changes_of(self._fetched.open())
            timed = (without_borrowed_time(change, span) for change in changes)
            self._old_count = count_old_entries(timed, self._history.new_since)
            stream.seek(place)
        return self._old_count
