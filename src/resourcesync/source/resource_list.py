"""Resource List in one document or in parts under an index (§10), and the plain sitemap.

A page is a range of URIs. Its entries are copied from the last list as bytes, with those changed
that were edited since (`documents.splice`). A page is rendered again from the catalogue when it is
not as it was written, when it has elements of other communities, or when so much of it changed that
copying would not be faster. One page is in memory at a time, and its edits.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from io import BytesIO
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from resourcesync.catalogue.database import CatalogueSnapshot
from resourcesync.documents import splice, writer
from resourcesync.documents.splice import EntryEdit, EntrySlices
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Header, Link, Part, Resource, ResourceRun
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import Capability, Dialect
from resourcesync.source import archives, description, naming
from resourcesync.source.document_writer import DocumentWriter, checking_entries
from resourcesync.source.paging import Block, PageLimits, Paginator
from resourcesync.source.read_back import ReadBackCheck
from resourcesync.source.stored_plan import DocumentRecord

_FEW: Final = 64
"""Number of edits of a page that are always spliced."""
_SHARE: Final = 4
"""A page is rendered again when more than one entry of so many was edited."""
_NOTHING: Final = EntrySlices(count=0, size=0, slices=())


class Page(NamedTuple):
    """A page of the last Resource List; one of the next list may take its name."""

    name: str
    known: DocumentRecord


class NewPage(msgspec.Struct, kw_only=True):
    """A page of the next Resource List.

    ``start``, the URI that its range begins with, and ``is_plain``, that its bytes separate its
    entries, are valid after the blocks were read; that is done once.
    """

    blocks: Iterable[Block[object]]
    start: str = ""
    is_plain: bool = True


def format_page(resources: Paginator[Resource], size: int) -> NewPage:
    """Return the next page of some resources, rendered while it is read."""
    page = NewPage(blocks=())

    def blocks() -> Iterator[Block[object]]:
        for number, block in enumerate(resources.page(size)):
            if number == 0:
                page.start = block.entries[0].uri
            if not isinstance(block.entries, ResourceRun):
                page.is_plain &= not any(entry.foreign for entry in block.entries)
            yield Block(block.entries, block.text)

    page.blocks = blocks()
    return page


class PageRebase:
    """Conversion of the last Resource List's pages into those of the next."""

    def __init__(
        self,
        writer: DocumentWriter,
        snapshot: CatalogueSnapshot,
        header: Header,
        limits: PageLimits,
    ) -> None:
        self._writer = writer
        self._snapshot = snapshot
        self._header = header
        self._limits = limits
        self._around = writer.overhead(header)
        self._edits = _EditReader(snapshot.edits())

    def only_page(self, old: Sequence[Page]) -> NewPage | None:
        """Return the only page of the last list as the next list's, if it can be copied."""
        if len(old) != 1:
            return None
        entries = self._spliced(old[0], None)
        if entries is None or not self._limits.allow(entries.count, entries.size + self._around):
            return None
        return NewPage(blocks=_blocks(entries))

    def format_all(self) -> Iterator[NewPage]:
        """Yield the next list's pages, all of them rendered; read each before the next."""
        return self._formatted("", None)

    def pages(self, old: Sequence[Page]) -> Iterator[NewPage]:
        """Yield the next list's pages in URI order; read each to its end before the next.

        A page that is too full is split in halves, but the last one stays full, since many Sources
        only add at the end. Neighbours that fill less than half a page together are merged.
        """
        # The first page's range begins before all others, whatever its first URI is.
        starts = ("", *(page.known.start for page in old[1:]))
        ends = (*starts[1:], None)
        waiting = _NOTHING  # these may yet become one page with the next
        unrendered: str | None = None  # the start of a range to be rendered again
        for page, start, end in zip(old, starts, ends, strict=True):
            found = self._spliced(page, end)
            if found is None or not self._are_small(waiting, found):
                yield from self._cut(waiting)
                waiting = _NOTHING
            if found is None:
                unrendered = start if unrendered is None else unrendered
                continue
            if unrendered is not None:
                yield from self._formatted(unrendered, start)
                unrendered = None
            waiting += found
            if end is not None and not self._are_small(waiting, _NOTHING):
                yield from self._cut(waiting)
                waiting = _NOTHING
        yield from self._cut(waiting, is_last=unrendered is None)
        if unrendered is not None:
            yield from self._formatted(unrendered, None)

    def _spliced(self, page: Page, end: str | None) -> EntrySlices | None:
        known = page.known
        edits = self._edits.read_until(end, max(_FEW, known.entries // _SHARE))
        if edits is None or not known.is_plain or self._writer.dialect is not Dialect.V1_1:
            return None
        content = self._writer.content(page.name, known)
        if content is None:
            return None
        return splice.splice(splice.entries_of(content, known.entries), self._rows(edits))

    def _rows(self, edits: Sequence[tuple[str, Resource | None]]) -> Iterator[EntryEdit]:
        there = [resource for _, resource in edits if resource is not None]
        rows: list[bytes] = []
        if there:  # most pages of a large list have no edits
            with checking_entries():
                rows = writer.rows(there, self._header)
            self._prove(there, rows)
        new = iter(rows)
        for uri, resource in edits:
            yield EntryEdit(uri, b"" if resource is None else next(new))

    def _prove(self, resources: Sequence[Resource], rows: Sequence[bytes]) -> None:
        proof = ReadBackCheck("an entry", self._header, Dialect.V1_1)
        opening, closing = writer.opening(self._header), writer.closing(self._header)
        body = b"".join(rows)
        proof.add(opening)
        proof.add_entries(resources, body)
        proof.add(closing)
        proof(BytesIO(opening + body + closing))

    def _are_small(self, slices: EntrySlices, other: EntrySlices) -> bool:
        count, size = slices.count + other.count, slices.size + other.size + self._around
        return 2 * count <= self._limits.max_entries and 2 * size <= self._limits.max_bytes

    def _cut(self, entries: EntrySlices, *, is_last: bool = False) -> Iterator[NewPage]:
        limits = self._limits
        most, size = limits.max_entries, limits.max_bytes - self._around
        if not is_last and not limits.allow(entries.count, entries.size + self._around):
            most = min(most, (entries.count + 1) // 2)
        while entries.count:
            page, entries = entries.cut(most, size)
            yield NewPage(blocks=_blocks(page), start=page.first_uri())

    def _formatted(self, start: str, end: str | None) -> Iterator[NewPage]:
        runs = self._snapshot.batches(start, end)
        pages = Paginator.of_runs(runs, self._writer.renderer(self._header), self._limits)
        while pages:
            yield format_page(pages, self._around)


def _blocks(entries: EntrySlices) -> Iterator[Block[object]]:
    counted: Sequence[object] = range(entries.count)
    for chunk in entries.chunks():
        yield Block(counted, chunk)
        counted = range(0)


class _EditReader:
    def __init__(self, edits: Iterator[tuple[str, Resource | None]]) -> None:
        self._edits = edits
        self._next = next(edits, None)

    def read_until(self, end: str | None, most: int) -> list[tuple[str, Resource | None]] | None:
        """Return the edits of the next range; ``None`` when they are too many or not plain."""
        taken: list[tuple[str, Resource | None]] = []
        usable = True
        while self._next is not None and (end is None or self._next[0] < end):
            resource = self._next[1]
            usable = usable and len(taken) < most and not (resource and resource.foreign)
            if usable:
                taken.append(self._next)
            self._next = next(self._edits, None)
        return taken if usable else None


_PARTS: Final = naming.RESOURCE_LIST.removesuffix(".xml") + "-"


class _TooManyResourcesError(Exception):
    """The resources do not fit into one document."""


def is_complete(writer: DocumentWriter, head: str, at: int, parts: tuple[str, ...]) -> bool:
    """True if the list of the moment ``at``, with these parts, is stored unharmed."""
    return all(writer.has(name, str(at)) for name in (*parts, head))


def publish_resource_list(
    writer: DocumentWriter,
    snapshot: CatalogueSnapshot,
    limits: PageLimits,
    *,
    has_archive: bool = False,
) -> tuple[str, ...]:
    """Write the Resource List of a snapshot; return the names of its parts, none for one document.

    Unchanged entries of the last list are copied, see ``PageRebase``. Parts have names of their own
    for each snapshot and are written first; the head is replaced last, so that a reader finds the
    old list or the new one, whole.
    """
    last = _last_pages(writer)
    header = head = _header(writer, snapshot.at)
    if has_archive:
        header = head = archives.with_archive_link(writer, head)
    if snapshot.count(limits.max_entries + 1) <= limits.max_entries:
        try:
            page = PageRebase(writer, snapshot, header, limits).only_page(last)
            page = page or _only_page(writer, snapshot, header, limits)
            _put(writer, naming.RESOURCE_LIST, header, page)
        except _TooManyResourcesError:
            pass
        else:
            return ()
        last = ()  # copying would save little
    index = description.index_link(writer.naming, naming.RESOURCE_LIST)
    header = _header(writer, snapshot.at, index)
    rebase = PageRebase(writer, snapshot, header, limits)
    pages = rebase.pages(last) if len(last) > 1 else rebase.format_all()
    return _write_parts(writer, head, header, pages)


def _last_pages(writer: DocumentWriter) -> tuple[Page, ...]:
    head = writer.known.get(naming.RESOURCE_LIST)
    if head is None or not head.key.isdigit():  # of an older version of the format
        return ()
    parts = [
        Page(name, known)
        for name, known in writer.known.items()
        if known.key == head.key and name.startswith(_PARTS)
    ]
    if not parts:
        return (Page(naming.RESOURCE_LIST, head),)
    parts.sort(key=attrgetter("known.start"))
    is_whole = len({part.known.start for part in parts}) == len(parts) == head.entries
    return tuple(parts) if is_whole else ()


def _only_page(
    writer: DocumentWriter, snapshot: CatalogueSnapshot, header: Header, limits: PageLimits
) -> NewPage:
    resources = Paginator.of_runs(snapshot.batches(), writer.renderer(header), limits)
    page = format_page(resources, writer.overhead(header))

    def blocks(found: Iterable[Block[object]]) -> Iterator[Block[object]]:
        yield from found
        if resources:
            raise _TooManyResourcesError  # the store keeps what was there

    page.blocks = blocks(page.blocks)
    return page


def _write_parts(
    writer: DocumentWriter, head: Header, header: Header, pages: Iterable[NewPage]
) -> tuple[str, ...]:
    assert header.at is not None
    at = header.at
    names: list[str] = []
    for page in pages:
        names.append(naming.resource_list_part(at, len(names) + 1))
        _put(writer, names[-1], header, page)
    writer.put_entries(
        naming.RESOURCE_LIST,
        _key(at),
        replace(head, is_index=True),
        (_part(writer, name, at) for name in names),
    )
    return tuple(names)


def _part(writer: DocumentWriter, name: str, at: datetime) -> Part:
    digests = (Digest("sha-256", writer.known[name].digest),)
    listed = digests if writer.dialect is Dialect.V1_1 else ()
    return Part(uri=writer.naming.uri(name), at=at, digests=listed)


def _put(writer: DocumentWriter, name: str, header: Header, page: NewPage) -> None:
    assert header.at is not None
    writer.put(name, _key(header.at), header, page.blocks)
    writer.mark_page(name, page.start, is_plain=page.is_plain)


def _header(writer: DocumentWriter, at: datetime, *links: Link) -> Header:
    return Header(
        capability=Capability.RESOURCE_LIST,
        at=at,
        links=(description.up_link(writer.naming, naming.CAPABILITY_LIST), *links),
    )


def _key(at: datetime) -> str:
    return str(to_microseconds(at))


_SITEMAP_HEADER = Header(capability=None)


def publish_sitemap(
    writer: DocumentWriter, at: int, snapshot: CatalogueSnapshot, limits: PageLimits
) -> tuple[str, ...]:
    """Write ``loc`` and ``lastmod`` of each resource; return the names of the parts, if any.

    Search engines read it with the next crawl, so nothing depends on its parts being of one moment:
    each is replaced in its place.
    """
    key = str(at)
    render = writer.renderer(_SITEMAP_HEADER, Dialect.SITEMAP)
    pages = Paginator(snapshot.resources(), render, limits)
    size = writer.overhead(_SITEMAP_HEADER, Dialect.SITEMAP)
    first = list(pages.page(size))
    if not pages:
        writer.put(naming.SITEMAP, key, _SITEMAP_HEADER, first, dialect=Dialect.SITEMAP)
        return ()
    names: list[str] = []

    def put(body: list[Block[Resource]] | Iterator[Block[Resource]]) -> None:
        names.append(naming.sitemap_part(len(names) + 1))
        writer.put(names[-1], key, _SITEMAP_HEADER, body, dialect=Dialect.SITEMAP)

    put(first)
    while pages:
        put(pages.page(size))
    parts = [Part(uri=writer.naming.uri(name)) for name in names]
    header = replace(_SITEMAP_HEADER, is_index=True)
    writer.put_entries(naming.SITEMAP, key, header, parts, dialect=Dialect.SITEMAP)
    return tuple(names)
