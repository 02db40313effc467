"""Checks of the links of entries (§14)."""

from typing import Final

from resourcesync.model.vocabulary import Relation
from resourcesync.validator._entries import ParsedEntry, ParsedLink
from resourcesync.validator._nodes import Spot
from resourcesync.validator._subject import DocumentKind, ExaminedDocument

_MAX_PAIRS: Final = 50_000
_REPEATED: Final = ("hash", "length", "type", "encoding")
_PATCHED: Final = frozenset(
    {DocumentKind.CH, DocumentKind.CDM, DocumentKind.NT, DocumentKind.UNKNOWN}
)
_PACKED: Final = frozenset({DocumentKind.RD, DocumentKind.CD, DocumentKind.UNKNOWN})


def check_links(subject: ExaminedDocument, entry: ParsedEntry) -> None:
    """Check what the links of an entry carry, and whether they may stand there (§14)."""
    for link in entry.links:
        _check_patch(subject, entry, link)
        _check_plain(subject, link)
        _check_versions(subject, entry, link)
        _check_structure(subject, link)
    for relation, rule in (("memento", "LK05"), ("via", "LK08"), ("contents", "RD04a")):
        for link in entry.linked(relation)[1:]:
            if relation != "contents" or subject.kind in _PACKED:
                subject.report(rule, f"a second {relation} link in one entry", link.node)


def _check_patch(subject: ExaminedDocument, entry: ParsedEntry, link: ParsedLink) -> None:
    if Relation.PATCH not in link.relations:
        if "path" in link.node.attributes:
            subject.report("G31", "path on a link that is no patch", link.node, "path")
        return
    if subject.kind not in _PATCHED:
        subject.report("LK02a", f"a patch in a {subject.kind.value}", link.node)
        return
    if not link.node.attributes.get("type", "").strip():
        subject.report("LK01", "a patch without type", link.node)
    if entry.change and entry.change != "updated":
        subject.report("LK02b", f"a patch on a resource that was {entry.change}", link.node)
    has_path = "path" in link.node.attributes
    if subject.kind is DocumentKind.CDM and not has_path:
        subject.report("CM07", "a packed patch without path", link.node)
    elif has_path and subject.kind is not DocumentKind.CDM:
        subject.report("G31", "path on a patch that is in no package", link.node, "path")


def _check_plain(subject: ExaminedDocument, link: ParsedLink) -> None:
    found = link.node.attributes
    if "duplicate" in link.relations:
        for name in _REPEATED:
            if name in found:
                subject.report("LK03", f"a mirror repeats {name}", link.node, name)
    if "alternate" in link.relations and not found.get("type", "").strip():
        subject.report("LK04", "an alternate representation without type", link.node)
    if "timegate" in link.relations:
        for name in found:
            if name not in ("href", "rel"):
                subject.report("LK07", f"a timegate with {name}", link.node, name)


def _check_versions(subject: ExaminedDocument, entry: ParsedEntry, link: ParsedLink) -> None:
    if "memento" not in link.relations:
        return
    modified = link.times.get("modified")
    if "modified" not in link.node.attributes:
        subject.report("LK06", "a memento without modified", link.node)
    elif modified and entry.lastmod and modified.first != entry.lastmod.first:
        message = f"modified {modified.text} is not the lastmod {entry.lastmod.text}"
        subject.report("LK06", message, link.node, "modified")


def _check_structure(subject: ExaminedDocument, link: ParsedLink) -> None:
    for relation in ("up", "index"):
        if relation in link.relations:
            subject.report("LK11", f"{relation} on an entry", link.node)
    if "contents" in link.relations and subject.kind not in _PACKED:
        subject.report("LK11", f"contents in a {subject.kind.value}", link.node)


class DescriptionLinks:
    """Which entries describe which, to see whether the links lead both ways (§14.5)."""

    def __init__(self) -> None:
        self._described: dict[tuple[int, int], Spot] = {}
        self._describing: dict[tuple[int, int], Spot] = {}
        self._listed: set[int] = set()

    def add(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        """Take note of an entry."""
        here = hash(entry.uri)
        self._listed.add(here)
        for link in entry.linked("describedby"):
            self._note(self._described, (here, hash(link.href)), subject, link)
        describes = entry.linked("describes")
        for link in describes:
            self._note(self._describing, (hash(link.href), here), subject, link)
        if describes and not entry.linked("profile"):
            subject.report("LK10", "an entry that describes another tells no profile", entry.node)

    def finish(self, subject: ExaminedDocument) -> None:
        """Tell which links do not lead back, where both entries are in this document."""
        for (resource, metadata), spot in self._described.items():
            if metadata in self._listed and (resource, metadata) not in self._describing:
                subject.report_at("LK09", "the metadata does not link back with describes", spot)
        for (resource, metadata), spot in self._describing.items():
            if resource in self._listed and (resource, metadata) not in self._described:
                message = "the resource does not link back with describedby"
                subject.report_at("LK09", message, spot)

    def _note(
        self,
        pairs: dict[tuple[int, int], Spot],
        pair: tuple[int, int],
        subject: ExaminedDocument,
        link: ParsedLink,
    ) -> None:
        if len(pairs) < _MAX_PAIRS:
            spot = subject.window.spot(link.node)
            pairs[pair] = Spot(line=spot.line, column=spot.column, length=spot.length)
