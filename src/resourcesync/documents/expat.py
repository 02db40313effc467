"""The one driver of expat: DOCTYPE and entities refused, bounded; and the elements that matter.

No other module imports ``pyexpat``. And the state of reading one document: its address, limits,
warnings, and the version it is written in. No version of the format names itself: it is inferred
from the marks that were met. A document without any is read as the newest that it could be.
"""

import pyexpat
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from enum import Enum, StrEnum
from functools import cache
from typing import Final, NoReturn

import msgspec

from resourcesync import errors
from resourcesync.model.entries import Header
from resourcesync.model.leniencies import LENIENCIES, Leniency
from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS, Dialect

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

XML_NS: Final = "http://www.w3.org/XML/1998/namespace"
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

It keeps expat's time linear; comments are split before (see `blocks`).
"""
MAX_NAMES: Final = 1_000
"""Different element and attribute names: expat keeps each until the end."""
MAX_PREFIXES: Final = 100
"""Different namespace prefixes, for the same reason."""

UTF_ENCODINGS: Final = frozenset({"utf-8", "utf8", "utf-16", "utf-16le", "utf-16be"})
"""Encodings that a declaration may name: UTF-16 has been converted to UTF-8 before."""
LATE_DECLARATION: Final = 17
"""expat's code for an XML declaration that is not at the start."""
_INVALID_TOKEN: Final = 4
_BARE: Final = re.compile(rb"&[^\s;<>&]{0,60}\Z")
_TAIL: Final = 64
_BARE_WORDS: Final = "an & that is not written as &amp;"
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
    local name; the encoding is decided before (see `blocks`), and no document changes it.
    ``declared`` is the encoding that the XML declaration names.
    """

    def __init__(
        self,
        error_of: Callable[[XmlFault], Exception],
        *,
        encodings: Collection[str] | None = UTF_ENCODINGS,
    ) -> None:
        self.fed = 0
        self._tail = b""  # of what was fed before
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
            raise self._broken(error, block) from error
        self._tail = (block if len(block) >= _TAIL else self._tail + block)[-_TAIL:]
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
            raise self._broken(error) from error
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

    def _broken(self, error: pyexpat.ExpatError, block: bytes = b"") -> Exception:
        is_cut = not block and error.code in _CUT_SHORT
        offset = max(0, self.parser.ErrorByteIndex)
        known = self._tail + block
        at = max(0, len(known) + offset - self.fed)
        bare = _BARE.search(known[max(0, at - _TAIL) : at])
        back = len(bare[0]) if bare and error.code == _INVALID_TOKEN else 0
        return self._error_of(
            XmlFault(
                kind=XmlFaultKind.CUT_SHORT if is_cut else XmlFaultKind.BROKEN,
                detail=_BARE_WORDS if back else pyexpat.ErrorString(error.code) or "",
                line=error.lineno,
                column=error.offset + 1 - back,
                offset=offset - back,
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


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one document; they bound memory and time for any input.

    What is too long costs itself, not the document: a value that is over its limit counts as not
    written. Only what no list in good faith has refuses the document.

    Attributes:
        bytes: Size of the document, after gunzip.
        entries: ``url`` or ``sitemap`` elements, those refused included.
        depth: Elements inside each other, the root included.
        attributes: Attributes of one element.
        text: Characters of one attribute, or of the text of one element; one that is longer counts
            as not said, and an entry whose ``loc`` it is is refused.
        uri: Characters of a ``loc`` or ``href``; an entry over it is refused, the list is not.
        foreign: Characters of the elements of other communities that one entry, or the root,
            keeps; those over it are left out.
    """

    bytes: int = 64 * 2**20
    entries: int = 100_000
    depth: int = 16
    attributes: int = 64
    text: int = 8192
    uri: int = 2048
    foreign: int = 65_536


def limit_error(
    limit: int, what: str, *, uri: str, line: int = 0, column: int = 0
) -> errors.DocumentLimitError:
    """Return the error for a document that has more than ``limit`` of ``what``."""
    return errors.DocumentLimitError(
        f"The document has more than {limit:,} {what}",
        uri=uri,
        line=line,
        column=column,
        evidence=(("limit", f"{limit:,} {what}"),),
    )


MAX_BEFORE_DECLARATION: Final = 4_096
"""Bytes of blanks, byte order marks and comments that may precede the XML declaration."""
_HINT_BEFORE: Final = (
    "ask the operator of the site to remove what is written before <?xml, often by a plug-in"
)
_ABSOLUTE: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")


DROPPED: Final = frozenset(
    {
        Leniency.TIME_INVALID,
        Leniency.LENGTH_INVALID,
        Leniency.VALUE_LONG,
        Leniency.HASH_INVALID,
        Leniency.HASH_DISAGREES,
    }
)
"""The codes of values that could not be read."""


class Tolerated(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of tolerated fault, at its first place.

    Attributes:
        code: A stable code.
        rule: The rule of the standard that it breaks, as `validate` names it; empty when it
            breaks none.
        reason: A sentence for people.
        line, column: Its first place, 1-based; 0 when it has no place of its own.
    """

    code: Leniency
    rule: str
    reason: str
    line: int
    column: int


class RefusalError(Exception):
    """An entry cannot be used; its list can."""

    def __init__(self, code: str, reason: str, rule: str = "") -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.rule = rule


class ReadingContext:
    """State of reading one document.

    ``counts`` are the numbers of entries or other places that have each tolerated fault,
    ``dropped`` that of values that could not be read. ``version_marks`` were met; see `dialects`.
    """

    def __init__(
        self,
        *,
        uri: str,
        limits: Limits,
        strict: bool = False,
        on_tolerated: Callable[[Tolerated], None] | None = None,
    ) -> None:
        self.uri = uri
        self.strict = strict
        self.longest = min(limits.uri, limits.text)
        self._limits = limits
        self.is_plain = False
        self.tolerated: dict[str, Tolerated] = {}
        self.counts: Counter[Leniency] = Counter()
        self._last_places: dict[Leniency, tuple[int, int]] = {}
        self.dropped = 0
        self.version_marks: set[str] = set()
        self.line = 0
        self.column = 0
        self._on_tolerated = on_tolerated

    def trial(self) -> "ReadingContext":
        """Return a context of the same document that has no marks and has tolerated nothing."""
        return ReadingContext(uri=self.uri, limits=self._limits)

    def set_place(self, line: int, column: int) -> None:
        """Record the place of the entry that is read next."""
        self.line, self.column = line, column

    def tolerate(self, code: Leniency, *, rule: str = "", about: str = "") -> None:
        """Tolerate a fault at the current place, count it, and report the first of its kind."""
        place = (self.line, self.column)
        if code in self.tolerated:
            if self._last_places[code] != place:
                self._last_places[code] = place
                self.counts[code] += 1
            return
        own, sentence = LENIENCIES[code]
        reason = f"{sentence}: {about[:64]!r}" if about else sentence
        found = Tolerated(
            code=code, rule=rule or own, reason=reason, line=self.line, column=self.column
        )
        if self.strict and found.rule:
            self.refuse(code, reason, found.rule)
        self.tolerated[code] = found
        self.counts[code] = 1
        self._last_places[code] = place
        if self._on_tolerated is not None:
            self._on_tolerated(found)

    def drop_value(self, code: Leniency, *, about: str) -> None:
        """Forgive a value that cannot be read, and count it: its entry is used without it."""
        self.tolerate(code, about=about)
        self.dropped += 1

    def refuse(self, code: str, reason: str, rule: str = "") -> NoReturn:
        """Refuse the document for a fault at the current place."""
        raise errors.MalformedDocumentError(
            reason,
            uri=self.uri,
            line=self.line,
            column=self.column,
            evidence=(("rule", rule),) if rule else (),
            code=code,
        )

    def absolute(self, uri: str) -> str:
        """Return a URI, resolved against the document's own when it is relative."""
        if is_absolute(uri):
            return uri
        from resourcesync.documents.relative_addresses import resolve  # noqa: PLC0415 - rare

        try:
            found, leniency = resolve(uri, self.uri, is_plain=self.is_plain)
        except ValueError as error:
            raise RefusalError("uri-illegal", "The loc is not a URI", "G13") from error
        self.tolerate(leniency, about=uri)
        return found


def is_absolute(uri: str) -> bool:
    """True if the URI begins with a scheme."""
    return _ABSOLUTE.match(uri) is not None


P0: Final = "the namespace resourcesync.org/ns"
P1: Final = "elements of the drafts instead of rs:md"
P2: Final = "the namespace openarchives.org/rs"
ETAG: Final = "etag on rs:md"
MODIFIED: Final = "modified on the root's rs:md, and neither at nor from"
BEFORE_0_9_1: Final = "from for a snapshot, or the relation or capability resourcesync"
VIA_CHAIN: Final = "more than one via"
DATETIME: Final = "datetime on a change"
CHANGE_LASTMOD: Final = "lastmod on a change"


_DRAFTS: Final = ((P0, Dialect.P0), (P2, Dialect.P2), (P1, Dialect.P1))
_NEWER: Final = (
    (DATETIME, Dialect.V1_1),
    (BEFORE_0_9_1, Dialect.V0_9),
    (VIA_CHAIN, Dialect.V0_9_1),
    (CHANGE_LASTMOD, Dialect.V1_0),
)


def dialect_of(header: Header, shows: set[str]) -> Dialect:
    """Return the version that these marks show."""
    for mark, dialect in _DRAFTS:
        if mark in shows:
            return dialect
    if header.capability is None:
        return Dialect.SITEMAP
    if MODIFIED in shows and ETAG in shows:
        return Dialect.P2
    if MODIFIED in shows:  # a manifest that is an index is in 0.5 alone; others are as good as 0.6
        is_nested = header.capability.is_manifest and header.is_index
        return Dialect.V0_5 if is_nested else Dialect.V0_6
    return next((dialect for mark, dialect in _NEWER if mark in shows), Dialect.V1_1)


def document_error(fault: XmlFault, uri: str) -> errors.DocumentError:
    """Return the error for a fault of the XML of a document."""
    line, column = fault.line, fault.column
    if fault.kind is XmlFaultKind.LIMIT:
        return limit_error(fault.limit, fault.detail, uri=uri, line=line, column=column)
    if fault.kind is XmlFaultKind.CUT_SHORT:
        message = "The document stops before its end"
        return errors.TruncatedDocumentError(message, uri=uri, line=line, column=column)
    message, code, hint = f"The document is not well-formed XML: {fault.detail}", "", ""
    if fault.code == LATE_DECLARATION:
        message = (
            "More precedes the XML declaration than blanks, byte order marks and comments of"
            f" {MAX_BEFORE_DECLARATION:,} bytes"
        )
        code, hint = Leniency.DECLARATION_LATE, _HINT_BEFORE
    elif fault.kind is XmlFaultKind.DOCTYPE:
        message, code = "The document has a DOCTYPE, which no list needs", "xml-dtd"
    elif fault.kind is XmlFaultKind.ENCODING:
        message = f"The document declares {fault.detail}; only UTF-8 and UTF-16 are read"
        line, column, code = 1, 1, "xml-encoding"
    return errors.MalformedDocumentError(
        message, uri=uri, line=line, column=column, code=code, hint=hint
    )


class SitemapForm(StrEnum):
    """Form in which a sitemap is written."""

    XML = "XML"
    TEXT = "text"
    RSS = "RSS"
    ATOM = "Atom"

    @property
    def is_feed(self) -> bool:
        """True if the form lists recent pages only."""
        return self in {SitemapForm.RSS, SitemapForm.ATOM}


ATOM_NAMESPACES: Final = {
    "http://www.w3.org/2005/Atom": "updated",
    "http://purl.org/atom/ns#": "modified",  # Atom 0.3, which sitemaps.org allows, too
}
"""The namespaces of Atom, each with its element for the time of an entry."""
_RSS_NAMESPACES: Final = ("", "http://backend.userland.com/rss2")


def feed_form(root: str, attributes: list[str]) -> SitemapForm | None:
    """Return the form of the feed that a root element begins; ``None`` if it begins none.

    The draft forms of ResourceSync in Atom name their kind at the root, and are no sitemaps.
    """
    namespace, _, local = root.rpartition(SEPARATOR)
    if local == "rss" and namespace in _RSS_NAMESPACES:
        return SitemapForm.RSS
    is_draft = any(name.rpartition(SEPARATOR)[2] == "type" for name in attributes[::2])
    if local == "feed" and namespace in ATOM_NAMESPACES and not is_draft:
        return SitemapForm.ATOM
    return None
