"""The documents in their store: which are as they should be, and how one is put there."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from resourcesync.documents import writing
from resourcesync.model.capabilities import Entry, Header
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import DocumentStore
from resourcesync.source.ledger import Recorded
from resourcesync.source.naming import Naming
from resourcesync.source.paging import Block, blocks

_CHUNK: Final = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A document that was put in place.

    Attributes:
        name: Its name in the store.
        uri: Where the world finds it.
        capability: What it offers.
        entries: Its entries; for an index, its parts.
        bytes: Its bytes.
    """

    name: str
    uri: str
    capability: Capability
    entries: int
    bytes: int


class Shelf:
    """The store's documents, and what is known of them.

    Args:
        store: Where they are put.
        naming: What they are called.
        known: What was recorded of those that were written before.
    """

    def __init__(self, store: DocumentStore, naming: Naming, known: Mapping[str, Recorded]) -> None:
        self._store = store
        self.naming = naming
        self.known = dict(known)
        self.written: list[Written] = []

    def has(self, name: str, key: str) -> bool:
        """Whether a document is there, with the content that ``key`` stands for, unharmed."""
        known = self.known.get(name)
        if known is None or known.key != key:
            return False
        signature = self._store.signature(name)
        if signature == known.signature:
            return True
        if signature is None or self._digest(name) != known.digest:
            return False
        self.known[name] = Recorded(
            key=key,
            signature=signature,
            digest=known.digest,
            size=known.size,
            entries=known.entries,
        )
        return True

    def put_entries(self, name: str, key: str, header: Header, entries: Iterable[Entry]) -> None:
        """Write a document with these entries, as ``put`` does."""
        self.put(name, key, header, blocks(entries, renderer(header)))

    def put(self, name: str, key: str, header: Header, body: Iterable[Block[Any]]) -> None:
        """Write a document, durably, and remember it.

        Args:
            name: Its name.
            key: Stands for its content.
            header: Its header.
            body: Its entries as they are written.

        Raises:
            StorageError: It could not be written; what was there is still there.
        """
        content = _Content(header, body)
        size = self._store.write(name, content.chunks())
        signature = self._store.signature(name)
        self.known[name] = Recorded(
            key=key,
            signature=signature or "",
            digest=content.digest.hexdigest(),
            size=size,
            entries=content.entries,
        )
        assert header.capability is not None
        self.written.append(
            Written(
                name=name,
                uri=self.naming.uri(name),
                capability=header.capability,
                entries=content.entries,
                bytes=size,
            )
        )

    def put_text(self, name: str, text: bytes) -> None:
        """Write a document of another kind, unless it is there just so.

        Raises:
            StorageError: It could not be written; what was there is still there.
        """
        digest = hashlib.sha256(text).hexdigest()
        if self.has(name, digest):
            return
        size = self._store.write(name, iter((text,)))
        self.known[name] = Recorded(
            key=digest,
            signature=self._store.signature(name) or "",
            digest=digest,
            size=size,
            entries=0,
        )

    def _digest(self, name: str) -> str:
        stream = self._store.open(name)
        if stream is None:
            return ""
        running = hashlib.sha256()
        with stream:
            while chunk := stream.read(_CHUNK):
                running.update(chunk)
        return running.hexdigest()


def renderer(header: Header) -> Callable[[Sequence[Entry]], bytes]:
    """Return what gives the bytes of entries in a document with this header."""
    start, end = len(writing.opening(header)), -len(writing.closing(header))
    return lambda entries: b"".join(writing.write(header, entries))[start:end]


def overhead(header: Header) -> int:
    """Return the bytes of a document with this header around its entries."""
    return len(writing.opening(header)) + len(writing.closing(header))


class _Content:
    """The bytes of a document; tells its entries and its digest once they were read."""

    def __init__(self, header: Header, body: Iterable[Block[Any]]) -> None:
        self.entries = 0
        self.digest = hashlib.sha256()
        self._header = header
        self._body = body

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes, many entries at a time."""
        for chunk in self._plain():
            self.digest.update(chunk)
            yield chunk

    def _plain(self) -> Iterator[bytes]:
        yield writing.opening(self._header)
        for block in self._body:
            self.entries += len(block.entries)
            yield block.text
        yield writing.closing(self._header)
