"""Reader of new changes from a Source's Change Lists (§12), with their archives where needed.

All lists are read and checked against each other first: a stale copy, a gap in an index, a list
that was rewritten or reset. Only then does the mirror act on them.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from resourcesync import errors
from resourcesync.destination.changes import intervals
from resourcesync.destination.changes.intervals import shares
from resourcesync.destination.changes.scan import ChangeListScan, Reading
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.lists.list_documents import (
    check_capability,
    check_list,
    parts_of,
    too_many_listed,
)
from resourcesync.destination.lists.resource_reader import document_record
from resourcesync.destination.lists.selection import ResourceSelection
from resourcesync.destination.planner import ListedEntry
from resourcesync.discovery.document_fetcher import DocumentFetcher, FetchedDocument, fetch
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import ProcessedDocument
from resourcesync.model.entries import Change
from resourcesync.model.timestamps import known_microseconds, to_microseconds
from resourcesync.model.vocabulary import Capability, Relation
from resourcesync.ports import CancelToken

if TYPE_CHECKING:
    from resourcesync.destination.lists.dump_packages import DumpPackage, DumpPackages
    from resourcesync.documents.reader import Document

_log = logging.getLogger(__name__)
_RETRY_DELAYS: Final = (0.5, 1.0, 2.0)
"""Seconds to wait before inconsistent lists are read again."""
_MIXED: Final = "mixed-copies"


class ChangeListReader(msgspec.Struct, kw_only=True):
    """Reader of Change Lists.

    Without ``packages`` a Change Dump, which takes the place of lists of a Source that has no
    others, is refused; ``packed`` are the Change Lists that are dumps. ``archive`` is read only
    where the other lists do not reach back to T; ``archived`` are the packages of one.
    ``positions`` are for reading the changes since a Resource List: changes behind these count,
    whatever their time.
    """

    documents: DocumentFetcher
    selection: ResourceSelection
    cancel: CancelToken
    new_sorter: Callable[[], ExternalSorter[ListedEntry]]
    packages: "Callable[[], DumpPackages] | None" = None
    packed: set[str] = msgspec.field(default_factory=set)
    archive: str = ""
    positions: intervals.ListPositions = intervals.ListPositions()
    archived: "dict[str, DumpPackage]" = {}

    def bypassing_caches(self) -> "ChangeListReader":
        """Return the same reader, with requests that bypass all caches."""
        get = self.packages
        packages = get and (lambda: get().bypassing_caches())
        return replace(self, documents=self.documents.uncached(), packages=packages)

    def read(
        self,
        uri: str,
        start: intervals.ReadingStart,
        state: SqliteMirrorState | None,
        is_proven: Callable[[intervals.ChangeHistory], bool],
    ) -> intervals.ChangeHistory:
        """Read what is new in the Change List at ``uri``, or in the lists of its index.

        Lists that do not continue what was processed may be old copies: they are read again past
        all caches, and with the archive of older lists if there is one.
        """
        mark = self.selection.refusals.mark()
        history = self.read_consistent(uri, start, state)
        if is_proven(history):
            return history
        archive = history.archive or self.archive
        archive = "" if archive == uri else archive
        if state is None and not archive:
            return history
        with ExitStack() as stack:
            stack.enter_context(history.sorter)
            after = self.selection.refusals.mark()
            self.selection.refusals.restore(mark)
            whole = self._read_again(uri, start, state, archive)
            if whole is not None and (is_proven(whole) or not archive or _reaches_back(whole)):
                return whole  # lists that reach back are judged, even if they prove nothing
            if whole is not None:
                whole.sorter.close()
            self.selection.refusals.restore(after)
            stack.pop_all()
        return history

    def read_since(
        self, uri: str, at: int, positions: intervals.ListPositions
    ) -> intervals.ChangeHistory:
        """Read the changes since a Resource List, past all caches.

        Nothing would show that the lists are stale copies: no change time that counts, and no list
        read before.
        """
        start = intervals.ReadingStart(checkpoint=at, list_clock=at, is_resource_list=True)
        fresh = replace(self.bypassing_caches(), positions=positions)
        return fresh.read(uri, start, None, _reaches_back)

    def _read_again(
        self, uri: str, start: intervals.ReadingStart, state: SqliteMirrorState | None, archive: str
    ) -> intervals.ChangeHistory | None:
        reader = self.bypassing_caches()
        if not archive:
            return reader.read_consistent(uri, start, state)
        try:
            return reader.read_consistent(uri, start, state, reader.archived_spans(archive))
        except (errors.SourceError, errors.DocumentError) as error:
            _log.warning("cannot use the archive of Change Lists at %s: %s", archive, error)
            return None

    def archived_spans(self, archive: str) -> list[intervals.ChangeListSpan]:
        """Return the lists of an archive, or the packages of an archive of Change Dumps."""
        with fetch(self.documents, archive) as fetched:
            document = fetched.open()
            packages = self.packages
            if document.header.capability is not Capability.CHANGE_DUMP_ARCHIVE or not packages:
                return _in_time_order(self.documents, _archived_lists(self.documents, document))
            dumps = [*parts_of(document)]
        for uri in dumps:
            offered = packages().packages_at(uri)
            self.archived = self.archived | {package.uri: package for package in offered}
        return _package_spans(self.archived.values())

    def read_consistent(
        self,
        uri: str,
        start: intervals.ReadingStart,
        state: SqliteMirrorState | None,
        archived: Sequence[intervals.ChangeListSpan] = (),
    ) -> intervals.ChangeHistory:
        """Read the lists; again, past caches, where index and lists do not agree."""
        waits, reader = iter(_RETRY_DELAYS), self
        while True:
            mark = self.selection.refusals.mark()
            reading = Reading(uri, start, self.new_sorter(), archived, state)
            try:
                reader._read_head(uri, reading)
            except BaseException as error:
                reading.sorter.close()
                wait = next(waits, None)
                is_mixed = isinstance(error, errors.SourceUnavailableError) and error.code == _MIXED
                if not is_mixed or wait is None:
                    raise
                _log.info("reading the Change Lists again: %s", error)
                self.selection.refusals.restore(mark)
                self.cancel.wait(wait)
                reader = self.bypassing_caches()
            else:
                return reading.history()

    def _read_head(self, uri: str, reading: Reading, *, climbed: bool = False) -> None:
        with ExitStack() as opened:
            head = self._get(uri, reading, opened)
            if head is None:
                self._read_open_lists(reading)
                known = reading.known(uri) if reading.is_outdated else None
                if known is not None:
                    reading.documents.append(_index_record(known, reading))
                return
            document = head.open()
            packages = self.packages
            if document.header.capability is Capability.CHANGE_DUMP and packages:
                self._read_dump(document, packages(), reading)
                if not document.header.is_index:  # its parts may change without it
                    reading.documents.append(document_record(head))
                return
            reading.archive = document.header.link(Relation.ARCHIVES) or ""
            if not intervals.is_archive(document.header):
                check_capability(document, Capability.CHANGE_LIST)
            is_index, is_archive = document.header.is_index, intervals.is_archive(document.header)
            if is_index or is_archive:
                self._read_index(document, reading)
                if not (is_index and is_archive):  # else its lists may grow while it stays the same
                    reading.documents.append(_index_record(document_record(head), reading))
                return
            self._read_one_list(head, document, reading, climbed=climbed)

    def _read_one_list(
        self, head: FetchedDocument, document: "Document", reading: Reading, *, climbed: bool
    ) -> None:
        span = intervals.span_of(head.uri, document.header)
        reading.starts_in_time = intervals.chain([span], reading.start.list_clock).reaches_back
        index = document.header.link(Relation.INDEX)
        if index is not None and not reading.starts_in_time and not climbed:
            self._read_head(index, reading, climbed=True)
        elif reading.archived and span.from_ is None:
            self._read_windows([*reading.archived, span], reading)
        elif reading.archived and not reading.starts_in_time:
            spans = _merge_spans(reading.archived, [span], self.selection)
            self._read_chain(spans, self._get_list, reading)
        else:
            self._read_list(head, span, reading)

    def _read_windows(self, spans: list[intervals.ChangeListSpan], reading: Reading) -> None:
        first = len(spans) - 1
        for number in range(len(spans) - 1, -1, -1):
            with self._get_list(spans[number].uri) as fetched:
                listed = list(self._scan(fetched, spans[number], reading).listed_changes())
            if shares(listed, reading.start.window):
                first = number
                break
        for number in range(first, len(spans)):
            with self._get_list(spans[number].uri) as fetched:
                self._scan(fetched, spans[number], reading).read_window(follows=number > first)

    def _get(self, uri: str, reading: Reading, opened: ExitStack) -> FetchedDocument | None:
        # That another head is the same proves nothing: its open lists are not those of the cursor.
        is_followed = uri == reading.start.head or uri in reading.start.open_lists
        known = reading.known(uri) if is_followed and not reading.archived else None
        fetched = self.documents.get(uri, known)
        return None if fetched is None else opened.enter_context(fetched)

    def _read_open_lists(self, reading: Reading) -> None:
        reading.is_unchanged_head = True
        for uri in reading.start.open_lists:
            with ExitStack() as opened:
                fetched = self._get(uri, reading, opened)
                if fetched is None:
                    continue
                document = fetched.open()
                check_list(document, Capability.CHANGE_LIST)
                span = intervals.span_of(uri, document.header)
                reading.is_outdated |= span.until is not None  # the index calls it open
                self._read_list(fetched, span, reading)
                reading.starts_in_time &= intervals.chain(
                    [span], reading.start.list_clock
                ).reaches_back

    def _read_index(self, index: "Document", reading: Reading) -> None:
        if intervals.is_archive(index.header):
            spans = _in_time_order(self.documents, _archived_lists(self.documents, index))
        else:
            spans = [intervals.announced_span(*item) for item in parts_of(index).items()]
        spans = _merge_spans(reading.archived, spans, self.selection)
        if len(spans) > 1 and (
            not intervals.is_archive(index.header)
            or self._with_own_interval(spans[0]).from_ is not None
        ):  # archives of drafts give no times, nor do their lists: then each is read once
            spans = [self._with_own_interval(span) for span in spans]
        self._read_chain(spans, self._get_list, reading)
        if intervals.is_archive(index.header):  # its lists are closed, except perhaps the last
            reading.close_all_but_last()

    def _with_own_interval(self, span: intervals.ChangeListSpan) -> intervals.ChangeListSpan:
        if span.from_ is not None:
            return span
        with self._get_list(span.uri) as fetched:
            own = intervals.span_of(span.uri, fetched.open().header)
        # The list is read again in its turn, and must be the same then.
        return replace(own, announced=own.from_ is not None)

    def _read_dump(self, dump: "Document", packages: "DumpPackages", reading: Reading) -> None:
        reading.is_of_dump = True
        self.packed.add(reading.head)
        offered = {package.uri: package for package in packages.of_dump(dump)}
        spans = _package_spans(offered.values(), reading.known)
        self._read_chain(spans, lambda uri: packages.manifest(offered[uri]), reading)

    def _get_list(self, uri: str) -> FetchedDocument:
        packages, archived = self.packages, self.archived.get(uri)
        if packages is not None and archived is not None:
            return packages().manifest(archived)
        fetched = fetch(self.documents, uri)
        with ExitStack() as opened:
            check_list(opened.enter_context(fetched).open(), Capability.CHANGE_LIST)
            opened.pop_all()
        return fetched

    def _read_chain(
        self,
        spans: list[intervals.ChangeListSpan],
        get: Callable[[str], FetchedDocument],
        reading: Reading,
    ) -> None:
        through = reading.start.list_clock
        lists = intervals.chain(spans, through)
        reading.starts_in_time, reading.is_contiguous = lists.starts_in_time, lists.is_contiguous
        end, first = None, True
        for announced in lists.lists:
            known = _processed_record(announced, reading)
            if known is not None:
                reading.add_processed(known)
                first, end = False, announced.until
                continue
            with get(announced.uri) as fetched:
                now = to_microseconds(self.cancel.clock.now())
                span, is_provisional = intervals.effective_span(
                    announced, fetched.open().header, now
                )
                reading.is_outdated |= is_provisional  # the index must be read again next time
                if first:  # an index need not give intervals, but each list does
                    reading.starts_in_time &= intervals.chain([span], through).reaches_back
                elif end is not None and (span.from_ or 0) > max(end, through):
                    reading.is_contiguous = False
                    return
                ended = span.until if announced.until is None else None
                reading.is_outdated |= announced.announced and ended is not None
                self._read_list(fetched, span, reading, ended)
            first, end = False, span.until

    def _read_list(
        self,
        fetched: FetchedDocument,
        span: intervals.ChangeListSpan,
        reading: Reading,
        ended: int | None = None,
    ) -> None:
        self.selection.addresses.add_source_addresses(fetched.uri, fetched.final_uri)
        seen = reading.start.find(span, self.selection.addresses.mirror_uri)
        if seen is None:  # an older list, which is listed again
            seen = reading.known(span.uri, span.from_ or 0)
        scan = self._scan(fetched, span, reading, ended)
        if span.from_ is None and span.uri == reading.head and not reading.is_of_dump:
            scan.read_window()
        else:
            scan.read(seen)

    def _scan(
        self,
        fetched: FetchedDocument,
        span: intervals.ChangeListSpan,
        reading: Reading,
        ended: int | None = None,
    ) -> ChangeListScan:
        now, selection = to_microseconds(self.cancel.clock.now()), self.selection
        return ChangeListScan(
            fetched,
            span,
            reading,
            selection=selection,
            now=now,
            ended=ended,
            positions=self.positions,
        )


def _reaches_back(history: intervals.ChangeHistory) -> bool:
    return history.reaches_back


def _index_record(record: ProcessedDocument, reading: Reading) -> ProcessedDocument:
    return record._replace(etag="", last_modified="") if reading.is_outdated else record


def _processed_record(
    announced: intervals.ChangeListSpan, reading: Reading
) -> ProcessedDocument | None:
    known = reading.known(announced.uri, announced.from_)
    if known is None or announced.from_ is None:
        return None
    if reading.is_of_dump:
        return known if announced.version == known.etag != "" else None
    return known if announced.until is not None and known.until == announced.until else None


def _merge_spans(
    archived_spans: Iterable[intervals.ChangeListSpan],
    present: Iterable[intervals.ChangeListSpan],
    selection: ResourceSelection,
) -> list[intervals.ChangeListSpan]:
    """Return archived and present lists, each once, as it is now.

    A list at two addresses, since its Source moved to TLS, counts once: read again after its
    successors, it would undo them.
    """
    spans = {selection.addresses.mirror_uri(span.uri): span for span in archived_spans}
    spans.update((selection.addresses.mirror_uri(span.uri), span) for span in present)
    return list(spans.values())


def _package_spans(
    packages: "Iterable[DumpPackage]",
    known_as: Callable[[str], ProcessedDocument | None] = lambda _: None,
) -> list[intervals.ChangeListSpan]:
    spans: list[intervals.ChangeListSpan] = []
    begun = 0
    for offered in packages:
        from_, until = offered.entry.from_, offered.entry.until
        span = intervals.ChangeListSpan(
            uri=offered.uri,
            from_=known_microseconds(from_),
            until=known_microseconds(until),
            version=offered.version,
        )
        known = known_as(offered.uri)
        if span.from_ is None and known is not None and known.until is not None:
            span = replace(span, from_=known.from_, until=known.until)
        elif span.from_ is None:
            span = replace(span, from_=begun or known_microseconds(offered.dump.from_))
        begun = span.until or span.from_ or begun
        spans.append(span)
    return spans


_MAX_ARCHIVED: Final = 50_000


def _archived_lists(
    documents: DocumentFetcher, archive: "Document"
) -> list[intervals.ChangeListSpan]:
    spans: dict[str, intervals.ChangeListSpan] = {}
    for span in _read_archive(documents, archive):
        spans.setdefault(span.uri, span)
        if len(spans) > _MAX_ARCHIVED:
            raise too_many_listed(archive.uri, "an archive lists too many documents", _MAX_ARCHIVED)
    return list(spans.values())


def _read_archive(
    documents: DocumentFetcher, archive: "Document"
) -> Iterator[intervals.ChangeListSpan]:
    check_capability(archive, Capability.CHANGE_LIST_ARCHIVE)
    parts = parts_of(archive)
    spans = (intervals.announced_span(*item) for item in parts.items())
    if not archive.header.is_index:
        yield from spans
        return
    for uri in parts:
        with fetch(documents, uri) as fetched:
            inner = fetched.open()
            if inner.header.capability is Capability.CHANGE_LIST:
                yield from spans
                return
            check_list(inner, Capability.CHANGE_LIST_ARCHIVE)
            yield from _read_archive(documents, inner)


def _in_time_order(
    documents: DocumentFetcher, spans: list[intervals.ChangeListSpan]
) -> list[intervals.ChangeListSpan]:
    if len(spans) < 2 or any(span.from_ is not None for span in spans):  # noqa: PLR2004 - an order
        return spans
    first, last = _first_time(documents, spans[0]), _first_time(documents, spans[-1])
    return spans[::-1] if first is not None and last is not None and first > last else spans


def _first_time(documents: DocumentFetcher, span: intervals.ChangeListSpan) -> datetime | None:
    with fetch(documents, span.uri) as fetched:
        document = fetched.open()
        if document.header.from_ is not None:
            return None
        entries = (entry for entry in document.entries() if isinstance(entry, Change))
        return min((entry.time for entry in entries if entry.time is not None), default=None)
