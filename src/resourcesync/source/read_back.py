"""Read-back check of written documents with our own reader, before they are public."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from resourcesync.catalogue.schema import BAD_ROW
from resourcesync.documents.dialects import narrow_header
from resourcesync.errors import DocumentError, StorageError
from resourcesync.model.digests import format_digests
from resourcesync.model.entries import Change, Entry, Header, Resource, ResourceRun
from resourcesync.model.vocabulary import Capability, Dialect

if TYPE_CHECKING:
    from resourcesync.documents.reader import Document

_Mark = tuple[str, str | None, int | None, str]
"""Compared properties of an entry: its URI, change, length and digests."""

READ_BACK: Final = "read-back"
"""The code of an error if what is stored is not what was written."""
BAD_ROW_CODES: Final = frozenset({BAD_ROW, READ_BACK})
"""Codes of errors that a bad row may be the reason of."""
_CHUNK: Final = 1 << 18
_ROWS: Final = frozenset({None, Capability.RESOURCE_LIST, Capability.CHANGE_LIST})
"""Documents that are read as rows, which takes half the time."""
_VALUE: Final = "[ !#-%'-;=?-~]"
"""Printable ASCII without ``" & < >``, which alone could end a value or mean something else."""
_split_plain: Final = re.compile(
    r"<url><loc>(https?://[!#-%'-;=?-~]++)</loc>"
    rf"(?:<lastmod>{_VALUE}++</lastmod>)?+"
    rf'<rs:md(?: hash="({_VALUE}++)")?+(?: length="([0-9]{{1,19}}+)")?+(?: type="{_VALUE}*+")?+/>'
    r"</url>\n"
).split


def read_back_error(name: str, fault: str) -> StorageError:
    """Return the error for a stored document that differs from what was written (``read-back``)."""
    return StorageError(
        f"{name} differs from what was written: {fault}",
        evidence=(("kept", "what was published before"),),
        hint="check the disk, then publish again",
        code=READ_BACK,
    )


class ReadBackCheck:
    """Expected content of a document, noted while it is written and compared with what is stored.

    The stored bytes must be those that were written. All of them are read by our own reader, except
    two kinds of entries: those that were copied from a verified document, and plain ones, which
    were proven while they were written, see ``_are_plain``.
    """

    def __init__(self, name: str, header: Header, dialect: Dialect) -> None:
        self.digest = hashlib.sha256()
        self._name = name
        self._header = header
        self._mark = (
            (lambda entry: (entry.uri, None, None, "")) if dialect is Dialect.SITEMAP else _mark
        )
        self._dialect = dialect
        self._running = 0
        self._count = 0
        self._lengths: list[tuple[int, bool]] = []

    def add(self, chunk: bytes, *, is_proven: bool = False) -> None:
        """Note further bytes; proven ones are whole entries that need not be read."""
        self.digest.update(chunk)
        if self._lengths and self._lengths[-1][1] == is_proven:
            self._lengths[-1] = self._lengths[-1][0] + len(chunk), is_proven
        else:
            self._lengths.append((len(chunk), is_proven))

    def add_entries(self, entries: Sequence[Any], chunk: bytes) -> None:
        """Note the bytes of further entries; a range stands for the number of copied ones."""
        is_copied = isinstance(entries, range)
        if is_copied or (self._dialect is Dialect.V1_1 and _are_plain(entries, chunk)):
            self.add(chunk, is_proven=True)
            return
        self.add(chunk)
        self._count += len(entries)
        marks: Iterable[_Mark] = map(self._mark, entries)
        if isinstance(entries, ResourceRun) and self._mark is _mark:
            marks = zip(entries.uris, repeat(None), entries.lengths, entries.hashes, strict=False)
        for mark in marks:
            self._running = hash((self._running, mark))

    def __call__(self, stream: BinaryIO) -> None:
        """Read a document."""
        try:
            fault = self._fault(_UnprovenBytes(stream, self._lengths))
        except DocumentError as error:
            fault = error.message
        except ValueError as error:  # a length
            fault = str(error)
        if fault:
            raise read_back_error(self._name, fault)

    def _fault(self, stored: "_UnprovenBytes") -> str:
        from resourcesync.documents import reader  # noqa: PLC0415 - most runs write nothing

        document = reader.read(cast("BinaryIO", stored), uri=self._name)
        if document.header != narrow_header(self._header, self._dialect):
            return "its header differs"
        running, count = 0, 0
        for mark in self._marks(document):
            running = hash((running, mark))
            count += 1
        if (count, running) != (self._count, self._running) or document.refused:
            return "its entries differ"
        return "" if stored.digest() == self.digest.digest() else "its bytes differ"

    def _marks(self, document: "Document") -> Iterator[_Mark]:
        if self._header.is_index or self._header.capability not in _ROWS:
            yield from map(self._mark, document.entries())
            return
        for row in document.rows():
            length = None if row.length_text is None else int(row.length_text)
            yield row.uri, row.change, length, row.hash_text or ""


def _are_plain(entries: Sequence[Any], chunk: bytes) -> bool:
    """True if some bytes are plain entries, and have the URIs, digests and lengths of these."""
    if not isinstance(entries, ResourceRun) or not chunk.isascii():
        return False
    pieces = _split_plain(chunk.decode())
    others, uris, hashes, lengths = (pieces[at::4] for at in range(4))
    return (
        not any(others)
        and uris == list(entries.uris)
        and [text or "" for text in hashes] == list(entries.hashes)
        and [text and int(text) for text in lengths] == list(entries.lengths)
    )


class _UnprovenBytes:
    def __init__(self, stream: BinaryIO, lengths: Sequence[tuple[int, bool]]) -> None:
        self._stream = stream
        self._lengths = iter(lengths)
        self._left, self._is_proven = 0, False
        self._digest = hashlib.sha256()

    def read(self, size: int = _CHUNK) -> bytes:
        while True:
            if not self._left:  # whatever is behind the last stretch is not proven
                self._left, self._is_proven = next(self._lengths, (_CHUNK, False))
            most = _CHUNK if self._is_proven else size
            chunk = self._stream.read(min(self._left, most))
            self._digest.update(chunk)
            self._left -= len(chunk)
            if not chunk or not self._is_proven:
                return chunk

    def digest(self) -> bytes:
        while self.read():
            pass
        return self._digest.digest()


def _mark(entry: Entry) -> _Mark:
    change = None
    if isinstance(entry, Change):
        change, entry = entry.kind.value, entry.resource
    if isinstance(entry, Resource):
        return entry.uri, change, entry.length, format_digests(entry.digests)
    return entry.uri, None, None, ""
