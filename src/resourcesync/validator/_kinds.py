"""Checks of entries by the kind of their document (§8 to §13, Archives, Notification)."""

from collections.abc import Callable, Mapping
from typing import Final

from resourcesync.model.vocabulary import Capability
from resourcesync.validator._entries import ParsedEntry
from resourcesync.validator._logs import LogEntryChecks
from resourcesync.validator._nodes import TEXT
from resourcesync.validator._order import RepetitionCheck
from resourcesync.validator._packed import PackageEntryCheck, check_path, check_within
from resourcesync.validator._subject import DocumentKind, ExaminedDocument, capability_of

_UNLISTED: Final = frozenset(
    {
        Capability.DESCRIPTION,
        Capability.CAPABILITY_LIST,
        Capability.RESOURCE_DUMP_MANIFEST,
        Capability.CHANGE_DUMP_MANIFEST,
    }
)


class EntryChecks:
    """Checks the entries of one document, one after the other."""

    def __init__(self, kind: DocumentKind) -> None:
        self._repetition = RepetitionCheck()
        self._packages = PackageEntryCheck()
        self._logs = LogEntryChecks(kind, self._packages)
        self._capabilities: set[str] = set()
        self._count = 0
        self._parts = 0
        self._with_via = False
        logs = self._logs
        check: Mapping[DocumentKind, Callable[[ExaminedDocument, ParsedEntry], None]] = {
            DocumentKind.SD: self._description,
            DocumentKind.CAP: self._capability,
            DocumentKind.RL: self._resource,
            DocumentKind.RD: self._resource_package,
            DocumentKind.RDM: self._packed,
            DocumentKind.CH: logs.change,
            DocumentKind.CHI: logs.change_list,
            DocumentKind.CD: logs.change_package,
            DocumentKind.CDI: logs.change_dump,
            DocumentKind.CDM: logs.packed_change,
            DocumentKind.AR: logs.archived,
            DocumentKind.NT: logs.notified,
            DocumentKind.FN: logs.notified,
        }
        self._check = check.get(kind)

    def check(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        """Check the next entry."""
        self._count += 1
        if self._check is not None:
            self._check(subject, entry)
        self._check_via(subject, entry)

    def finish(self, subject: ExaminedDocument) -> None:
        """Tell what only the end of the document shows."""
        root = subject.md or subject.root
        if subject.kind is DocumentKind.CAP and not self._count:
            subject.report_at("CA10", "the Capability List has no entry", root)
        if subject.kind in (DocumentKind.NT, DocumentKind.FN) and not self._count:
            subject.report_at("NT01", "the notification has no entry", root)
        if self._parts and self._parts == self._count:
            subject.report_at("RL08", "all entries are like those of an index", root)
        self._logs.finish(subject)

    # --- descriptions --------------------------------------------------------------------------

    def _description(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        is_channel = _is_framework_channel(entry)
        if entry.md is None:
            subject.report("SD05", "an entry without rs:md", entry.node)
        elif entry.value("capability") != Capability.CAPABILITY_LIST and not is_channel:
            message = f"capability {entry.value('capability')!r} in a Source Description"
            part = "capability" if entry.has("capability") else ""
            subject.report("SD04", message, entry.md, part)
        if not is_channel and not entry.linked("describedby"):
            subject.report("SD06", "no link tells what the set is", entry.node)
        if entry.lastmod_node is not None:
            subject.report("SD07", "lastmod on an entry", entry.lastmod_node)

    def _capability(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        if entry.lastmod_node is not None:
            subject.report("CA06", "lastmod on an entry", entry.lastmod_node)
        label = entry.value("capability")
        if not label or entry.md is None:
            subject.report("CA03", "an entry names no capability", entry.place)
            return
        known = capability_of(label)
        if known in _UNLISTED:
            subject.report("CA04", f"{label} in a Capability List", entry.md, "capability")
        elif known is None:
            message = f"{label[:64]!r} is no capability that can be listed"
            subject.report("CA04", message, entry.md, "capability")
        if label in self._capabilities:
            subject.report("CA05", f"a second {label[:64]}", entry.md, "capability")
        elif len(self._capabilities) < 1_000:  # noqa: PLR2004 - far more than there are
            self._capabilities.add(label)

    # --- snapshots -----------------------------------------------------------------------------

    def _resource(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        self._repetition.check(subject, entry)
        self._parts += entry.is_part
        end = subject.root_times.get("completed") or subject.root_times.get("at")
        lastmod, node = entry.lastmod, entry.lastmod_node
        if end and lastmod and node and lastmod.first > end.last:
            message = f"lastmod {lastmod.text} is after the list's {end.text}"
            subject.report("RL05", message, node, TEXT)
        if node is None and not entry.has("hash") and not entry.has("length"):
            subject.report("RL07", "an entry with no lastmod, length or hash", entry.node)

    def _resource_package(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        self._packages.check(subject, entry, "RD02")
        check_within(subject, entry, "RD06", ("at", "completed"))

    def _packed(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        if not entry.has("path"):
            subject.report("RM04", "an entry without path", entry.place)
        check_path(subject, entry)

    # --- aggregators ---------------------------------------------------------------------------

    def _check_via(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        """Look at ``via`` links: the copy is our own, and no entry lacks the link (§14.8)."""
        via = entry.linked("via")
        for link in via:
            if entry.uri and link.href == entry.uri:
                subject.report("AG01b", "loc is the original that via names", link.node, "href")
        if via:
            self._with_via = True
        elif self._with_via and entry.change != "deleted":
            subject.report_once("AG01c", "an entry without via, after others with it", entry.node)


def _is_framework_channel(entry: ParsedEntry) -> bool:
    """Whether it leads to a channel of Framework Notifications, which no set describes."""
    capability = entry.value("capability")
    return capability == Capability.FRAMEWORK_NOTIFICATION and bool(entry.linked("hub"))
