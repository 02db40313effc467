"""The pages of the next Resource List out of those of the last: what did not change is copied.

A page is a range of URIs. Its entries are copied as bytes, with those changed that were edited
since the last list (`documents.splice`). A page is formatted anew from the catalogue when it is
not as it was written, when it holds elements of other communities, or when so much of it changed
that copying would not be quicker. One page is in memory at a time, and its edits.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Final, NamedTuple

from resourcesync.documents import splice, writer
from resourcesync.documents.splice import EntryEdit, EntrySlices
from resourcesync.model.capabilities import Header
from resourcesync.model.resources import Resource, ResourceRun
from resourcesync.model.vocabulary import Dialect
from resourcesync.ports import CatalogueSnapshot
from resourcesync.source.checking import ReadBackCheck
from resourcesync.source.ledger import DocumentRecord
from resourcesync.source.paging import Block, PageLimits, Paginator
from resourcesync.source.rendering import render_checked
from resourcesync.source.shelf import DocumentWriter

_FEW: Final = 64
"""Edits of a page that are always worth to be spliced."""
_SHARE: Final = 4
"""A page is formatted anew when more than one entry of so many was edited."""
_NOTHING: Final = EntrySlices(count=0, size=0, slices=())


class Page(NamedTuple):
    """A page of the last Resource List.

    Attributes:
        name: Its document.
        known: What was recorded of it then. A page of the next list may take its name.
    """

    name: str
    known: DocumentRecord


@dataclass(slots=True, kw_only=True)
class NewPage:
    """A page of the next Resource List.

    Attributes:
        blocks: Its entries, to be read once.
        start: The URI that its range begins with; right once the blocks were read.
        is_plain: Whether its entries can be told apart by their bytes; the same.
    """

    blocks: Iterable[Block[object]]
    start: str = ""
    is_plain: bool = True


def format_page(resources: Paginator[Resource], size: int) -> NewPage:
    """Return the next page of some resources, which is formatted as it is read.

    Args:
        resources: The resources; the page is to be read before the next one is asked for.
        size: Bytes of the document around its entries.
    """
    page = NewPage(blocks=())

    def blocks() -> Iterator[Block[object]]:
        for number, block in enumerate(resources.page(size)):
            if number == 0:
                page.start = block.entries[0].uri
            if not isinstance(block.entries, ResourceRun):
                page.is_plain &= not any(it.foreign for it in block.entries)
            yield Block(block.entries, block.text)

    page.blocks = blocks()
    return page


class PageRebase:
    """Turns the pages of the last Resource List into those of the next.

    Args:
        shelf: Has the last list.
        snapshot: Tells what was edited since.
        header: The header of the next list's parts.
        limits: The most that a part holds.
    """

    def __init__(
        self, shelf: DocumentWriter, snapshot: CatalogueSnapshot, header: Header, limits: PageLimits
    ) -> None:
        self._writer = shelf
        self._snapshot = snapshot
        self._header = header
        self._limits = limits
        self._around = shelf.overhead(header)
        self._edits = _EditReader(snapshot.edits())

    def only_page(self, old: Sequence[Page]) -> NewPage | None:
        """Return the one page of the last list as the one of the next, if it can be copied."""
        if len(old) != 1:
            return None
        entries = self._spliced(old[0], None)
        if entries is None or not self._limits.allow(entries.count, entries.size + self._around):
            return None
        return NewPage(blocks=_blocks(entries))

    def format_all(self) -> Iterator[NewPage]:
        """Yield the next list's pages, all of them formatted; read each before the next."""
        return self._formatted("", None)

    def pages(self, old: Sequence[Page]) -> Iterator[NewPage]:
        """Yield the next list's pages in URI order; read each to its end before the next.

        A page that is too full becomes two halves, but the last one stays full, since many
        Sources only add at the end. Neighbours that fill less than half a page together become
        one.

        Args:
            old: The last list's pages, at least one, their ranges in order.
        """
        # The range of the first page begins before all others, whatever its first URI is.
        starts = ("", *(page.known.start for page in old[1:]))
        ends = (*starts[1:], None)
        kept = _NOTHING  # these may yet become one page with the next
        anew: str | None = None  # where a range begins that is to be formatted
        for page, start, end in zip(old, starts, ends, strict=True):
            found = self._spliced(page, end)
            if found is None or not self._are_small(kept, found):
                yield from self._cut(kept)
                kept = _NOTHING
            if found is None:
                anew = start if anew is None else anew
                continue
            if anew is not None:
                yield from self._formatted(anew, start)
                anew = None
            kept += found
            if end is not None and not self._are_small(kept, _NOTHING):
                yield from self._cut(kept)
                kept = _NOTHING
        yield from self._cut(kept, is_last=anew is None)
        if anew is not None:
            yield from self._formatted(anew, None)

    def _spliced(self, page: Page, end: str | None) -> EntrySlices | None:
        """Return a page's entries as they are now; ``None`` if they are to be formatted anew."""
        known = page.known
        most = max(_FEW, known.entries // _SHARE)
        edits = self._edits.read_until(end, most)
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
            rows = render_checked(lambda some: writer.rows(some, self._header), there)
            self._prove(there, rows)
        new = iter(rows)
        for uri, resource in edits:
            yield EntryEdit(uri, b"" if resource is None else next(new))

    def _prove(self, resources: Sequence[Resource], rows: Sequence[bytes]) -> None:
        """Read entries that are to be put among others, which are not read again."""
        proof = ReadBackCheck("an entry", self._header, Dialect.V1_1)
        proof.expect(resources)
        around = writer.opening(self._header), writer.closing(self._header)
        proof(BytesIO(b"".join((around[0], *rows, around[1]))))

    def _are_small(self, one: EntrySlices, other: EntrySlices) -> bool:
        count, size = one.count + other.count, one.size + other.size + self._around
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
        counted = ()


class _EditReader:
    """Edits that are taken range by range."""

    def __init__(self, edits: Iterator[tuple[str, Resource | None]]) -> None:
        self._edits = edits
        self._next = next(edits, None)

    def read_until(self, end: str | None, most: int) -> list[tuple[str, Resource | None]] | None:
        """Return those of the next range, ``None`` when they are too many or not plain."""
        taken: list[tuple[str, Resource | None]] = []
        usable = True
        while self._next is not None and (end is None or self._next[0] < end):
            resource = self._next[1]
            usable = usable and len(taken) < most and not (resource and resource.foreign)
            if usable:
                taken.append(self._next)
            self._next = next(self._edits, None)
        return taken if usable else None
