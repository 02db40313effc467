"""Read-back check of written documents with our own reader, before they are public."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast
from zlib import crc32

from resourcesync.documents.dialects import narrow_header
from resourcesync.errors import DocumentError, StorageError
from resourcesync.model.capabilities import Entry, Header
from resourcesync.model.digests import format_digests
from resourcesync.model.resources import Change, Resource, ResourceRun
from resourcesync.model.vocabulary import Capability, Dialect

if TYPE_CHECKING:
    from resourcesync.documents.reader import Document

_Mark = tuple[str, str | None, int | None, str]
"""Compared properties of an entry: its URI, change, length and digests."""

_CHUNK: Final = 1 << 18
_ROWS: Final = frozenset({None, Capability.RESOURCE_LIST, Capability.CHANGE_LIST})
"""Documents that are read as rows, which takes half the time."""


def read_back_error(name: str, fault: str) -> StorageError:
    """Return the error for a stored document that differs from what was written (``read-back``)."""
    return StorageError(
        f"{name} differs from what was written: {fault}",
        evidence=(("kept", "what was published before"),),
        hint="check the disk, then publish again",
        code="read-back",
    )


class ReadBackCheck:
    """Expected content of a document, noted while it is written and compared with what is stored.

    Entries that were copied from a verified document are compared by their bytes; all others are
    read. A document that consists of copies is compared as a whole: its new entries were verified
    before.

    Args:
        name: The document's name, for messages.
        header: Its header.
        dialect: The version of the format.
    """

    def __init__(self, name: str, header: Header, dialect: Dialect) -> None:
        self._name = name
        self._header = header
        self._dialect = dialect
        self._mark = _plain_mark if dialect is Dialect.SITEMAP else _mark
        self._running = 0
        self._count = 0
        self._is_copied = False
        self._sum = 0
        self._opening = b""
        self._stored = 0
        self._before = 0
        self._size = 0

    def set_opening(self, opening: bytes) -> None:
        """Note the bytes before the entries."""
        self._opening = opening

    def add_bytes(self, chunk: bytes) -> None:
        """Note bytes of the document."""
        self._sum = crc32(chunk, self._sum)
        self._stored += len(chunk)

    def mark_copied(self) -> None:
        """Note that the bytes so far are of entries that were verified before."""
        self._before, self._size = self._sum, self._stored

    def expect(self, entries: Sequence[Any]) -> None:
        """Note further entries; a range stands for the number of copied ones."""
        self._count += len(entries)
        if isinstance(entries, range):
            self._is_copied = True
            return
        marks: Iterable[_Mark]
        if isinstance(entries, ResourceRun) and self._mark is _mark:
            marks = zip(entries.uris, repeat(None), entries.lengths, entries.hashes, strict=False)
        else:
            marks = map(self._mark, entries)
        running = self._running
        for mark in marks:
            running = hash((running, mark))
        self._running = running

    def __call__(self, stream: BinaryIO) -> None:
        """Read a document.

        Raises:
            StorageError: It differs from what was written (code ``read-back``).
        """
        try:
            fault = self._fault(stream)
        except DocumentError as error:
            fault = error.message
        if fault:
            raise read_back_error(self._name, fault)

    def _fault(self, stream: BinaryIO) -> str:
        if self._is_copied:
            found = 0
            while chunk := stream.read(_CHUNK):
                found = crc32(chunk, found)
            return "" if found == self._sum else "its bytes differ"
        if self._size:
            if not self._is_copy(stream):
                return "the copied entries differ"
            stream = cast(BinaryIO, _WithoutCopied(self._opening, stream))
        from resourcesync.documents import reader  # noqa: PLC0415 - most runs write nothing

        document = reader.read_stream(stream, uri=self._name)
        if document.header != narrow_header(self._header, self._dialect):
            return "its header differs"
        running, count = 0, 0
        for mark in self._marks(document):
            running = hash((running, mark))
            count += 1
        is_same = count == self._count and running == self._running
        return "" if is_same and not document.refused else "its entries differ"

    def _marks(self, document: "Document") -> Iterator[_Mark]:
        if self._header.is_index or self._header.capability not in _ROWS:
            yield from map(self._mark, document.entries())
            return
        for row in document.rows():
            length = None if row.length_text is None else int(row.length_text)
            yield row.uri, row.change, length, row.hash_text or ""

    def _is_copy(self, stream: BinaryIO) -> bool:
        """True if a stream begins with the copied bytes; it is positioned after them then."""
        found, left = 0, self._size
        while left and (chunk := stream.read(min(left, _CHUNK))):
            found = crc32(chunk, found)
            left -= len(chunk)
        return not left and found == self._before


class _WithoutCopied:
    """A document without the entries that were copied: its opening, and the rest of a stream."""

    def __init__(self, opening: bytes, stream: BinaryIO) -> None:
        self._opening = opening
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes."""
        opening, self._opening = self._opening, b""
        return opening or self._stream.read(size)


def _mark(entry: Entry) -> _Mark:
    """Return the compared properties of an entry."""
    change = None
    if isinstance(entry, Change):
        change, entry = entry.kind.value, entry.resource
    if isinstance(entry, Resource):
        return entry.uri, change, entry.length, format_digests(entry.digests)
    return entry.uri, None, None, ""


def _plain_mark(entry: Entry) -> _Mark:
    """Return the compared properties of an entry of a plain sitemap."""
    return entry.uri, None, None, ""
