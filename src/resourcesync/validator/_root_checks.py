"""Checks of the root: its name, its ``rs:md``, its links, and missing ones (§6, §7)."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from resourcesync.documents.expat import ROOTS, SITEMAP_NAMESPACES
from resourcesync.model.settings import RuleProfile
from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS, WELL_KNOWN_PATH, Capability, Dialect
from resourcesync.validator import _attribute_checks
from resourcesync.validator._elements import ElementNode
from resourcesync.validator._examined_document import (
    OLD_NAMESPACES,
    RS_NAMESPACES,
    SNAPSHOTS,
    DocumentKind,
    ExaminedDocument,
    capability_of,
    kind_of,
)
from resourcesync.validator.rule import DRAFTS
from resourcesync.validator.summaries import DocumentPlace

_SPELLINGS: Final = frozenset({"", *SITEMAP_NAMESPACES})
_MAX_LINKS: Final = 100
_TOLERATED: Final = frozenset({"href", "rel", "type"})

_REQUIRED: Final[Mapping[DocumentKind, tuple[str, str, str]]] = {
    DocumentKind.CAP: ("", "", "CA01"),
    DocumentKind.RL: ("at", "RL01", "RL02"),
    DocumentKind.RLI: ("at", "RI01", "RI02"),
    DocumentKind.RD: ("at", "RD01a", "RD01a"),
    DocumentKind.RDI: ("at", "RD05", "RD05"),
    DocumentKind.RDM: ("at", "RM03", "RM03"),
    DocumentKind.CH: ("from", "CH01", "CH02a"),
    DocumentKind.CHI: ("from", "CI01", "CI01"),
    DocumentKind.CD: ("from", "CD01a", "CD01a"),
    DocumentKind.CDI: ("from", "CD06a", "CD06a"),
    DocumentKind.CDM: ("from", "CM01", "CM01"),
    DocumentKind.AR: ("", "", "AR01"),
    DocumentKind.ARI: ("", "", "AR01"),
}
"""The time that each kind begins with, the rule about that, and the rule about the link up."""
_RELATIONS: Final = {"resourcesync": "up", "up": "index"}


def modernise(node: ElementNode, profile: RuleProfile) -> None:
    """Rename in an ``rs:md`` or ``rs:ln`` of the root what a draft called otherwise than 1.0.

    So one set of rules judges both. The link up was ``resourcesync`` and that to the index ``up``,
    the time of a snapshot was ``from`` (0.9) or ``modified`` (0.6); in 0.9 attributes may have the
    prefix. What a draft did not have is in
    the rules that do not apply to it; a list of changes of 0.6 has no interval.
    """
    if profile == "rs-0.9":
        own = {name: value for space, name, value in node.qualified if space in RS_NAMESPACES}
        node.attributes = own | node.attributes
        node.qualified = tuple(item for item in node.qualified if item[0] not in RS_NAMESPACES)
    if node.name == "ln":
        words = node.attributes.get("rel", "").split()
        node.attributes["rel"] = " ".join(_RELATIONS.get(word.lower(), word) for word in words)
        return
    capability = capability_of(node.attributes.get("capability", ""))
    if capability is Capability.DESCRIPTION:
        node.attributes["capability"] = capability.value
    is_snapshot = capability is not None and capability.is_snapshot
    if profile == "rs-0.6":
        moment = node.attributes.pop("modified", None)
        if is_snapshot and moment is not None:
            node.attributes["at"] = moment
    elif is_snapshot:
        _rename(node.attributes, "from", "at")
        _rename(node.attributes, "until", "completed")


def _rename(attributes: dict[str, str], old: str, new: str) -> None:
    if old in attributes and new not in attributes:
        attributes[new] = attributes.pop(old)


class RootChecks:
    """The facts about the root, gathered until the document ends."""

    def __init__(self) -> None:
        self.attributes: dict[str, str] = {}
        self._old = ""
        self._links: dict[str, int] = {}
        self._up: DocumentPlace | None = None

    def start(self, subject: ExaminedDocument, root: ElementNode) -> bool:
        """Check the root's name; return whether the document can be checked any further."""
        subject.root = subject.window.spot(root)
        subject.summary.place = DocumentPlace(line=root.line, column=root.column)
        subject.namespace = root.namespace
        if root.name not in ROOTS or root.namespace not in _SPELLINGS:
            subject.report("G02", f"the root is <{root.name[:64]}> of another kind of XML", root)
            return False
        if root.namespace != SITEMAP_NS:
            named = root.namespace or "no namespace"
            subject.report("G02", f"the root is in {named}, not in that of sitemaps", root)
        subject.summary.is_index = ROOTS[root.name]
        return True

    def metadata(self, subject: ExaminedDocument, node: ElementNode) -> None:
        """Check an ``rs:md`` of the root (§7)."""
        if subject.md is not None:
            subject.report("G05", "the root has a second rs:md", node)
            return
        subject.md = subject.window.spot(node)
        _attribute_checks.check_names(subject, node, _attribute_checks.MD_NAMES)
        self.attributes = node.attributes
        summary = subject.summary
        summary.label = label = node.attributes.get("capability", "").strip()
        summary.capability = capability_of(label)
        subject.kind = kind_of(summary.capability, is_index=summary.is_index)
        summary.place = DocumentPlace(line=node.line, column=node.column, length=subject.md.length)
        self._check_capability(subject, node, label)
        subject.root_times = _attribute_checks.check_values(subject, node)
        _attribute_checks.check_places(subject, node, in_root=True)
        _attribute_checks.check_pairs(subject, node, subject.root_times)
        first = {name: moment.first for name, moment in subject.root_times.items()}
        summary.at, summary.completed = first.get("at"), first.get("completed")
        summary.from_, summary.until = first.get("from"), first.get("until")
        if node.namespace != RS_NS:
            self._old = OLD_NAMESPACES.get(node.namespace, "")

    def _check_capability(self, subject: ExaminedDocument, node: ElementNode, label: str) -> None:
        known = subject.summary.capability
        if not label:
            subject.report("G06", "the root names no capability", node)
        elif label not in set(Capability):
            message = f"capability {label[:64]!r} is not one of the standard"
            subject.report("G07", message, node, "capability")
        path = urlsplit(subject.summary.uri).path if "://" in subject.summary.uri else ""
        if known is not Capability.DESCRIPTION and known and path.endswith(WELL_KNOWN_PATH):
            message = f"{label} at the address of the Source Description"
            subject.report("SD01", message, node, "capability")
        if subject.summary.is_index and known is not None:
            if known is Capability.CAPABILITY_LIST:
                subject.report("CA07", "an index of Capability Lists", node)
            elif known.is_manifest:
                subject.report("RM09", "a manifest with the root sitemapindex", node)

    def link(self, subject: ExaminedDocument, node: ElementNode) -> None:
        """Check an ``rs:ln`` of the root (§6.2, §7)."""
        _attribute_checks.check_link(subject, node)
        relations = node.attributes.get("rel", "").strip()
        href = node.attributes.get("href", "").strip()
        if len(subject.summary.links) < _MAX_LINKS:
            subject.summary.links.append((relations, href))
        extra = sorted(node.attributes.keys() - _TOLERATED)
        if extra:
            subject.report("G41", f"a link of the root carries {', '.join(extra)}", node, extra[0])
        for relation in relations.lower().split()[:20]:
            self._links[relation] = self._links.get(relation, 0) + 1
            if relation in ("up", "index") and self._links[relation] > 1:
                subject.report("G42", f"a second {relation} link under the root", node)
        tokens = relations.lower().split()
        if "up" in tokens and self._up is None:
            self._up = subject.window.spot(node)
        if "index" in tokens and subject.summary.is_index:
            subject.report("LK11", "an index that is part of an index", node)
        if "contents" in tokens:
            subject.report("LK11", "contents under the root", node)

    def finish(self, subject: ExaminedDocument) -> None:
        """Report missing parts of the root (§8 to §13)."""
        if subject.md is None:
            subject.report_at("G05", "the root has no rs:md", subject.root)
            return
        kind = subject.kind
        name, rule, up_rule = _REQUIRED.get(kind, ("", "", ""))
        has_interval = subject.profile != "rs-0.6" or name != "from"
        if name and has_interval and name not in self.attributes:
            subject.report_at(rule, f"the {kind.value} has no {name}", subject.md)
        # In the drafts a document "can also include" the link to its Capability List.
        if up_rule and "up" not in self._links and subject.profile not in DRAFTS:
            subject.report_at(up_rule, f"the {kind.value} has no up link", subject.md)
        if kind in (DocumentKind.SD, DocumentKind.SDI) and self._up is not None:
            subject.report_at("SD03", f"a {kind.value} with an up link", self._up)
        if kind in (DocumentKind.SD, DocumentKind.CAP) and "describedby" not in self._links:
            rule = "SD02" if kind is DocumentKind.SD else "CA02"
            subject.report_at(rule, f"the {kind.value} has no describedby link", subject.md)
        self._finish_dialect(subject, subject.md)

    def _finish_dialect(self, subject: ExaminedDocument, md: DocumentPlace) -> None:
        dialect, why = self._dialect(subject)
        if dialect is None:
            return
        subject.summary.dialect = dialect
        version = dialect.phrase_for(subject.summary.capability)
        subject.report_at("G44", f"written as in version {version}: {why}", md)

    def _dialect(self, subject: ExaminedDocument) -> tuple[Dialect | None, str]:
        if "January" in self._old:
            return Dialect.P2, "the namespace is that of a draft"
        if "2012" in self._old:
            return Dialect.P0, "the namespace is that of a draft"
        if "modified" in self.attributes:
            return Dialect.V0_6, "modified is the time of the document"
        if subject.summary.label == "resourcesync":
            return Dialect.V0_9, "resourcesync is what it calls a Source Description"
        if "resourcesync" in self._links:
            return Dialect.V0_9, "resourcesync is what it calls the link up"
        if subject.kind in SNAPSHOTS and "from" in self.attributes and "at" not in self.attributes:
            return Dialect.V0_9, "from is the time of a snapshot"
        return None, ""
