"""Writer of a Source's documents: compares, writes, reads back, records."""

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any, BinaryIO, Final

import msgspec
from msgspec.structs import replace

from resourcesync.catalogue.schema import BAD_ROW
from resourcesync.documents import writer
from resourcesync.errors import StateError
from resourcesync.model.entries import Entry, Header
from resourcesync.model.vocabulary import Capability, Dialect
from resourcesync.ports.documents import DocumentStore
from resourcesync.source.naming import SourceNaming
from resourcesync.source.paging import Block, blocks
from resourcesync.source.read_back import ReadBackCheck
from resourcesync.source.stored_plan import DocumentRecord

_log: Final = logging.getLogger(__name__)
_BAD = (ValueError, TypeError, AttributeError, ArithmeticError)


@contextmanager
def checking_entries() -> Iterator[None]:
    """Raise an error of the catalogue for that of the writer of a document.

    Programs may post entries to a catalogue that no document can express, such as a link without a
    target.
    """
    try:
        yield
    except _BAD as error:
        raise StateError(
            f"an entry of the catalogue cannot be published: {error!s:.300}",
            evidence=(("kept", "what was published before"),),
            code=BAD_ROW,
        ) from error


_CHUNK: Final = 1 << 18


class WrittenDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document that was written.

    Attributes:
        name: Its name in the store.
        uri: Its public address.
        capability: Its capability, if it has one.
        entries: Number of its entries; for an index, of its parts.
        bytes: Size of the document.
    """

    name: str
    uri: str
    capability: Capability | None
    entries: int
    bytes: int


class _AlteredError(Exception):
    """The document to copy from differs from what was written."""


class DocumentWriter:
    """Writer of the documents in a store, with a record of those that were written before.

    Each document is read back before it takes its place: see ``ReadBackCheck``.
    """

    def __init__(
        self,
        store: DocumentStore,
        naming: SourceNaming,
        known: Mapping[str, DocumentRecord],
        *,
        dialect: Dialect = Dialect.V1_1,
        moment: datetime | None = None,
    ) -> None:
        self._store = store
        self.naming = naming
        self.known = dict(known)
        self.written: list[WrittenDocument] = []
        self.dialect = dialect
        self._moment = moment

    def renderer(
        self, header: Header, dialect: Dialect | None = None
    ) -> Callable[[Sequence[Entry]], bytes]:
        """Return the function that renders entries in a document with this header."""
        return renderer(self._dated(header), dialect or self.dialect)

    def overhead(self, header: Header, dialect: Dialect | None = None) -> int:
        """Return the bytes of a document with this header around its entries."""
        dated, dialect = self._dated(header), dialect or self.dialect
        return len(writer.opening(dated, dialect)) + len(writer.closing(dated, dialect))

    def has(self, name: str, key: str) -> bool:
        """True if a document is stored unharmed, with the content that ``key`` identifies."""
        known = self.known.get(name)
        return (
            known is not None
            and known.key == self._dialect_key(key)
            and self.confirm_unharmed(name)
        )

    def confirm_unharmed(self, name: str) -> bool:
        """Return whether a document is stored as written; note its new signature."""
        known = self.known.get(name)
        if known is None:
            return False
        signature = self._store.signature(name)
        if signature == known.signature:
            return True
        if signature is None or digest_of(self._store, name) != known.digest:
            return False
        self.known[name] = replace(known, signature=signature)
        return True

    def body(self, name: str, body: str) -> DocumentRecord | None:
        """Return the record of a document whose entries can be copied; ``None`` otherwise."""
        known = self.known.get(name)
        is_it = known is not None and known.body == self._dialect_key(body)
        return known if is_it and self.confirm_unharmed(name) else None

    def put_entries(
        self,
        name: str,
        key: str,
        header: Header,
        entries: Iterable[Entry],
        *,
        dialect: Dialect | None = None,
    ) -> None:
        """Write a document with these entries, as ``put`` does."""
        body = blocks(entries, self.renderer(header, dialect))
        self.put(name, key, header, body, dialect=dialect)

    def put(
        self,
        name: str,
        key: str,
        header: Header,
        body: Iterable[Block[Any]],
        *,
        dialect: Dialect | None = None,
    ) -> None:
        """Write a document durably, read it back, and record it."""
        content = _DocumentContent(self._dated(header), body, name, dialect or self.dialect)
        self._put(name, key, content)

    def put_growing(
        self, name: str, key: str, header: Header, entries: Iterable[Entry], *, body: str, last: int
    ) -> None:
        """Write a document to which entries will be added later, as ``put`` does."""
        self.put_entries(name, key, header, entries)
        self.known[name] = replace(self.known[name], body=self._dialect_key(body), last=last)

    def put_extended(
        self,
        name: str,
        key: str,
        header: Header,
        entries: Iterable[Entry],
        *,
        source: str,
        last: int,
    ) -> bool:
        """Write a document with the entries of another before its own; their bytes are copied."""
        known = self.known[source]
        stream = self._store.open(source)
        if stream is None:
            return False
        content = _DocumentContent(
            self._dated(header), blocks(entries, self.renderer(header)), name, self.dialect
        )
        with closing(stream):
            content.copy_from(stream, known)
            try:
                self._put(name, key, content)
            except _AlteredError:
                return False
        self.known[name] = replace(self.known[name], body=known.body, last=last)
        return True

    def _put(self, name: str, key: str, content: "_DocumentContent") -> None:
        size = self._store.write(name, content.chunks(), content.proof)
        self.known[name] = DocumentRecord(
            key=self._dialect_key(key),
            signature=self._store.signature(name) or "",
            digest=content.proof.digest.hexdigest(),
            size=size,
            entries=content.entries,
            opening=len(content.opening),
        )
        written = WrittenDocument(
            name=name,
            uri=self.naming.uri(name),
            capability=content.header.capability,
            entries=content.entries,
            bytes=size,
        )
        self.written.append(written)

    def content(self, name: str, known: DocumentRecord) -> bytes | None:
        """Return the bytes of a document that is as it was written; ``None`` otherwise."""
        stream = self._store.open(name)
        if stream is None:
            return None
        with closing(stream):
            found = stream.read(known.size + 1)
        return found if hashlib.sha256(found).hexdigest() == known.digest else None

    def mark_page(self, name: str, start: str, *, is_plain: bool) -> None:
        """Record the start of a part's range, and whether its bytes separate its entries."""
        self.known[name] = replace(self.known[name], start=start, is_plain=is_plain)

    def put_text(self, name: str, text: bytes) -> None:
        """Write a file that is no document of the format, unless it is stored already."""
        digest = hashlib.sha256(text).hexdigest()
        if self.has(name, digest):
            return
        size = self._store.write(name, iter((text,)))
        self.known[name] = DocumentRecord(
            key=self._dialect_key(digest),
            signature=self._store.signature(name) or "",
            digest=digest,
            size=size,
            entries=0,
        )

    def copy(self, source: str, name: str, key: str) -> bool:
        """Copy a document to another name; return whether it was stored with this content."""
        stream = self._store.open(source) if self.has(source, key) else None
        if stream is None:
            return False
        known = self.known[source]
        with closing(stream):
            self._store.write(name, iter(lambda: stream.read(_CHUNK), b""))
        if digest_of(self._store, name) != known.digest:
            self._store.delete(name)
            return False
        self.known[name] = replace(known, signature=self._store.signature(name) or "", body="")
        return True

    def _dialect_key(self, key: str) -> str:
        return key if self.dialect is Dialect.V1_1 else f"{self.dialect}:{key}"

    def _dated(self, header: Header) -> Header:
        return header if self.dialect is Dialect.V1_1 else replace(header, modified=self._moment)


def digest_of(store: DocumentStore, name: str) -> str:
    """Return the sha-256 of a document as it is stored; empty if there is none."""
    stream = store.open(name)
    if stream is None:
        return ""
    running = hashlib.sha256()
    with closing(stream):
        while chunk := stream.read(_CHUNK):
            running.update(chunk)
    return running.hexdigest()


def renderer(header: Header, dialect: Dialect = Dialect.V1_1) -> Callable[[Sequence[Entry]], bytes]:
    """Return the function that renders entries in a document with this header."""

    @checking_entries()
    def render(entries: Sequence[Entry]) -> bytes:
        return writer.body(entries, header, dialect)

    return render


class _DocumentContent:
    def __init__(
        self, header: Header, body: Iterable[Block[Any]], name: str, dialect: Dialect
    ) -> None:
        self.header = header
        self.opening = writer.opening(header, dialect)
        self.proof = ReadBackCheck(name, header, dialect)
        self.entries = 0
        self._closing = writer.closing(header, dialect)
        self._body = body
        self._source: tuple[BinaryIO, DocumentRecord] | None = None

    def copy_from(self, stream: BinaryIO, known: DocumentRecord) -> None:
        self._source = stream, known

    def chunks(self) -> Iterator[bytes]:
        self.proof.add(self.opening)
        yield self.opening
        if self._source is not None:
            yield from self._copied(*self._source)
        for block in self._body:
            self.entries += len(block.entries)
            self.proof.add_entries(block.entries, block.text)
            yield block.text
        self.proof.add(self._closing)
        yield self._closing

    def _copied(self, stream: BinaryIO, known: DocumentRecord) -> Iterator[bytes]:
        opening = stream.read(known.opening)
        # A list that only grows begins as it did, so that its digest is known on the way.
        running = None if opening == self.opening else hashlib.sha256(opening)
        left = known.size - known.opening - len(self._closing)
        while left and (chunk := stream.read(min(left, _CHUNK))):
            if running is not None:
                running.update(chunk)
            left -= len(chunk)
            self.proof.add(chunk, is_proven=True)
            yield chunk
        running = running or self.proof.digest.copy()
        running.update(stream.read())
        if running.hexdigest() != known.digest:
            raise _AlteredError
        self.entries = known.entries
