"""Replacement of some entries of a list as bytes: all others are neither read nor formatted again.

This is for documents that `writer` wrote, with their entries in URI order. There an entry begins
with ``<url><loc>``, and these bytes are nowhere else, since ``<`` is escaped in every text and
attribute; but elements of other communities are written as they came, so a document that contains
any cannot be spliced. An entry is found by binary search.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from resourcesync.documents._xml_output import unescaped

_START: Final = b"<url><loc>"
_URI_END: Final = b"</loc>"
_CLOSING: Final = b"</urlset>\n"
_CHUNK: Final = 1 << 18


class EntryEdit(NamedTuple):
    """An edit of one entry; ``row`` is as `writer.rows` returns it, empty to remove the entry."""

    uri: str
    row: bytes


class _ByteSlice(NamedTuple):
    source: bytes
    start: int
    end: int


class EntrySlices(msgspec.Struct, frozen=True, kw_only=True):
    """Entries as they are in a document, one after the other."""

    count: int
    size: int
    slices: tuple[_ByteSlice, ...]

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes, some at a time."""
        for source, start, end in self.slices:
            for at in range(start, end, _CHUNK):
                yield source[at : min(at + _CHUNK, end)]

    def first_uri(self) -> str:
        """Return the URI of the first entry, of which there must be one."""
        source, start, _ = self.slices[0]
        return _uri_at(source, start)[0].decode()

    def __add__(self, others: "EntrySlices") -> "EntrySlices":
        """Return these entries and then the others."""
        return _entries(self.count + others.count, (*self.slices, *others.slices))

    def cut(self, count: int, size: int) -> tuple["EntrySlices", "EntrySlices"]:
        """Return the first entries and the rest."""
        if self.count <= count and self.size <= size:
            return self, _entries(0, ())
        taken, held = 0, 0
        slices = list(self.slices)
        for number, (source, start, end) in enumerate(slices):
            at = start
            while at < end:
                after = _next(source, at, end)
                if taken and (taken + 1 > count or held + after - at > size):
                    left = (*slices[:number], _ByteSlice(source, start, at))
                    right = (_ByteSlice(source, at, end), *slices[number + 1 :])
                    return _entries(taken, left), _entries(self.count - taken, right)
                taken, held, at = taken + 1, held + after - at, after
        return self, _entries(0, ())


def entries_of(document: bytes, count: int) -> EntrySlices:
    """Return the entries of a document."""
    start, end = document.find(_START), len(document) - len(_CLOSING)
    return _entries(count, (_ByteSlice(document, start, end),) if count else ())


def splice(entries: EntrySlices, edits: Iterable[EntryEdit]) -> EntrySlices:
    """Return the entries after some edits; what is not edited is not copied either."""
    if not entries.slices:
        rows = [edit.row for edit in edits if edit.row]
        return _entries(len(rows), tuple(_ByteSlice(row, 0, len(row)) for row in rows))
    ((source, at, end),) = entries.slices
    count, slices = entries.count, []
    for uri, row in edits:
        wanted = uri.encode()
        place = _find(source, wanted, at, end)
        slices.append(_ByteSlice(source, at, place))
        at = place
        if place < end and _uri_at(source, place)[0] == wanted:
            at = _next(source, place, end)
            count -= 1
        if row:
            slices.append(_ByteSlice(row, 0, len(row)))
            count += 1
    return _entries(count, (*slices, _ByteSlice(source, at, end)))


def _entries(count: int, slices: Iterable[_ByteSlice]) -> EntrySlices:
    kept = tuple(byte_slice for byte_slice in slices if byte_slice.start < byte_slice.end)
    return EntrySlices(
        count=count, size=sum(byte_slice.end - byte_slice.start for byte_slice in kept), slices=kept
    )


def _find(source: bytes, wanted: bytes, low: int, high: int) -> int:
    found = end = high
    while low < high:
        middle = (low + high) // 2
        place = source.find(_START, middle, min(high + len(_START) - 1, end))
        if place < 0:
            high = middle
            continue
        uri, after = _uri_at(source, place)
        if uri < wanted:
            low = after
        else:
            found, high = place, middle
    return found


def _uri_at(source: bytes, start: int) -> tuple[bytes, int]:
    start += len(_START)
    end = source.index(_URI_END, start)
    return unescaped(source[start:end]), end


def _next(source: bytes, start: int, end: int) -> int:
    place = source.find(_START, start + 1, end)
    return end if place < 0 else place
