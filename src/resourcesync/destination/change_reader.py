"""Reader of new changes from a Source's Change Lists (§12), with their archives where needed.

All lists are read and checked against each other first: a stale copy, a gap in an index, a list
that was rewritten or reset. Only then does the mirror act on them.

An archive lists closed documents (Archives §5). Drafts before 0.9 have nothing else: there the
Capability List offers the archive, which takes the place of the index.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from resourcesync.destination.change_history import (
    ChangeHistory,
    ChangeListScan,
    ListPositions,
    check_begins_no_earlier,
    find_list_record,
    index_record,
    new_history,
    open_lists_of,
    record_rewritten_lists,
)
from resourcesync.destination.cursor import DAY, ChangeListSpan, chain, check_announced, span_of
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.packages import DumpPackage, DumpPackages
from resourcesync.destination.planner import ListedEntry
from resourcesync.destination.resource_reader import (
    check_capability,
    check_list,
    document_record,
    parts_of,
)
from resourcesync.destination.selection import ResourceSelection
from resourcesync.destination.sync_state import SyncState
from resourcesync.discovery import DocumentFetcher, FetchedDocument
from resourcesync.documents.reader import Document
from resourcesync.errors import (
    DocumentError,
    DocumentLimitError,
    SourceError,
    SourceUnavailableError,
    UnexpectedDocumentError,
)
from resourcesync.model.capabilities import Header, Part
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import known_microseconds, to_microseconds
from resourcesync.model.vocabulary import Capability, Relation
from resourcesync.ports import Clock
from resourcesync.ports.cancellation import CancelToken
from resourcesync.ports.mirror import MirrorStateStore

_MAX_LISTS = 50_000


def is_archive(header: Header) -> bool:
    """True if a document is a Change List Archive or its index."""
    return header.capability is Capability.CHANGE_LIST_ARCHIVE


def grows_unseen(header: Header) -> bool:
    """True if the lists behind a document may grow while the document stays the same."""
    return is_archive(header) and header.is_index


def archived_lists(documents: DocumentFetcher, uri: str) -> list[ChangeListSpan]:
    """Return the Change Lists of an archive, in its order, with their announced intervals.

    Args:
        documents: Fetches documents.
        uri: The archive, or its index.

    Raises:
        SourceError: A document could not be fetched.
        DocumentError: A document cannot be used, or they list too many.
    """
    spans: dict[str, ChangeListSpan] = {}
    fetched = documents.get(uri)
    assert fetched is not None, "an unconditional request is never answered with 304"
    with fetched:
        for span in read_archive(documents, fetched.open()):
            spans.setdefault(span.uri, span)
            if len(spans) > _MAX_LISTS:
                raise DocumentLimitError(
                    "an archive lists too many documents",
                    uri=uri,
                    evidence=(("limit", f"{_MAX_LISTS}"),),
                    hint="report it to the Source; check its lists: resourcesync validate URL",
                )
    return list(spans.values())


def read_archive(documents: DocumentFetcher, archive: Document) -> Iterator[ChangeListSpan]:
    """Yield the Change Lists of an open archive, or of the parts of its index.

    Drafts write ``sitemapindex`` for an archive: then its parts are Change Lists, as the first one
    shows.

    Raises:
        SourceError: A part could not be fetched.
        DocumentError: A document cannot be used.
    """
    check_capability(archive, Capability.CHANGE_LIST_ARCHIVE)
    parts = parts_of(archive)
    spans = (announced_span(*item) for item in parts.items())
    if not archive.header.is_index:
        yield from spans
        return
    for uri in parts:
        fetched = documents.get(uri)
        assert fetched is not None, "an unconditional request is never answered with 304"
        with fetched:
            inner = fetched.open()
            if inner.header.capability is Capability.CHANGE_LIST:
                yield from spans
                return
            if inner.header.is_index:
                raise UnexpectedDocumentError(
                    "an index lists another index",
                    uri=inner.uri,
                    hint="report it to the Source; check its lists: resourcesync validate URL",
                )
            yield from read_archive(documents, inner)


def in_time_order(documents: DocumentFetcher, spans: list[ChangeListSpan]) -> list[ChangeListSpan]:
    """Return the lists of an archive in time order, where no intervals are given.

    Their changes may have times all the same: if those of the first list are later than those of
    the last one, the newest list comes first.

    Raises:
        SourceError: A list could not be fetched.
        DocumentError: A list cannot be used.
    """
    if len(spans) < 2 or any(span.from_ is not None for span in spans):  # noqa: PLR2004 - an order
        return spans
    first, last = _first_time(documents, spans[0]), _first_time(documents, spans[-1])
    is_turned = first is not None and last is not None and first > last
    return spans[::-1] if is_turned else spans


def _first_time(documents: DocumentFetcher, span: ChangeListSpan) -> datetime | None:
    """Return the earliest time in a list without an interval; ``None`` if it has one."""
    fetched = documents.get(span.uri)
    assert fetched is not None, "an unconditional request is never answered with 304"
    with fetched:
        document = fetched.open()
        if document.header.from_ is not None:
            return None
        entries = (entry for entry in document.entries() if isinstance(entry, Change))
        return min((entry.time for entry in entries if entry.time is not None), default=None)


def announced_span(uri: str, part: Part) -> ChangeListSpan:
    """Return the interval of a Change List as announced by an index or archive."""
    from_, until = part.from_, part.until
    return ChangeListSpan(
        uri=uri,
        from_=known_microseconds(from_),
        until=known_microseconds(until),
        announced=from_ is not None,
    )


_log = logging.getLogger(__name__)
_RETRY_DELAYS: Final = (0.5, 1.0, 2.0)
"""Seconds to wait before inconsistent lists are read again."""
_TRANSIENT_CODES: Final = frozenset({"mixed-copies", "stale-copy"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderDependencies:
    """Dependencies of a reader of Change Lists.

    Attributes:
        documents: Fetches documents.
        selection: Turns entries into rows.
        clock: Time.
        cancel: The request to stop.
        new_sorter: Opens an empty sorter.
        packages: Fetches the manifests of a Change Dump, which take the place of the lists of a
            Source that has no others; ``None`` refuses a dump.
        archive: URI of the archive, if the Capability List has one. It is read only where the other
            lists do not reach back to T.
        positions: Number of changes in each list when the Resource List was first read, for reading
            the changes since. Changes behind these count, whatever their time.
    """

    documents: DocumentFetcher
    selection: ResourceSelection
    clock: Clock
    cancel: CancelToken
    new_sorter: Callable[[], ExternalSorter[ListedEntry]]
    packages: DumpPackages | None = None
    archive: str = ""
    positions: ListPositions | None = None

    def bypassing_caches(self) -> "ReaderDependencies":
        """Return the same dependencies, with requests that bypass all caches."""
        packages = None if self.packages is None else self.packages.bypassing_caches()
        return replace(self, documents=self.documents.uncached(), packages=packages)


class ChangeListReader:
    """Reader of Change Lists.

    Args:
        equipment: The reader's dependencies.
    """

    def __init__(self, equipment: ReaderDependencies) -> None:
        self._dependencies = equipment
        self._documents = equipment.documents
        self._selection = equipment.selection
        self._clock = equipment.clock

    def read(
        self,
        uri: str,
        *,
        since: int,
        state: MirrorStateStore | None,
        beside: ListPositions | None = None,
    ) -> ChangeHistory:
        """Read what is new in the Change List at ``uri``, or in the lists of its index.

        Args:
            uri: The head: a Change List, a Change List Index, or an archive in its place.
            since: T: everything up to here is known, microseconds.
            state: State of the mirror; ``None`` reads all since T again, past all caches.
            beside: See ``positions`` of `ReaderDependencies`.

        Raises:
            SourceUnavailableError: The lists are inconsistent, even when read again.
            SourceError: A document could not be fetched.
            DocumentError: A document cannot be used.
        """
        # With a Resource List nothing shows whether the lists are stale copies: no change time
        # that counts, and no list read before.
        if state is not None:
            return self._read(uri, since, state)
        anew = replace(self._dependencies.bypassing_caches(), positions=beside)
        return ChangeListReader(anew)._read(uri, since, state)  # noqa: SLF001 - one of ours

    def _read(self, uri: str, since: int, state: MirrorStateStore | None) -> ChangeHistory:
        mark = self._selection.refusals.mark()
        history = self._read_with_retries(uri, since, state)
        archive = history.archive or self._dependencies.archive
        if history.reaches_back or not archive or archive == uri:
            return history
        with ExitStack() as stack:
            stack.enter_context(history.sorter)
            self._selection.refusals.restore(mark)
            whole = self._read_with_archive(uri, archive, since, state)
            if whole is None:
                stack.pop_all()
                return history
        return whole

    def _read_with_archive(
        self, uri: str, archive: str, since: int, state: MirrorStateStore | None
    ) -> ChangeHistory | None:
        """Read the lists together with archived ones; ``None`` if that does not help."""
        try:
            archived_spans = in_time_order(
                self._documents, archived_lists(self._documents, archive)
            )
            history = self._read_with_retries(uri, since, state, archived_spans)
        except (SourceError, DocumentError) as error:
            _log.warning("cannot use the archive of Change Lists at %s: %s", archive, error)
            return None
        if history.reaches_back:
            return history
        history.sorter.close()
        return None

    def _read_with_retries(
        self,
        uri: str,
        since: int,
        state: MirrorStateStore | None,
        archived_spans: Sequence[ChangeListSpan] = (),
    ) -> ChangeHistory:
        waits, reader = iter(_RETRY_DELAYS), self
        listed = _list_clock_checkpoint(state, since)
        while True:
            mark = self._selection.refusals.mark()
            spool = self._dependencies.new_sorter()
            history = new_history(
                uri, spool, since=since, listed=listed, past=archived_spans, state=state
            )
            try:
                reader._read_head(uri, history, state)
            except BaseException as error:
                history.sorter.close()
                wait = next(waits, None)
                passing = (
                    isinstance(error, SourceUnavailableError) and error.code in _TRANSIENT_CODES
                )
                if not passing or wait is None:
                    raise
                _log.info("reading the Change Lists again: %s", error)
                self._selection.refusals.restore(mark)
                self._dependencies.cancel.wait(wait)
                reader = ChangeListReader(self._dependencies.bypassing_caches())
            else:
                if reader is not self or not (history.reaches_back and history.interrupted.is_lost):
                    return history
                history.sorter.close()  # it may be a stale copy
                self._selection.refusals.restore(mark)
                reader = ChangeListReader(self._dependencies.bypassing_caches())

    def _read_head(
        self,
        uri: str,
        history: ChangeHistory,
        state: MirrorStateStore | None,
        *,
        climbed: bool = False,
    ) -> None:
        with ExitStack() as opened:
            head = self._get(uri, history, state, opened)
            if head is None:
                self._read_open_lists(uri, history, state)
                return
            document = head.open()
            packages = self._dependencies.packages
            if document.header.capability is Capability.CHANGE_DUMP and packages:
                self._read_dump(document, packages, history, state)
                if not document.header.is_index:  # its parts may change without it
                    history.documents.append(document_record(head))
                return
            history.archive = document.header.link(Relation.ARCHIVES) or ""
            if not is_archive(document.header):
                check_capability(document, Capability.CHANGE_LIST)
            if document.header.is_index or is_archive(document.header):
                self._read_index(document, history, state)
                history.documents += (
                    () if grows_unseen(document.header) else (index_record(head, history),)
                )
                return
            self._read_one_list(head, document, history, state, climbed=climbed)

    def _read_one_list(
        self,
        head: FetchedDocument,
        document: Document,
        history: ChangeHistory,
        state: MirrorStateStore | None,
        *,
        climbed: bool,
    ) -> None:
        """Read a Change List that is not an index, or its index if it does not reach back."""
        span = span_of(head.uri, document.header)
        record_rewritten_lists(history, [span], state)
        history.reaches_back = chain([span], history.old_list_clock_checkpoint).reaches_back
        index = document.header.link(Relation.INDEX)
        if index is not None and not history.reaches_back and not climbed:
            self._read_head(index, history, state, climbed=True)
        elif history.archived_lists and not history.reaches_back:
            spans = _merge_spans(history.archived_lists, [span], self._selection)
            self._read_chain(spans, self._get_list, history, state)
        else:
            self._read_list(head, span, history, state)
            is_found = history.last_changes.are_found(span.from_)
            history.reaches_back = history.reaches_back or is_found

    def _get(
        self, uri: str, history: ChangeHistory, state: MirrorStateStore | None, opened: ExitStack
    ) -> FetchedDocument | None:
        known = None if state is None or history.archived_lists else state.document(uri)
        fetched = self._documents.get(
            uri,
            etag=known.etag if known else "",
            last_modified=known.last_modified if known else "",
        )
        return None if fetched is None else opened.enter_context(fetched)

    def _read_open_lists(
        self, head: str, history: ChangeHistory, state: MirrorStateStore | None
    ) -> None:
        """Read the open lists of an unchanged head, if it is an index: they may have changed."""
        history.open_lists = [] if state is None else open_lists_of(head, state)
        history.is_unchanged = True
        for uri in history.open_lists:
            with ExitStack() as opened:
                fetched = self._get(uri, history, state, opened)
                if fetched is None:
                    continue
                history.is_unchanged = False
                document = fetched.open()
                check_list(document, Capability.CHANGE_LIST)
                span = span_of(uri, document.header)
                self._read_list(fetched, span, history, state)
                reaches = chain([span], history.old_list_clock_checkpoint).reaches_back
                history.reaches_back &= reaches or history.last_changes.are_found(span.from_)

    def _read_index(
        self, index: Document, history: ChangeHistory, state: MirrorStateStore | None
    ) -> None:
        history.dialect = index.dialect
        if is_archive(index.header):
            spans = in_time_order(self._documents, list(read_archive(self._documents, index)))
        else:
            spans = [announced_span(*item) for item in parts_of(index).items()]
        spans = _merge_spans(history.archived_lists, spans, self._selection)
        if len(spans) > 1 and (
            not is_archive(index.header) or self._with_own_interval(spans[0]).from_ is not None
        ):  # archives of drafts give no times, nor do their lists: then each is read once
            spans = [self._with_own_interval(span) for span in spans]
        self._read_chain(spans, self._get_list, history, state)
        if is_archive(index.header):  # its lists are closed, except perhaps the last
            del history.open_lists[:-1]

    def _with_own_interval(self, span: ChangeListSpan) -> ChangeListSpan:
        """Return a list with its own interval, where its index does not give its start.

        Without times its order is unknown: an index may have the newest list first.
        """
        if span.from_ is not None:
            return span
        with self._get_list(span.uri) as fetched:
            own = span_of(span.uri, fetched.open().header)
        # The list is read again in its turn, and must be the same then.
        return replace(own, announced=own.from_ is not None)

    def _read_dump(
        self,
        dump: Document,
        packages: DumpPackages,
        history: ChangeHistory,
        state: MirrorStateStore | None,
    ) -> None:
        """Read the manifests of the packages, which report changes as Change Lists do (§13)."""
        history.dialect = dump.dialect
        history.is_of_dump = True
        offered = {package.uri: package for package in packages.of_change_list(history.head, dump)}
        spans = _package_spans(offered.values(), state)
        self._read_chain(spans, lambda uri: packages.manifest(offered[uri]), history, state)
        # A package grows only by being replaced, which the dump shows.
        history.open_lists = []

    def _get_list(self, uri: str) -> FetchedDocument:
        fetched = self._documents.get(uri)
        assert fetched is not None, "an unconditional request is never answered with 304"
        with ExitStack() as opened:
            check_list(opened.enter_context(fetched).open(), Capability.CHANGE_LIST)
            opened.pop_all()
        return fetched

    def _read_chain(
        self,
        spans: list[ChangeListSpan],
        get: Callable[[str], FetchedDocument],
        history: ChangeHistory,
        state: MirrorStateStore | None,
    ) -> None:
        lists = chain(spans, history.old_list_clock_checkpoint)
        history.reaches_back = lists.reaches_back
        own_spans: dict[str, ChangeListSpan] = {}  # an index need not give starts
        end, first = None, True
        for announced in lists.lists:
            if _is_processed(announced, state, is_package=history.is_of_dump):
                first, end = False, announced.until
                continue
            with get(announced.uri) as fetched:
                span = own_spans[announced.uri] = self._effective_span(
                    announced, fetched.open(), history
                )
                if first:  # an index need not give intervals, but each list does
                    history.reaches_back = (
                        history.reaches_back
                        and chain([span], history.old_list_clock_checkpoint).reaches_back
                    )
                elif end is not None and (span.from_ or 0) > max(
                    end, history.old_list_clock_checkpoint
                ):
                    history.reaches_back = False
                    return
                ended = span.until if announced.until is None else None
                history.is_outdated |= announced.announced and ended is not None
                self._read_list(fetched, span, history, state, ended)
            first, end = False, span.until
            if end is None:
                history.open_lists.append(span.uri)
        if lists.is_contiguous and not history.reaches_back:
            history.reaches_back = history.last_changes.are_found(lists.lists[0].from_)
        record_rewritten_lists(history, [own_spans.get(span.uri, span) for span in spans], state)

    def _effective_span(
        self, announced: ChangeListSpan, listed: Document, history: ChangeHistory
    ) -> ChangeListSpan:
        """Return the interval of a list: its own, else the one that its index gives.

        Some Sources write the interval into the index only, and end the last list at the moment of
        the request. So an end that only the index gives counts a day later: by then it is final,
        whatever the clock of the Source. Until then the list may grow.

        Raises:
            SourceUnavailableError: The list is not the one that its index announces.
        """
        own = span_of(announced.uri, listed.header)
        if not announced.announced or own.from_ is not None or own.until is not None:
            check_announced(announced, listed.header)
            return own
        a_day_ago = to_microseconds(self._clock.now()) - DAY
        if announced.until is None or announced.until <= a_day_ago:
            return announced
        history.is_outdated = True  # the index must be read again next time
        return replace(announced, until=None)

    def _read_list(
        self,
        fetched: FetchedDocument,
        span: ChangeListSpan,
        history: ChangeHistory,
        state: MirrorStateStore | None,
        ended: int | None = None,
    ) -> None:
        """Collect what is new in one list.

        Args:
            fetched: The list.
            span: Its own interval.
            history: Receives what is new.
            state: State of the mirror.
            ended: End of the list, if its index calls it open.
        """
        self._selection.add_source_addresses(fetched.uri, fetched.final_uri)
        if state is not None:
            check_begins_no_earlier(span, state.document(span.uri))
        seen = None if state is None else find_list_record(history.head, span, state)
        now = to_microseconds(self._clock.now())
        beside = self._dependencies.positions
        before = None if beside is None else beside.position_of(history.head, span)
        ChangeListScan(
            fetched, span, history, selection=self._selection, now=now, ended=ended
        ).read(seen, before)


def _is_processed(
    announced: ChangeListSpan, state: MirrorStateStore | None, *, is_package: bool
) -> bool:
    """True if a list was processed and is still the same.

    A package is if its dump describes it as before. Changes in a closed list are checked elsewhere.
    """
    if state is None or announced.from_ is None:
        return False
    known = state.document(announced.uri, announced.from_)
    if known is None or is_package:
        return known is not None and announced.version == known.etag != ""
    return announced.until is not None and known.until == announced.until


def _list_clock_checkpoint(state: MirrorStateStore | None, through: int) -> int:
    """Return T by the clock of the lists; T itself if it is not noted."""
    noted = None if state is None else SyncState(state).list_clock_checkpoint
    return through if noted is None else min(through, noted)


def _merge_spans(
    archived_spans: Iterable[ChangeListSpan],
    present: Iterable[ChangeListSpan],
    selection: ResourceSelection,
) -> list[ChangeListSpan]:
    """Return archived and present lists, each once, as it is now.

    A list at two addresses, since its Source moved to TLS, counts once: read again after its
    successors, it would undo them.
    """
    spans = {selection.mirror_uri(span.uri): span for span in archived_spans}
    spans.update((selection.mirror_uri(span.uri), span) for span in present)
    return list(spans.values())


def _package_spans(
    packages: Iterable[DumpPackage], state: MirrorStateStore | None
) -> list[ChangeListSpan]:
    """Return the intervals of packages: as the dump gives them, or as they were read before.

    A package without either keeps its position, after the one before it.
    """
    spans: list[ChangeListSpan] = []
    begun = 0
    for offered in packages:
        from_, until = offered.entry.from_, offered.entry.until
        span = ChangeListSpan(
            uri=offered.uri,
            from_=known_microseconds(from_),
            until=known_microseconds(until),
            version=offered.version,
        )
        known = state.document(offered.uri) if state is not None else None
        if span.from_ is None and known is not None and known.until is not None:
            span = replace(span, from_=known.from_, until=known.until)
        elif span.from_ is None:
            span = replace(span, from_=begun or known_microseconds(offered.dump.from_))
        begun = span.until or span.from_ or begun
        spans.append(span)
    return spans
