"""The document under examination: its known facts, and the sink of its findings."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

import msgspec

from resourcesync.model.settings import RuleProfile
from resourcesync.model.timestamps import parse_w3c
from resourcesync.model.vocabulary import CAPABILITIES, NOTIFICATIONS, RS_NS, SITEMAP_NS, Capability
from resourcesync.validator._elements import ByteWindow, ElementNode
from resourcesync.validator.rule import RULES, RuleFinding
from resourcesync.validator.summaries import DocumentPlace, DocumentSummary, at_place

OLD_NAMESPACES: Final[Mapping[str, str]] = {
    "http://www.openarchives.org/rs/": "the draft of January 2013",
    "http://resourcesync.org/ns/": "the drafts of 2012",
    "http://www.resourcesync.org/ns/": "the drafts of 2012",
    "https://www.openarchives.org/rs/terms/": "no version",
}
"""Tolerated namespaces, each with the right one."""

RS_NAMESPACES: Final = frozenset({RS_NS, *OLD_NAMESPACES})


class DocumentKind(Enum):
    """The kind of a document by its root and its capability."""

    UNKNOWN = "other"
    SD = "Source Description"
    SDI = "Source Description Index"
    CAP = "Capability List"
    CAPI = "Capability List Index"
    RL = "Resource List"
    RLI = "Resource List Index"
    RD = "Resource Dump"
    RDI = "Resource Dump Index"
    RDM = "Resource Dump Manifest"
    CH = "Change List"
    CHI = "Change List Index"
    CD = "Change Dump"
    CDI = "Change Dump Index"
    CDM = "Change Dump Manifest"
    AR = "archive"
    ARI = "archive index"
    NT = "Change Notification"
    FN = "Framework Notification"


SNAPSHOTS: Final = frozenset(
    {DocumentKind.RL, DocumentKind.RLI, DocumentKind.RD, DocumentKind.RDI, DocumentKind.RDM}
)
LOGS: Final = frozenset(
    {DocumentKind.CH, DocumentKind.CHI, DocumentKind.CD, DocumentKind.CDI, DocumentKind.CDM}
)
DESCRIPTIONS: Final = frozenset(
    {DocumentKind.SD, DocumentKind.SDI, DocumentKind.CAP, DocumentKind.CAPI}
)
MANIFESTS: Final = frozenset({DocumentKind.RDM, DocumentKind.CDM})
CHANGES: Final = frozenset({DocumentKind.CH, DocumentKind.CDM, DocumentKind.NT, DocumentKind.FN})
RESOURCES: Final = frozenset(
    {
        DocumentKind.RL,
        DocumentKind.RDM,
        DocumentKind.CH,
        DocumentKind.CDM,
        DocumentKind.NT,
        DocumentKind.UNKNOWN,
    }
)
DOCUMENTS: Final = frozenset(DocumentKind) - RESOURCES


def capability_of(label: str) -> Capability | None:
    """Return the capability that a value means today, old spellings included."""
    return CAPABILITIES.get(label.strip().lower())


def kind_of(capability: Capability | None, *, is_index: bool) -> DocumentKind:
    if capability is None:
        return DocumentKind.UNKNOWN
    if capability.is_archive:
        return DocumentKind.ARI if is_index else DocumentKind.AR
    has_index = not (capability.is_manifest or capability in NOTIFICATIONS)
    return DocumentKind(f"{capability.phrase}{' Index' if is_index and has_index else ''}")


class ExaminedDocument(msgspec.Struct):
    """One document while it is examined; of a known kind once its root's ``rs:md`` was read."""

    profile: RuleProfile
    window: ByteWindow
    summary: DocumentSummary
    kind: DocumentKind = DocumentKind.UNKNOWN
    namespace: str = SITEMAP_NS
    root: DocumentPlace = msgspec.field(default_factory=DocumentPlace)
    md: DocumentPlace | None = None
    root_times: "dict[str, ParsedTime]" = msgspec.field(default_factory=dict)
    reported: set[str] = msgspec.field(default_factory=set)
    _found: list[RuleFinding] = msgspec.field(default_factory=list)

    def report(self, rule: str, message: str, node: ElementNode, part: str = "") -> None:
        """Report that an element, one of its attributes, or its text breaks a rule."""
        if self.profile in RULES[rule].profiles:
            self.report_at(rule, message, self.window.spot(node, part))

    def report_at(self, rule: str, message: str, spot: DocumentPlace) -> None:
        if self.profile in RULES[rule].profiles:
            self._found.append(at_place(rule, message, self.summary.uri, spot))

    def report_once(self, rule: str, message: str, node: ElementNode) -> None:
        if rule not in self.reported:
            self.reported.add(rule)
            self.report(rule, message, node)

    def drain(self) -> list[RuleFinding]:
        """Return the findings since the last call."""
        found, self._found = self._found, []
        return found

    def is_sitemap(self, node: ElementNode) -> bool:
        return node.namespace == self.namespace


_FULL: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", re.ASCII)
_ZONED: Final = re.compile(r".*(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_SPANS: Final = {4: timedelta(days=365), 7: timedelta(days=27), 10: timedelta(days=1)}


class ParsedTime(msgspec.Struct, frozen=True):
    """A time as written, and the first and the last instant that it may mean.

    A date without a time means any instant of that day.
    """

    text: str
    first: datetime
    last: datetime


def read_moment(
    subject: ExaminedDocument, node: ElementNode, part: str, text: str
) -> ParsedTime | None:
    """Return the time in an attribute or an element; report its faults (§7)."""
    text = text.strip()
    name = node.name if part == "#text" else part
    try:
        first = parse_w3c(text)
    except ValueError:
        subject.report("G17", f"{name} {text[:64]!r} is not a W3C datetime", node, part)
        return None
    if "T" in text and _ZONED.fullmatch(text) is None:
        subject.report("G17", f"{name} {text} has no time zone", node, part)
    elif _FULL.fullmatch(text) is None:
        subject.report("G18", f"{name} {text} is not written in full, in UTC, with Z", node, part)
    span = _SPANS.get(len(text), timedelta())
    last = first + span if first.year < 9998 else first  # noqa: PLR2004 - no year after 9999
    return ParsedTime(text, first, last)
