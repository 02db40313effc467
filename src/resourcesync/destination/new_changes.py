"""What is new in one Change List: behind what was processed, or by its times (§12)."""

from collections.abc import Iterator
from itertools import islice

from resourcesync.destination.cursor import (
    OVERLAP,
    ChangeListSpan,
    LatestChangeTime,
    ListPrefix,
    advance_checkpoint,
    count_old_entries,
    has_own_time,
    is_new,
    is_plausible,
    is_since,
    is_undated,
    without_borrowed_time,
)
from resourcesync.destination.history import ChangeHistory
from resourcesync.destination.resource_lists import document_record
from resourcesync.destination.seen_lists import changes_of, check_no_shorter, is_intact
from resourcesync.destination.selection import ResourceSelection
from resourcesync.discovery import FetchedDocument
from resourcesync.documents.reader import Document
from resourcesync.model.capabilities import RefusedEntry
from resourcesync.model.resources import Change
from resourcesync.ports.mirror import ProcessedDocument


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
            document, changes = self._open(0)
            known = 0
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
        is_news = history.change_count > changes_before
        history.interrupted.end_list(is_news=is_news)
        if is_news:
            prefix = self._prefix
            history.new_prefixes.append((span.from_ or 0, prefix.entries, prefix.hexdigest()))
        history.documents.append(
            document_record(self._fetched)._replace(
                from_=span.from_ or 0,
                until=span.until,
                entries=self._prefix.entries,
                prefix=self._prefix.hexdigest(),
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
