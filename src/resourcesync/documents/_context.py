"""State of reading one document: its address, limits, warnings, and the version it is written in.

No version of the format names itself: the version is inferred from the marks that were met. A
document without any is read as the newest version that it could be.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Final
from urllib.parse import urljoin, urlsplit

import msgspec

from resourcesync.documents._expat import LATE_DECLARATION, XmlFault, XmlFaultKind
from resourcesync.errors import (
    DocumentError,
    DocumentLimitError,
    MalformedDocumentError,
    TruncatedDocumentError,
)
from resourcesync.model.capabilities import Header
from resourcesync.model.leniencies import LENIENCIES, Leniency
from resourcesync.model.vocabulary import Dialect


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
) -> DocumentLimitError:
    """Return the error for a document that has more than ``limit`` of ``what``."""
    return DocumentLimitError(
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
            self.refuse(code, found.rule, reason)
        self.tolerated[code] = found
        self.counts[code] = 1
        self._last_places[code] = place
        if self._on_tolerated is not None:
            self._on_tolerated(found)

    def drop_value(self, code: Leniency, *, about: str) -> None:
        """Forgive a value that cannot be read, and count it: its entry is used without it."""
        self.tolerate(code, about=about)
        self.dropped += 1

    def refuse(self, code: str, rule: str, reason: str) -> None:
        """Refuse the document for a fault at the current place."""
        raise MalformedDocumentError(
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
        try:
            if self.is_plain and self._names_own_host(uri):
                self.tolerate(Leniency.SCHEME_MISSING, about=uri)
                return f"{urlsplit(self.uri).scheme}://{uri}"
            self.tolerate(Leniency.URI_RELATIVE, about=uri)
            return urljoin(self.uri, uri)
        except ValueError as error:
            raise RefusalError("uri-illegal", "The loc is not a URI", "G13") from error

    def _names_own_host(self, uri: str) -> bool:
        """True if a relative URI begins with the host of the document, with ``www.`` or without."""
        first = uri.partition("/")[0].lower()
        host = (urlsplit(self.uri).hostname or "").removeprefix("www.")
        return "." in host and first.removeprefix("www.") == host


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
LASTMOD: Final = "lastmod on a change"


_DRAFTS: Final = ((P0, Dialect.P0), (P2, Dialect.P2), (P1, Dialect.P1))
_NEWER: Final = (
    (DATETIME, Dialect.V1_1),
    (BEFORE_0_9_1, Dialect.V0_9),
    (VIA_CHAIN, Dialect.V0_9_1),
    (LASTMOD, Dialect.V1_0),
)


def dialect_of(header: Header, shows: set[str]) -> Dialect:
    """Return the version that these marks show."""
    for mark, dialect in _DRAFTS:
        if mark in shows:
            return dialect
    if header.capability is None:
        return Dialect.SITEMAP
    if MODIFIED in shows:
        return Dialect.P2 if ETAG in shows else _dialect_of_modified(header)
    return next((dialect for mark, dialect in _NEWER if mark in shows), Dialect.V1_1)


def _dialect_of_modified(header: Header) -> Dialect:
    # A manifest that is an index is in 0.5 alone; what shows nothing is as good as 0.6.
    is_nested = header.capability is not None and header.capability.is_manifest
    return Dialect.V0_5 if is_nested and header.is_index else Dialect.V0_6


def document_error(fault: XmlFault, uri: str) -> DocumentError:
    """Return the error for a fault of the XML of a document."""
    line, column = fault.line, fault.column
    if fault.kind is XmlFaultKind.LIMIT:
        return limit_error(fault.limit, fault.detail, uri=uri, line=line, column=column)
    if fault.kind is XmlFaultKind.CUT_SHORT:
        message = "The document stops before its end"
        return TruncatedDocumentError(message, uri=uri, line=line, column=column)
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
    return MalformedDocumentError(message, uri=uri, line=line, column=column, code=code, hint=hint)
