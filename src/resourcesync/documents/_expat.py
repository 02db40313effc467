"""The one driver of expat, safe against hostile documents, and the elements that matter.

No other module imports ``pyexpat``.
"""

import pyexpat
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from functools import cache
from typing import Final

import msgspec

from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS

SEPARATOR: Final = "\x1f"
"""Separator of namespace and local name; XML excludes it, so no text looks like a name."""

# Numbers of the elements that matter.
ENTRY: Final = 0
LOC: Final = 1
LASTMOD: Final = 2
CHANGEFREQ: Final = 3
PRIORITY: Final = 4
MD: Final = 5
LN: Final = 6
MISPLACED: Final = 7
"""A ``sitemap`` in a ``urlset`` or the other way round."""

# Elements of the drafts of 2012, which rs:md has replaced.
SIZE: Final = 8
FIXITY: Final = 9
MD5: Final = 10
EVENT: Final = 11
EXPIRES: Final = 12
DRAFT_ELEMENTS: Final = frozenset({SIZE, FIXITY, MD5, EVENT, EXPIRES})
FOREIGN: Final = 13

SITEMAP_NAMESPACES: Final = (
    SITEMAP_NS,
    "https://www.sitemaps.org/schemas/sitemap/0.9",
    "http://www.google.com/schemas/sitemap/0.84",
    "http://www.google.com/schemas/sitemap/0.9",
    "http://www.google.com/schemas/sitemap/0.90",
    "http://www.sitemaps.org/schemas/sitemap/0.90",
    "http://sitemaps.org/schemas/sitemap/0.9",
    "https://sitemaps.org/schemas/sitemap/0.9",
    *(
        f"{scheme}://{host}/schemas/sitemap/0.9/"
        for scheme in ("http", "https")
        for host in ("www.sitemaps.org", "sitemaps.org")
    ),
)
"""The Sitemap namespace and the spellings of it that are met in the wild."""

RS_NAMESPACES: Final = (RS_NS, "https://www.openarchives.org/rs/terms/")

P0_NAMESPACES: Final = ("http://resourcesync.org/ns/", "http://resourcesync.org/schemas/resync/0.9")
P2_NAMESPACE: Final = "http://www.openarchives.org/rs/"
ALL_RS_NAMESPACES: Final = (*RS_NAMESPACES, *P0_NAMESPACES, P2_NAMESPACE)
"""The ResourceSync namespace, its other spelling, and those of the drafts."""

ROOTS: Final = {"urlset": False, "sitemapindex": True}
"""The local names of root elements, and whether each is an index."""


_OURS: Final = {
    "md": MD,
    "ln": LN,
    "size": SIZE,
    "fixity": FIXITY,
    "md5": MD5,
    "eventtype": EVENT,
    "expires": EXPIRES,
}


def _sitemap_marks(*, is_index: bool) -> dict[str, int]:
    return {
        "url": MISPLACED if is_index else ENTRY,
        "sitemap": ENTRY if is_index else MISPLACED,
        "loc": LOC,
        "lastmod": LASTMOD,
        "changefreq": CHANGEFREQ,
        "priority": PRIORITY,
        "expires": EXPIRES,
    }


@cache
def marks(*, is_index: bool) -> dict[str, int]:
    """Return the number of each element that matters under such a root."""
    sitemap = _sitemap_marks(is_index=is_index)
    found = {
        f"{namespace}{SEPARATOR}{local}": mark
        for namespace in SITEMAP_NAMESPACES
        for local, mark in sitemap.items()
    }
    found.update(
        (f"{namespace}{SEPARATOR}{local}", mark)
        for namespace in ALL_RS_NAMESPACES
        for local, mark in _OURS.items()
    )
    return found


def marks_in(namespace: str, *, is_index: bool) -> Mapping[str, int]:
    """Return the same for a root in another namespace, or in none; its elements are in it, too."""
    prefix = f"{namespace}{SEPARATOR}" if namespace else ""
    sitemap = _sitemap_marks(is_index=is_index)
    # What means something in ResourceSync keeps its meaning.
    return {f"{prefix}{local}": mark for local, mark in sitemap.items()} | marks(is_index=is_index)


MAX_TOKEN: Final = 65_536
"""Bytes of one tag or instruction, and characters of one text: no list has as many.

It keeps expat's time linear; comments are split before (see `_blocks`).
"""
MAX_NAMES: Final = 1_000
"""Different element and attribute names: expat keeps each until the end."""
MAX_PREFIXES: Final = 100
"""Different namespace prefixes, for the same reason."""

UTF_ENCODINGS: Final = frozenset({"utf-8", "utf8", "utf-16", "utf-16le", "utf-16be"})
"""Encodings that a declaration may name: UTF-16 has been converted to UTF-8 before."""
JUNK_AFTER_ROOT: Final = 9
"""expat's code for something behind the root."""
LATE_DECLARATION: Final = 17
"""expat's code for an XML declaration that is not at the start."""
_CUT_SHORT: Final = frozenset({3, 5, 6, 20})
"""expat's codes for: no element, an unclosed token, half a character, an unclosed CDATA section."""
_BLOCK: Final = 65_536


class XmlFaultKind(Enum):
    """The kind of a fault that ends the reading of a document."""

    BROKEN = "not well-formed"
    CUT_SHORT = "stops before its end"
    ENCODING = "in another encoding"
    DOCTYPE = "with a DOCTYPE"
    LIMIT = "over a limit"


class XmlFault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that ends the reading of a document.

    ``detail`` is the reason by expat, the declared encoding, the name in the DOCTYPE, or what is
    limited, in the plural. ``offset`` is in bytes; ``limit`` and ``code`` are 0 if there is none.
    """

    kind: XmlFaultKind
    detail: str
    line: int
    column: int
    offset: int
    limit: int = 0
    code: int = 0


class XmlDriver:
    """A driver that feeds one document through expat: bounded memory and time for any input.

    Nothing is expanded: a DOCTYPE ends the reading. Names are reported as namespace, `SEPARATOR`,
    local name; the encoding is decided before (see `_blocks`), and no document changes it.
    ``declared`` is the encoding that the XML declaration names.
    """

    def __init__(
        self,
        error_of: Callable[[XmlFault], Exception],
        *,
        encodings: Collection[str] | None = UTF_ENCODINGS,
    ) -> None:
        self.fed = 0
        self.declared = ""
        self.closed = False
        self._error_of = error_of
        self._encodings = encodings
        self._prefixes: set[str | None] = set()
        parser = pyexpat.ParserCreate("utf-8", SEPARATOR)
        parser.buffer_text = True
        # Newer expats wait for more bytes before they try a token again; MAX_TOKEN does it for all.
        at_once = getattr(parser, "SetReparseDeferralEnabled", None)
        if at_once is not None:
            at_once(False)  # noqa: FBT003 - expat's signature
        parser.XmlDeclHandler = self._declaration
        parser.StartDoctypeDeclHandler = self._doctype
        self.parser = parser

    def feed(self, block: bytes) -> None:
        """Feed the next bytes; a block bounds what is read before limits are checked."""
        parser = self.parser
        self.fed += len(block)
        try:
            parser.Parse(block, False)  # noqa: FBT003 - expat's signature
        except pyexpat.ExpatError as error:
            raise self._broken(error) from error
        if self.fed - parser.CurrentByteIndex > MAX_TOKEN:
            raise self.over(MAX_TOKEN, "bytes in one tag")
        if len(parser.intern) > MAX_NAMES:
            raise self.over(MAX_NAMES, "different names")

    def close(self) -> None:
        """End the document."""
        if self.closed:
            return
        try:
            self.parser.Parse(b"", True)  # noqa: FBT003 - expat's signature
        except pyexpat.ExpatError as error:
            raise self._broken(error, at_end=True) from error
        self.closed = True

    def read(self, data: bytes) -> None:
        """Feed a whole document, and end it."""
        for start in range(0, len(data), _BLOCK):
            self.feed(data[start : start + _BLOCK])
        self.close()

    def place(self) -> tuple[int, int]:
        """Return line and column of what comes next, or of what is being read; 1-based."""
        return self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1

    def over(self, limit: int, what: str) -> Exception:
        """Return the error of a document that has more than ``limit`` of ``what``."""
        return self._fault(XmlFaultKind.LIMIT, what, limit)

    def check_namespace(self, prefix: str | None, uri: str | None, longest: int) -> None:
        """Check the declaration of a namespace: expat keeps each prefix until the end."""
        if max(len(prefix or ""), len(uri or "")) > longest:
            raise self.over(longest, "characters in one name")
        self._prefixes.add(prefix)
        if len(self._prefixes) > MAX_PREFIXES:
            raise self.over(MAX_PREFIXES, "different namespace prefixes")

    def _broken(self, error: pyexpat.ExpatError, *, at_end: bool = False) -> Exception:
        is_cut = at_end and error.code in _CUT_SHORT
        return self._error_of(
            XmlFault(
                kind=XmlFaultKind.CUT_SHORT if is_cut else XmlFaultKind.BROKEN,
                detail=pyexpat.ErrorString(error.code) or "",
                line=error.lineno,
                column=error.offset + 1,
                offset=max(0, self.parser.ErrorByteIndex),
                code=error.code,
            )
        )

    def _declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        self.declared = encoding or ""
        known = self._encodings
        if self.declared and known is not None and self.declared.lower() not in known:
            raise self._fault(XmlFaultKind.ENCODING, self.declared[:40])

    def _doctype(self, name: str, *_identifiers: object) -> None:
        raise self._fault(XmlFaultKind.DOCTYPE, name)

    def _fault(self, kind: XmlFaultKind, detail: str, limit: int = 0) -> Exception:
        line, column = self.place()
        offset = max(0, self.parser.CurrentByteIndex)
        return self._error_of(
            XmlFault(kind=kind, detail=detail, line=line, column=column, offset=offset, limit=limit)
        )
