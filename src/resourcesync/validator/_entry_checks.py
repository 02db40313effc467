"""Checks of any entry, whatever its document: elements, their order (§7), links (§14)."""

from typing import Final
from urllib.parse import urlsplit

import msgspec

from resourcesync.model.vocabulary import Capability, Relation
from resourcesync.validator import _attribute_checks
from resourcesync.validator._elements import TEXT, ElementNode
from resourcesync.validator._examined_document import (
    OLD_NAMESPACES,
    RESOURCES,
    RS_NAMESPACES,
    DocumentKind,
    ExaminedDocument,
    ParsedTime,
    read_moment,
)
from resourcesync.validator.summaries import DocumentPlace

_LONGEST: Final = 2_048
_FREQUENCIES: Final = frozenset(
    {"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"}
)
_ORDER: Final = {"loc": 0, "lastmod": 1, "changefreq": 2, "priority": 3}
_OF_PARTS: Final = frozenset({"at", "completed", "capability"})
_METADATA: Final = 4
_LINK: Final = 5


class ParsedLink(msgspec.Struct):
    """An ``rs:ln`` with its relation types in small letters and its times."""

    node: ElementNode
    relations: frozenset[str]
    href: str
    times: dict[str, ParsedTime]


class ParsedEntry(msgspec.Struct):
    """An entry, as far as it could be parsed."""

    node: ElementNode
    uri: str = ""
    md: ElementNode | None = None
    times: dict[str, ParsedTime] = msgspec.field(default_factory=dict)
    lastmod: ParsedTime | None = None
    lastmod_node: ElementNode | None = None
    change: str = ""
    links: list[ParsedLink] = msgspec.field(default_factory=list)

    def value(self, name: str) -> str:
        return "" if self.md is None else self.md.attributes.get(name, "").strip()

    def has(self, name: str) -> bool:
        """True if the entry's ``rs:md`` carries an attribute."""
        return self.md is not None and name in self.md.attributes

    def linked(self, relation: str) -> list[ParsedLink]:
        return [link for link in self.links if relation in link.relations]

    @property
    def is_part(self) -> bool:
        """True if it has the attributes of an index entry, and none of a resource."""
        names = set() if self.md is None else set(self.md.attributes)
        told = self.value("capability").lower() or Capability.RESOURCE_LIST
        is_bare = names <= _OF_PARTS and told == Capability.RESOURCE_LIST
        return bool(names) and is_bare and not self.links and self.lastmod_node is None

    @property
    def is_change_list(self) -> bool:
        """True if it has the capability of a Change List, and no change."""
        named = self.value("capability").lower() == Capability.CHANGE_LIST
        return named and not self.has("change")

    @property
    def place(self) -> ElementNode:
        """Place of findings about the metadata: the ``rs:md`` or else the entry."""
        return self.md or self.node


def is_rs(subject: ExaminedDocument, node: ElementNode) -> bool:
    """True if an element belongs to ResourceSync; report a wrong namespace (§4)."""
    if node.namespace in OLD_NAMESPACES:
        message = f"rs:{node.name} is in the namespace of {OLD_NAMESPACES[node.namespace]}"
        subject.report_once("G04", message, node)
    elif node.name in ("md", "ln") and node.namespace in ("", subject.namespace):
        subject.report_once("G04", f"{node.name} is not in the namespace of ResourceSync", node)
        return True
    return node.namespace in RS_NAMESPACES


def read_entry(subject: ExaminedDocument, node: ElementNode) -> ParsedEntry:
    """Check an entry by itself and return its values (§7)."""
    entry = ParsedEntry(node)
    if node.attributes or node.qualified:
        subject.report("G11", f"<{node.name}> has attributes", node)
    counts: dict[str, int] = {}
    for child in node.children:
        if subject.is_sitemap(child) and child.name not in ("md", "ln"):
            counts[child.name] = counts.get(child.name, 0) + 1
            _read_sitemap(subject, entry, child, counts[child.name])
        elif subject.profile != "sitemap" and is_rs(subject, child):
            _read_rs(subject, entry, child)
    if not counts.get("loc"):
        subject.report("G12", f"a <{node.name}> has no loc", node)
    _check_order(subject, node)
    return entry


def _read_sitemap(
    subject: ExaminedDocument, entry: ParsedEntry, child: ElementNode, count: int
) -> None:
    if child.name == "loc":
        _read_loc(subject, entry, child, count)
    elif child.name in ("lastmod", "changefreq") and count > 1:
        subject.report("G14", f"a second {child.name} in one entry", child)
    elif child.name == "lastmod":
        entry.lastmod = read_moment(subject, child, TEXT, child.text)
        entry.lastmod_node = child
    elif child.name == "changefreq":
        if child.text not in _FREQUENCIES:
            subject.report(
                "G16", f"changefreq {child.text[:64]!r} is not one of the seven values", child, TEXT
            )
        elif entry.node.name == "sitemap" or subject.kind not in RESOURCES:
            subject.report("G16", "changefreq on an entry that is not a resource", child)
    elif child.name in ("url", "sitemap"):
        subject.report("G03", f"a <{child.name}> in an entry", child)


def _read_loc(
    subject: ExaminedDocument, entry: ParsedEntry, child: ElementNode, count: int
) -> None:
    if count > 1:
        subject.report("G12", "a second loc in one entry", child)
        return
    entry.uri = child.text
    if not child.text:
        subject.report("G12", "loc is empty", child)
    elif len(child.text) >= _LONGEST:
        subject.report("G13a", f"loc has {len(child.text):,} characters", child, TEXT)
    elif not _attribute_checks.is_uri(child.text):
        subject.report("G13a", f"loc {child.text[:100]!r} is not an absolute URI", child, TEXT)
    elif "#" in child.text:
        subject.report("G13b", "loc has a fragment", child, TEXT)
    elif subject.profile == "sitemap" and entry.node.name == "url":
        _check_location(subject, child)


def _check_location(subject: ExaminedDocument, loc: ElementNode) -> None:
    sitemap, page = urlsplit(subject.summary.uri), urlsplit(loc.text)
    if not sitemap.netloc or sitemap.netloc.lower() != page.netloc.lower():
        return
    folder = sitemap.path.rpartition("/")[0] + "/"
    if not (page.path or "/").startswith(folder):
        subject.report("SM01", f"{loc.text[:100]} is not below {folder}", loc, TEXT)


def _read_rs(subject: ExaminedDocument, entry: ParsedEntry, child: ElementNode) -> None:
    if child.name == "ln":
        times = _attribute_checks.check_link(subject, child)
        relations = frozenset(child.attributes.get("rel", "").lower().split())
        href = child.attributes.get("href", "").strip()
        entry.links.append(ParsedLink(child, relations, href, times))
    elif child.name == "md":
        if entry.md is not None:
            subject.report("G15", "a second rs:md in one entry", child)
            return
        entry.md = child
        _attribute_checks.check_names(subject, child, _attribute_checks.MD_NAMES)
        entry.times = _attribute_checks.check_values(subject, child)
        entry.change = _attribute_checks.check_change(subject, child)
        _attribute_checks.check_places(subject, child, in_root=False)
        _attribute_checks.check_pairs(subject, child, entry.times)


def _check_order(subject: ExaminedDocument, node: ElementNode) -> None:
    highest = 0
    for child in node.children:
        if subject.is_sitemap(child):
            rank = _ORDER.get(child.name, highest)
        elif child.namespace in RS_NAMESPACES:
            rank = _METADATA if child.name == "md" else _LINK
        else:
            continue
        if rank < highest:
            subject.report("G22", f"{child.name} comes too late in its entry", child)
            return
        highest = rank


_MAX_PAIRS: Final = 50_000
_REPEATED: Final = ("hash", "length", "type", "encoding")
_PATCHED: Final = frozenset(
    {DocumentKind.CH, DocumentKind.CDM, DocumentKind.NT, DocumentKind.UNKNOWN}
)
_PACKED: Final = frozenset({DocumentKind.RD, DocumentKind.CD, DocumentKind.UNKNOWN})


def check_links(subject: ExaminedDocument, entry: ParsedEntry) -> None:
    """Check the attributes of an entry's links, and whether they are allowed there (§14)."""
    for link in entry.links:
        _check_patch(subject, entry, link)
        _check_plain(subject, link)
        _check_versions(subject, entry, link)
        for relation in ("up", "index"):
            if relation in link.relations:
                subject.report("LK11", f"{relation} on an entry", link.node)
        if "contents" in link.relations and subject.kind not in _PACKED:
            subject.report("LK11", f"contents in a {subject.kind.value}", link.node)
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


class DescriptionLinks:
    """Links between entries and their descriptions, to check both directions (§14.5)."""

    def __init__(self) -> None:
        self._described: dict[tuple[int, int], DocumentPlace] = {}
        self._describing: dict[tuple[int, int], DocumentPlace] = {}
        self._listed: set[int] = set()

    def add(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        here = hash(entry.uri)
        self._listed.add(here)
        for link in entry.linked("describedby"):
            self._note(self._described, (here, hash(link.href)), subject, link)
        describes = entry.linked("describes")
        for link in describes:
            self._note(self._describing, (hash(link.href), here), subject, link)
        if describes and not entry.linked("profile"):
            subject.report("LK10", "an entry that describes another has no profile", entry.node)

    def finish(self, subject: ExaminedDocument) -> None:
        """Report links without a link back, if both entries are in this document."""
        for (resource, metadata), spot in self._described.items():
            if metadata in self._listed and (resource, metadata) not in self._describing:
                subject.report_at("LK09", "the metadata does not link back with describes", spot)
        for (resource, metadata), spot in self._describing.items():
            if resource in self._listed and (resource, metadata) not in self._described:
                subject.report_at("LK09", "the resource does not link back with describedby", spot)

    def _note(
        self,
        pairs: dict[tuple[int, int], DocumentPlace],
        pair: tuple[int, int],
        subject: ExaminedDocument,
        link: ParsedLink,
    ) -> None:
        if len(pairs) < _MAX_PAIRS:
            spot = subject.window.spot(link.node)
            pairs[pair] = DocumentPlace(line=spot.line, column=spot.column, length=spot.length)
