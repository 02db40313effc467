"""Documents as text and as patches, for the tests of reading and writing."""

import io
from collections.abc import Iterable
from dataclasses import dataclass, field

from resourcesync.documents.reader import Document, Limits, TextRow, Tolerated
from resourcesync.documents.reader import read as read_document
from resourcesync.model.entries import Entry, Header, RefusedEntry
from resourcesync.model.vocabulary import Dialect
from tests.support.documents.written import written

URI = "https://source.example/list.xml"
RESOURCE_LIST = '<rs:md capability="resourcelist" at="2013-01-03T09:00:00Z"/>'
CHANGE_LIST = '<rs:md capability="changelist" from="2013-01-03T00:00:00Z"/>'


def document(*children: str, root: str = "urlset", md: str = RESOURCE_LIST) -> bytes:
    body = "\n".join((md, *children))
    return written(f"\n{body}\n", root=root).encode()


def url(loc: str = "http://example.com/res1", *rest: str) -> str:
    return f"<url><loc>{loc}</loc>{''.join(rest)}</url>"


@dataclass
class Told:
    header: Header
    dialect: Dialect
    entries: list[Entry] = field(default_factory=list)
    refusals: list[RefusedEntry] = field(default_factory=list)
    tolerated: tuple[Tolerated, ...] = ()

    @property
    def codes(self) -> list[str]:
        return [found.code for found in self.tolerated]


def open_document(data: bytes) -> Document:
    return read_document(io.BytesIO(data), uri=URI)


def tell(data: bytes, limits: Limits | None = None) -> Told:
    refusals: list[RefusedEntry] = []
    tolerated: list[Tolerated] = []
    opened = read_document(
        io.BytesIO(data),
        uri=URI,
        limits=limits or Limits(),
        on_refused=refusals.append,
        on_tolerated=tolerated.append,
    )
    entries = list(opened.entries())
    assert opened.refused == len(refusals)
    assert opened.tolerated == tuple(tolerated)
    return Told(opened.header, opened.dialect, entries, refusals, opened.tolerated)


def tell_strictly(data: bytes) -> list[Entry]:
    return list(read_document(io.BytesIO(data), uri=URI, strict=True).entries())


def rows(data: bytes) -> list[TextRow]:
    return list(open_document(data).rows())


def uris(entries: Iterable[Entry]) -> list[str]:
    return [entry.uri for entry in entries]


class CountingStream(io.BytesIO):
    """A stream of endless or finite pieces that counts the bytes it gave away."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        super().__init__()
        self._pieces = iter(pieces)
        self._held = b""
        self.given = 0

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        while len(self._held) < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._held += piece
        given, self._held = self._held[:size], self._held[size:]
        self.given += len(given)
        return given
