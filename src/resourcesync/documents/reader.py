"""The reader of documents: bytes or an open file in, entries out, one at a time.

Reading is liberal: it accepts what Sources write in the wild, in every version from the drafts of
2012 to 1.1 and in plain sitemaps, and returns it in the terms of 1.1, with warnings. A value that
cannot be read costs that value alone, where an entry can be used without it; any other fault of an
entry costs that entry. A fault of the document raises, so a list is never shorter than its Source
wrote it.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import BinaryIO, Final, TypeVar, final

from resourcesync.documents import _entries, _fast_path, blocks, expat
from resourcesync.documents._raw_entries import EntryAssembler, EntryColumns, RawEntry, TextRow
from resourcesync.documents._scanner import DocumentScanner, EntryScanner
from resourcesync.documents._values import change_kind, header_of
from resourcesync.documents.expat import DROPPED, Limits, Tolerated
from resourcesync.errors import MalformedDocumentError
from resourcesync.model.entries import Change, Entry, Header, RefusedEntry
from resourcesync.model.leniencies import CountedLeniency, Leniency
from resourcesync.model.timestamps import parse_w3c
from resourcesync.model.vocabulary import Capability, ChangeKind, Dialect

__all__ = ["DROPPED", "Document", "Limits", "TextRow", "Tolerated", "read"]

T = TypeVar("T")

_MAX_SHOWN: Final = 2_048
_PLAIN_KINDS: Final = {kind.value: kind for kind in ChangeKind}
_OFTEN_MISLABELLED: Final = frozenset(
    {
        Capability.CHANGE_LIST,
        Capability.CHANGE_DUMP,
        Capability.RESOURCE_LIST,
        Capability.RESOURCE_DUMP,
    }
)
"""Names that some Sources give to documents of another kind."""


def _open_scanner(
    pieces: Iterator[bytes],
    assembler: EntryAssembler,
    limits: Limits,
    context: expat.ReadingContext,
) -> tuple[EntryScanner, Iterator[bytes]]:
    if blocks.is_robots(context.uri):
        pieces = blocks.robots_index(pieces, context.uri)
    first = next(pieces, b"")
    pieces = chain((first,), pieces) if first else pieces
    if blocks.is_text_sitemap(first):
        from resourcesync.documents._text_and_feeds import TextSitemapScanner  # noqa: PLC0415 - rarely

        return TextSitemapScanner(assembler, limits=limits, context=context), pieces
    if not blocks.is_markup(first):
        raise MalformedDocumentError(
            "The document is neither XML nor a text sitemap, which begins with an address",
            uri=context.uri,
            line=1,
            column=1,
            hint=blocks.TEXT_HINT,
        )
    on_late = partial(context.tolerate, Leniency.DECLARATION_LATE)
    scanner = DocumentScanner(assembler, limits=limits, context=context)
    return scanner, blocks.header_first(blocks.declaration_first(pieces, on_late))


def _actual_header(
    header: Header, assembler: EntryAssembler, scanner: EntryScanner, rest: Iterator[bytes]
) -> Header:
    while not assembler.items and not scanner.closed:
        block = next(rest, None)
        if block is None:
            scanner.close()
        else:
            scanner.feed(block)
    first = [item for item in assembler.items if isinstance(item, RawEntry)]
    if not first or len(first) != len(assembler.items):
        return header
    from resourcesync.documents.mislabelled import header_from_entries  # noqa: PLC0415 - rarely

    return header_from_entries(header, first, scanner.context)


class _ChangeOrder:
    """The order of changes: oldest first (§12.1), or newest first, as many Sources write them."""

    def __init__(self) -> None:
        self.rises = False
        self.falls = False
        self._last: datetime | None = None

    def watch(self, times: Iterable[datetime | None]) -> None:
        """Feed the next times; stop at the first that shows the right order."""
        if self.rises:
            return
        for time in times:
            if time is None:
                continue
            if self._last is not None and time != self._last:
                if time > self._last:
                    self.rises = True
                    return
                self.falls = True
            self._last = time


@final
class Document:
    """An open document; its entries are read lazily, once.

    Attributes:
        header: Its header.
        uri: Its address.
        refused: Entries that could not be used so far.
    """

    def __init__(
        self,
        header: Header,
        assembler: EntryAssembler,
        scanner: EntryScanner,
        rest: Iterator[bytes],
        *,
        limits: Limits,
        on_refused: Callable[[RefusedEntry], None] | None,
    ) -> None:
        context = scanner.context
        self.header = header
        self.uri = context.uri
        self.refused = 0
        self._assembler = assembler
        self._scanner = scanner
        self._rest = rest
        self._limits = limits
        self._context = context
        self._order = _ChangeOrder()
        self._on_refused = on_refused
        self._family = _entries.family_of(header)
        self._has_changes = self._family.has_changes
        is_regular = self._family.is_regular and scanner.form is expat.SitemapForm.XML
        known = self._family.known if is_regular else None
        self._blocks = _fast_path.FastPathReader(scanner, assembler, known, limits)
        self._is_consumed = False
        self._count = 0

    @property
    def dialect(self) -> Dialect:
        """Version of the document; certain once all entries were read."""
        return expat.dialect_of(self.header, self._context.version_marks)

    @property
    def version(self) -> str:
        """Version in words, as the commands show it: ``0.5 or 0.6``."""
        return self.dialect.phrase_for(self.header.capability)

    @property
    def form(self) -> expat.SitemapForm:
        """Form in which the document is written."""
        return self._scanner.form

    @property
    def is_robots(self) -> bool:
        """True if it is the index that a ``robots.txt`` is, of lists or indexes of lists."""
        return self.header.is_index and blocks.is_robots(self.uri)

    @property
    def lists_all(self) -> bool:
        """True if what it lacks is not listed; certain once all entries were read.

        A feed lists recent pages only, and a text may have been cut.
        """
        return self._scanner.lists_all

    @property
    def tolerated(self) -> tuple[Tolerated, ...]:
        """Tolerated faults so far, each kind once, in the order it was met."""
        return tuple(self._context.tolerated.values())

    @property
    def tolerated_counts(self) -> Mapping[Leniency, int]:
        """Number of entries, or of other places, that have each tolerated fault, so far."""
        return self._context.counts

    def leniencies(
        self, before: Mapping[Leniency, int] = MappingProxyType({})
    ) -> Iterator[CountedLeniency]:
        """Yield the tolerated faults so far, with their counts.

        Args:
            before: Those that were counted when the document was read before.
        """
        for found in self.tolerated:
            number = self._context.counts[found.code] - before.get(found.code, 0)
            if number > 0:
                yield CountedLeniency(
                    code=found.code,
                    rule=found.rule,
                    reason=found.reason,
                    count=number,
                    uri=self.uri,
                    line=found.line,
                )

    @property
    def dropped(self) -> int:
        """Number of values could not be read so far: their entries are used without them."""
        return self._context.dropped

    def tolerate(self, code: Leniency) -> None:
        """Record a leniency towards the document as a whole, which its reader cannot see.

        Raises:
            MalformedDocumentError: Reading is strict, and a rule is broken.
        """
        self._context.set_place(0, 0)
        self._context.tolerate(code)

    def entries(self) -> Iterator[Entry]:
        """Yield the entries in the order of the document; each is of the kind of its header.

        A list, a plain sitemap or the manifest of a Resource Dump has `Resource`; a Change List,
        the manifest of a Change Dump or a Change Notification `Change`; any index or archive
        `Part`; a dump `Package`; a Capability List or Source Description `CapabilityEntry`; a
        Framework Notification `DocumentChange`.

        In the draft P2 the newest comes first: such a list is read whole and turned round.

        In a change document an entry whose ``change`` is missing or unknown is refused.

        Raises:
            DocumentError: As from `read`.
        """
        found = self._each(self._of_run, self._of_entry)
        if self._may_be_backwards:
            yield from self._oldest_first(list(found))
            return
        yield from found
        if self._order.falls and not self._order.rises:  # newest first
            self._context.set_place(*self._scanner.header_place)
            self._context.tolerate(Leniency.ORDER_BACKWARDS)

    @property
    def _may_be_backwards(self) -> bool:
        return self._has_changes and self.dialect is Dialect.P2

    def _oldest_first(self, entries: list[T]) -> list[T]:
        if self._order.rises or len(entries) < 2:  # noqa: PLR2004 - one has no order
            return entries
        self._context.set_place(*self._scanner.header_place)
        self._context.tolerate(Leniency.ORDER_REVERSED)
        return entries[::-1]

    def _each(
        self,
        of_run: Callable[[EntryColumns], Iterable[T]],
        of_entry: Callable[[RawEntry], Iterable[T]],
    ) -> Iterator[T]:
        for items in self._items():
            for item in items:
                yield from of_run(item) if isinstance(item, EntryColumns) else of_entry(item)

    def batches(self) -> Iterator[Iterable[Entry]]:
        """Yield the entries in groups; read each to its end before the next.

        In a list of resources a group may be a `ResourceRun`: many plain entries, as columns.

        Raises:
            DocumentError: As from `entries`, also while a group is read.
        """
        if self._has_changes:
            yield self.entries()
            return
        for items in self._items():
            for item in items:
                yield (
                    self._columns_of(item)
                    if isinstance(item, EntryColumns)
                    else self._of_entry(item)
                )

    def rows(self) -> Iterator[TextRow]:
        """Yield the entries as rows of strings: faster than `entries`, and less checked.

        Faults of ``loc`` and of the entry's structure are found as by `entries`; the other texts
        are given as they were written. Not for documents that list documents or packages:
        their entries have more than a row.

        Raises:
            DocumentError: As from `entries`.
        """
        found = self._each(self._rows_of_run, self._row_of_entry)
        if self._may_be_backwards:
            rows = list(found)
            self._order.watch(map(_time_of, rows))
            yield from self._oldest_first(rows)
        else:
            yield from found

    def _items(self) -> Iterator[list[EntryColumns | RawEntry]]:
        if self._is_consumed:
            raise RuntimeError("the entries of a document can be read once")
        self._is_consumed = True
        yield self._counted()
        for block in self._rest:
            self._blocks.feed(block)
            yield self._counted()
        self._blocks.finish()
        yield self._counted()
        self._scanner.close()
        yield self._counted()

    def _counted(self) -> list[EntryColumns | RawEntry]:
        items = self._assembler.drain()
        most = self._limits.entries
        for item in items:
            self._count += len(item.lines) if isinstance(item, EntryColumns) else 1
            if self._count > most:
                line, column = _entries.place_of(item, most - self._count)
                raise expat.limit_error(most, "entries", uri=self.uri, line=line, column=column)
        return items

    def _columns_of(self, run: EntryColumns) -> Iterable[Entry]:
        try:
            return _fast_path.plain_resources_of(run, self._context)
        except expat.RefusalError:
            return chain.from_iterable(map(self._of_entry, run.raw_entries()))

    def _of_run(self, run: EntryColumns) -> Iterator[Entry]:
        try:
            if not self._has_changes:
                yield from _fast_path.resources_of(run, self._context)
                return
            kinds = self._kinds(run)
            if kinds is not None:
                changes = _fast_path.changes_of(run, kinds, self._context)
                self._order.watch(change.time for change in changes)
                yield from changes
                return
        except expat.RefusalError:
            pass
        for entry in run.raw_entries():
            yield from self._of_entry(entry)

    def _rows_of_run(self, run: EntryColumns) -> Iterator[TextRow]:
        try:
            kinds = self._kinds(run) if self._has_changes else None
            if kinds is not None or not self._has_changes:
                changes = run.changes if kinds is None else [kind.value for kind in kinds]
                yield from run._replace(uris=_fast_path.uris_of(run.uris), changes=changes).rows()
                return
        except expat.RefusalError:
            pass
        for entry in run.raw_entries():
            yield from self._row_of_entry(entry)

    def _kinds(self, run: EntryColumns) -> list[ChangeKind] | None:
        self._show(has_lastmod=run.lastmods is not None, has_datetime=run.datetimes is not None)
        found = [_PLAIN_KINDS.get(text or "") for text in run.changes or ("",)]
        kinds = [kind for kind in found if kind is not None]
        return kinds if len(kinds) == len(found) else None

    def _of_entry(self, entry: RawEntry) -> Iterator[Entry]:
        self._context.set_place(entry.line, entry.column)
        try:
            _entries.check_is_entry(entry)
            kind = self._kind(entry, _entries.row_of(entry)) if self._has_changes else None
            made = self._family.make(entry, kind, self._context)
            if isinstance(made, Change):
                self._order.watch((made.time,))
        except expat.RefusalError as refusal:
            self._refuse(entry, refusal)
        else:
            yield made

    def _row_of_entry(self, entry: RawEntry) -> Iterator[TextRow]:
        self._context.set_place(entry.line, entry.column)
        row = _entries.row_of(entry)
        try:
            _entries.check_is_entry(entry)
            if self._has_changes:
                row = row._replace(change=self._kind(entry, row).value)
            yield row._replace(uri=_entries.entry_uri(entry, self._context))
        except expat.RefusalError as refusal:
            self._refuse(entry, refusal)

    def _kind(self, entry: RawEntry, row: TextRow) -> ChangeKind:
        if entry.fault is not None:
            raise expat.RefusalError(*entry.fault)
        has_datetime = row.datetime_text is not None and "datetime" in (entry.metadata or ())
        self._show(has_lastmod=expat.LASTMOD in entry.texts, has_datetime=has_datetime)
        kind = change_kind(row.change)
        if kind is None:
            said = "no change" if row.change is None else f"the change {row.change[:64]!r}"
            rule = "CH03" if row.change is None else "G33"
            raise expat.RefusalError("change-unknown", f"The entry has {said}", rule)
        if kind.value != row.change:
            self._context.tolerate(Leniency.CHANGE_SPELLED, about=row.change or "")
        return kind

    def _show(self, *, has_lastmod: bool, has_datetime: bool) -> None:
        if has_datetime:
            self._context.version_marks.add(expat.DATETIME)
        if has_lastmod:
            self._context.version_marks.add(expat.CHANGE_LASTMOD)

    def _refuse(self, entry: RawEntry, refusal: expat.RefusalError) -> None:
        if self._context.strict:
            self._context.set_place(entry.line, entry.column)
            self._context.refuse(refusal.code, refusal.reason, refusal.rule)
        self.refused += 1
        if self._on_refused is not None:
            uri = _entries.row_of(entry).uri.strip()[:_MAX_SHOWN]
            self._on_refused(
                RefusedEntry(line=entry.line, code=refusal.code, reason=refusal.reason, uri=uri)
            )


def _time_of(row: TextRow) -> datetime | None:
    try:
        return parse_w3c((row.datetime_text or row.lastmod_text or "").strip())
    except ValueError:
        return None


def read(
    source: BinaryIO | bytes,
    *,
    uri: str = "",
    limits: Limits | None = None,
    on_refused: Callable[[RefusedEntry], None] | None = None,
    on_tolerated: Callable[[Tolerated], None] | None = None,
    strict: bool = False,
) -> Document:
    """Open a ResourceSync document or a sitemap: its header at once, its entries lazily.

    All versions are read, from the drafts of 2012 to 1.1, gzip or not, and given in the words of
    1.1. Memory does not grow with the document.

    Args:
        source: The document's bytes, or an open binary file, which stays open.
        uri: The document's address, for messages and for what is relative in it, else left so.
        limits: Its bounds.
        on_refused: Called with each entry that cannot be used, in order; the others are returned.
        on_tolerated: Called once for each kind of tolerated fault.
        strict: True if to raise for what would be forgiven or refused.

    Raises:
        TypeError: Neither bytes nor an open binary file; the name of a file is not read.
        NotAListError: Neither a ResourceSync document nor a sitemap, such as an HTML error page.
        UnexpectedDocumentError: A document of a capability that this version does not know.
        TruncatedDocumentError: It stops before its end.
        MalformedDocumentError: No well-formed XML, a DOCTYPE, or a broken header.
        DocumentLimitError: Over one of the limits.

    Example:
        >>> with open("public/resourcesync/resourcelist.xml", "rb") as stream:
        ...     document = read(stream, uri="https://museum.example/resourcesync/resourcelist.xml")
        ...     print(document.header.phrase, sum(1 for entry in document.entries()))
        Resource List 2
    """
    is_text = isinstance(source, io.TextIOBase)  # such as of open(name)
    if is_text or not (isinstance(source, bytes) or hasattr(source, "read")):
        kind = type(source).__name__
        raise TypeError(
            f"read takes bytes or an open binary file, as of open(name, 'rb'), not {kind}"
        )
    stream, limits = io.BytesIO(source) if isinstance(source, bytes) else source, limits or Limits()
    context = expat.ReadingContext(uri=uri, limits=limits, strict=strict, on_tolerated=on_tolerated)
    assembler = EntryAssembler(limits=limits, context=context)
    pieces = blocks.document_blocks(blocks.pieces_of(stream), limits=limits, uri=uri)
    scanner, rest = _open_scanner(pieces, assembler, limits, context)
    while not assembler.began and assembler.depth and not scanner.closed:
        block = next(rest, None)
        if block is None:
            scanner.close()
        else:
            scanner.feed(block)
    context.set_place(*scanner.header_place)
    header = header_of(assembler, context)
    context.is_plain = header.capability is None
    if header.capability in _OFTEN_MISLABELLED and not header.is_index:
        header = _actual_header(header, assembler, scanner, rest)
    return Document(header, assembler, scanner, rest, limits=limits, on_refused=on_refused)
