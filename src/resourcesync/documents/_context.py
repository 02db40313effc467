"""State of reading one document: its address, limits, warnings, and the version it is written in.

No version of the format names itself: the version is inferred from the marks that were met. A
document without any is read as the newest version that it could be.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin

from resourcesync.documents._expat import XmlFault, XmlFaultKind
from resourcesync.errors import (
    DocumentError,
    DocumentLimitError,
    MalformedDocumentError,
    TruncatedDocumentError,
)
from resourcesync.model.capabilities import Header
from resourcesync.model.vocabulary import Dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
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


_ABSOLUTE: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")

_TOLERATED: Final = {
    "sitemap-namespace": ("G02", "The Sitemap namespace is spelled differently"),
    "declaration-late": ("G01", "Blanks stand before the XML declaration"),
    "namespace": ("G04", "The ResourceSync namespace is not that of the standard"),
    "draft": ("G05", "The document is in a draft of 2012, without rs:md"),
    "attribute-prefixed": ("G09", "An attribute of rs:md or rs:ln carries the prefix"),
    "attribute-unknown": ("G10", "rs:md or rs:ln has an undefined attribute"),
    "attribute-misplaced": ("", "An attribute of rs:md is not for such an entry"),
    "entry-attributes": ("G11", "An entry has attributes"),
    "capability-spelled": ("G07", "A capability is spelled differently"),
    "capability-unknown": ("G07", "An entry has a capability that this version does not know"),
    "change-spelled": ("G33", "A change is spelled differently"),
    "packages-in-changelist": ("CH03", "The entries of the Change List are packages"),
    "parts-in-resourcelist": ("RL08", "The entries of the Resource List are Resource Lists"),
    "parts-in-resourcedump": ("RD02", "The entries of the Resource Dump are Resource Dumps"),
    "parts-in-changelist": ("CH03", "The entries of the Change List are Change Lists"),
    "parts-in-changedump": ("CD03", "The entries of the Change Dump are Change Dumps"),
    "change-time-at": ("G37", "The time of a change is in its at"),
    "time-zone": ("G17", "A time has no time zone; it is read as UTC"),
    "time-spelled": ("G17", "A time is not a W3C Datetime, but its meaning is clear"),
    "time-invalid": ("G17", "A time cannot be read; it is ignored"),
    "length-invalid": ("G26", "A length is not a number of bytes; it is ignored"),
    "value-long": ("", "A value has too many characters; it is ignored"),
    "hash-disagrees": ("G29", "Digests of one algorithm disagree; they are ignored"),
    "time-modified": ("G36", "The time of the document is in its modified"),
    "time-from": ("G38", "The time of a snapshot is in its from"),
    "uri-relative": ("G13", "A URI is relative; it is resolved against the document's"),
    "link-incomplete": ("G23", "A link has no rel or no usable href; it is left out"),
    "link-attribute": ("", "An attribute of a link cannot be used"),
    "link-late": ("G22", "A link of the root comes after the entries; it is left out"),
    "relation-old": ("G43", "The way up is named as before 0.9.1"),
    "order-reversed": ("CH05", "The newest change comes first; the order is reversed"),
    "order-backwards": ("CH05", "The newest change comes first; the order is left as it is"),
    "foreign-dropped": ("", "Too many elements of other communities to store"),
}
"""Tolerated faults by code: the rule that each breaks, if any, and a sentence."""
DROPPED: Final = frozenset({"time-invalid", "length-invalid", "value-long", "hash-disagrees"})
"""The codes of values that could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerated:
    """One kind of tolerated fault, at its first place.

    Attributes:
        code: A stable code.
        rule: The rule of the standard that it breaks, as `validate` names it; empty when it
            breaks none.
        reason: A sentence for people.
        line, column: Its first place, 1-based; 0 when it has no place of its own.
    """

    code: str
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

    Args:
        uri: Its address.
        limits: Its bounds.
        strict: True to refuse entries and documents that break a rule.
        on_tolerated: Called once for each kind of tolerated fault.

    Attributes:
        longest: Most characters of a URI.
        tolerated: The faults tolerated so far, by their codes.
        dropped: Number of values that could not be read; they count as absent.
        version_marks: Marks of a version that were met; see `_dialects`.
        line, column: The place of the entry that is being read.
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
        self.tolerated: dict[str, Tolerated] = {}
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

    def tolerate(self, code: str, *, rule: str = "", about: str = "") -> None:
        """Tolerate a fault at the current place, and report the first of its kind.

        Args:
            code: Its code.
            rule: The rule it breaks, when its code leaves that open.
            about: The evidence.

        Raises:
            MalformedDocumentError: Reading is strict, and a rule is broken.
        """
        if code in self.tolerated:
            return
        own, sentence = _TOLERATED[code]
        reason = f"{sentence}: {about[:64]!r}" if about else sentence
        found = Tolerated(
            code=code, rule=rule or own, reason=reason, line=self.line, column=self.column
        )
        if self.strict and found.rule:
            self.refuse(code, found.rule, reason)
        self.tolerated[code] = found
        if self._on_tolerated is not None:
            self._on_tolerated(found)

    def drop_value(self, code: str, *, about: str) -> None:
        """Forgive a value that cannot be read, and count it: its entry is used without it.

        Args:
            code: The code of its fault.
            about: The value.

        Raises:
            MalformedDocumentError: Reading is strict.
        """
        self.tolerate(code, about=about)
        self.dropped += 1

    def refuse(self, code: str, rule: str, reason: str) -> None:
        """Refuse the document for a fault at the current place.

        Raises:
            MalformedDocumentError: Always.
        """
        raise MalformedDocumentError(
            reason,
            uri=self.uri,
            line=self.line,
            column=self.column,
            evidence=(("rule", rule),) if rule else (),
            code=code,
        )

    def absolute(self, uri: str) -> str:
        """Return a URI, resolved against the document's own when it is relative.

        Raises:
            RefusalError: It cannot be resolved.
        """
        if is_absolute(uri):
            return uri
        self.tolerate("uri-relative", about=uri)
        try:
            return urljoin(self.uri, uri)
        except ValueError as error:
            raise RefusalError("uri-illegal", "The loc is not a URI", "G13") from error


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
    """Return the error for a fault of the XML of a document.

    Args:
        fault: The fault.
        uri: The address of the document.
    """
    line, column = fault.line, fault.column
    if fault.kind is XmlFaultKind.LIMIT:
        return limit_error(fault.limit, fault.detail, uri=uri, line=line, column=column)
    if fault.kind is XmlFaultKind.CUT_SHORT:
        message = "The document stops before its end"
        return TruncatedDocumentError(message, uri=uri, line=line, column=column)
    message, code = f"The document is not well-formed XML: {fault.detail}", ""
    if fault.kind is XmlFaultKind.DOCTYPE:
        message, code = "The document has a DOCTYPE, which no list needs", "xml-dtd"
    elif fault.kind is XmlFaultKind.ENCODING:
        message = f"The document declares {fault.detail}; only UTF-8 and UTF-16 are read"
        line, column, code = 1, 1, "xml-encoding"
    return MalformedDocumentError(message, uri=uri, line=line, column=column, code=code)
