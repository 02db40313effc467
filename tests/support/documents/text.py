"""Documents as text and as patches, for the tests of reading and writing."""

import io
from collections.abc import Iterable
from dataclasses import dataclass, field

from resourcesync.documents.reader import Document, Limits, TextRow, Tolerated
from resourcesync.documents.reader import read as read_document
from resourcesync.model.entries import Entry, Header, RefusedEntry
from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS, Dialect

URI = "https://source.example/list.xml"
RESOURCE_LIST = '<rs:md capability="resourcelist" at="2013-01-03T09:00:00Z"/>'
CHANGE_LIST = '<rs:md capability="changelist" from="2013-01-03T00:00:00Z"/>'


def document(*children: str, root: str = "urlset", md: str = RESOURCE_LIST) -> bytes:
    """Return a document with these children after its ``rs:md``."""
    body = "\n".join((md, *children))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<{root} xmlns="{SITEMAP_NS}" xmlns:rs="{RS_NS}">\n{body}\n</{root}>\n'
    ).encode()


def url(loc: str = "http://example.com/res1", *rest: str) -> str:
    return f"<url><loc>{loc}</loc>{''.join(rest)}</url>"


@dataclass
class Told:
    """Everything that reading a document told."""

    header: Header
    dialect: Dialect
    entries: list[Entry] = field(default_factory=list)
    refusals: list[RefusedEntry] = field(default_factory=list)
    tolerated: tuple[Tolerated, ...] = ()

    @property
    def codes(self) -> list[str]:
        """The codes of what was forgiven."""
        return [found.code for found in self.tolerated]


def open_document(data: bytes, limits: Limits | None = None) -> Document:
    """Open a document that is in memory."""
    return read_document(io.BytesIO(data), uri=URI, limits=limits or Limits())


def tell(data: bytes, limits: Limits | None = None) -> Told:
    """Read a whole document that is in memory."""
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
    """Read a whole document that is in memory, and forgive nothing."""
    return list(read_document(io.BytesIO(data), uri=URI, strict=True).entries())


def rows(data: bytes) -> list[TextRow]:
    """Read the rows of a whole document that is in memory."""
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
