"""Read a document in whatever form it is: a sitemap of any dialect, Atom, or the native draft."""

import io
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, Protocol

from resourcesync.documents._context import Tolerated
from resourcesync.documents._limits import Limits
from resourcesync.documents.feeds import read_feed
from resourcesync.documents.reading import read_stream
from resourcesync.errors import MalformedDocumentError, NotAListError
from resourcesync.model.capabilities import Entry, Header, RefusedEntry
from resourcesync.model.vocabulary import Dialect

__all__ = ["AnyDocument", "Tolerated", "read_any"]

_DEFAULT_LIMITS: Final = Limits()
_MAX_BUFFERED: Final = 1_048_576
"""Bytes in which the root must be met, for the form to be recognized."""
_FEED_ROOTS: Final = frozenset({"<feed>", "<resync>"})


class AnyDocument(Protocol):
    """An open document, whatever its form; its entries are read as they are asked for, once."""

    header: Header
    uri: str
    refused: int

    @property
    def dialect(self) -> Dialect:
        """Which dialect the document is written in; certain once all entries were read."""
        ...

    def entries(self) -> Iterator[Entry]:
        """Yield the entries in the order of the document.

        Raises:
            DocumentError: As `read_any` does.
        """
        ...


def read_any(
    stream: BinaryIO,
    *,
    uri: str,
    limits: Limits = _DEFAULT_LIMITS,
    on_refused: Callable[[RefusedEntry], None] | None = None,
    on_tolerated: Callable[[Tolerated], None] | None = None,
    strict: bool = False,
) -> AnyDocument:
    """Open a document of any dialect: read as far as its header.

    Args:
        stream: The document; it stays open, and is read while the entries are.
        uri: Its address, for messages.
        limits: What it may cost at most.
        on_refused: Told of each entry that cannot be used, in order.
        on_tolerated: Told of each kind of fault that is forgiven, once. The forms that were given
            up have no rules of the standard to break, so nothing is told of them.
        strict: As `reading.read` has it; in those forms, to raise for an entry that cannot be used.

    Raises:
        DocumentError: As `reading.read` and `feeds.read_feed` do.
    """
    replay = _ReplayStream(stream)
    try:
        return read_stream(
            replay,
            uri=uri,
            limits=limits,
            on_refused=on_refused,
            on_tolerated=on_tolerated,
            strict=strict,
        )
    except NotAListError as error:
        if dict(error.evidence).get("root") not in _FEED_ROOTS or not replay.rewind():
            raise
    told = _raise_refused(uri) if strict else on_refused
    return read_feed(replay, uri=uri, limits=limits, on_refused=told)


def _raise_refused(uri: str) -> Callable[[RefusedEntry], None]:
    """Return what makes an entry that cannot be used the end of its document."""

    def refuse(entry: RefusedEntry) -> None:
        raise MalformedDocumentError(
            entry.reason, uri=uri, line=entry.line, column=1, code=entry.code
        )

    return refuse


class _ReplayStream(io.RawIOBase, BinaryIO):
    """A stream whose first bytes can be read twice."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream
        self._held: bytearray | None = bytearray()
        self._again = b""

    def rewind(self) -> bool:
        """Start again, if that is still possible; from then on nothing is held."""
        if self._held is None:
            return False
        self._again, self._held = bytes(self._held), None
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes."""
        if self._again:
            data = self._again if size < 0 else self._again[:size]
            self._again = self._again[len(data) :]
            return data
        data = self._stream.read(size)
        if self._held is not None:
            self._held += data
            if len(self._held) > _MAX_BUFFERED:
                self._held = None
        return data
