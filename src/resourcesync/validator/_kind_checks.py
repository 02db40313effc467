"""Checks that depend on the kind of document (§8 to §13, Archives, Notification).

Some need more than one entry: order, repetition, the life of a resource.
"""

from collections.abc import Callable, Mapping
from typing import Final

from resourcesync.model.vocabulary import (
    LISTED_CAPABILITIES,
    MAX_ENTRIES,
    NOTIFICATIONS,
    Capability,
)
from resourcesync.validator._elements import TEXT, ElementNode
from resourcesync.validator._entry_checks import ParsedEntry
from resourcesync.validator._examined_document import (
    DocumentKind,
    ExaminedDocument,
    ParsedTime,
    capability_of,
)
from resourcesync.validator.rule import DATED_BY_LASTMOD

_IMPOSSIBLE: Final = frozenset(
    {("created", "created"), ("updated", "created"), ("deleted", "updated"), ("deleted", "deleted")}
)


class TimeOrderCheck:
    """The check that times come oldest first; entries without a time are skipped."""

    def __init__(self) -> None:
        self._before: ParsedTime | None = None

    def check(
        self,
        subject: ExaminedDocument,
        rule: str,
        moment: ParsedTime | None,
        node: ElementNode,
        part: str,
    ) -> None:
        if moment is None:
            return
        if self._before is not None and moment.last < self._before.first:
            name = node.name if part == TEXT else f"md/@{part}"
            message = f"{name} {moment.text} is before the {self._before.text} of an entry above it"
            subject.report(rule, message, node, part)
            return
        self._before = moment


class ChangeSequenceCheck:
    """The changes of a Change List or its packaged form, one after the other (§12.1, §13.2)."""

    def __init__(self, kind: DocumentKind) -> None:
        self._list = kind is DocumentKind.CH
        self._order = TimeOrderCheck()
        self._last: dict[int, str] = {}
        self._moments: set[int] = set()

    def check(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        self._check_order(subject, entry)
        if self._list and entry.uri:
            self._check_repeated(subject, entry)
            mark = hash(entry.uri)
            before = self._last.get(mark)
            if before is not None and (before, entry.change) in _IMPOSSIBLE:
                message = f"{entry.uri[:200]} is {entry.change} after it was {before}"
                subject.report("CH12", message, entry.place, "change" if entry.md else "")
            if before is not None or len(self._last) < MAX_ENTRIES:
                self._last[mark] = entry.change

    def _check_order(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        rule = "CH05" if self._list else "CM05"
        if subject.profile in DATED_BY_LASTMOD:
            if entry.lastmod_node is not None:
                self._order.check(subject, rule, entry.lastmod, entry.lastmod_node, TEXT)
        elif entry.md is not None:
            self._order.check(subject, rule, entry.times.get("datetime"), entry.md, "datetime")

    def _check_repeated(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        old = subject.profile in DATED_BY_LASTMOD
        moment = entry.lastmod if old else entry.times.get("datetime")
        if moment is None:
            return
        mark = hash((entry.uri, moment.first))
        if mark in self._moments:
            message = f"{entry.uri[:200]} changed twice at {moment.text}"
            subject.report("CH08a" if old else "CH08b", message, entry.node)
        elif len(self._moments) < MAX_ENTRIES:
            self._moments.add(mark)


_ZIP: Final = frozenset({"application/zip", "application/x-zip-compressed"})


def check_path(subject: ExaminedDocument, entry: ParsedEntry) -> None:
    """Check the path and the type of an entry of a manifest (§11.2)."""
    path = entry.value("path")
    if entry.has("path"):
        if not path.startswith("/") or path.endswith("/"):
            message = f"path {path[:200]!r} is not of the form /folder/file"
            subject.report("RM05a", message, entry.place, "path")
        if ".." in path.split("/"):
            subject.report("RM05b", f"path {path[:200]!r} has .. in it", entry.place, "path")
    if not entry.value("type") and entry.change != "deleted":
        subject.report("RM08", "an entry without type", entry.place)


def check_within(
    subject: ExaminedDocument, entry: ParsedEntry, rule: str, names: tuple[str, str]
) -> None:
    """Check that the times of a package lie within those of its dump (§11.1, §13.1)."""
    for name in names:
        _check_inside(subject, rule, entry.times.get(name), entry.place, name, names)


def _check_inside(
    subject: ExaminedDocument,
    rule: str,
    moment: ParsedTime | None,
    node: ElementNode,
    part: str,
    names: tuple[str, str] = ("from", "until"),
) -> None:
    start, end = (subject.root_times.get(name) for name in names)
    name = node.name if part == TEXT else part
    whose = subject.kind.value.rpartition(" ")[2].lower()
    if moment and start and moment.last < start.first:
        message = f"{name} {moment.text} is before the {whose}'s {names[0]} {start.text}"
        subject.report(rule, message, node, part)
    elif moment and end and moment.first > end.last:
        message = f"{name} {moment.text} is after the {whose}'s {names[1]} {end.text}"
        subject.report(rule, message, node, part)


class EntryChecks:
    """The checks of the entries of one document, one after the other."""

    def __init__(self, kind: DocumentKind) -> None:
        self._listed: set[int] = set()
        self._media_type = ""
        self._changes = ChangeSequenceCheck(kind)
        self._order = TimeOrderCheck()
        self._before: ParsedEntry | None = None
        self._open = 0
        self._capabilities: set[str] = set()
        self._count = 0
        self._parts = 0
        self._with_via = False
        check: Mapping[DocumentKind, Callable[[ExaminedDocument, ParsedEntry], None]] = {
            DocumentKind.SD: self._description,
            DocumentKind.CAP: self._capability,
            DocumentKind.RL: self._resource,
            DocumentKind.RD: self._resource_package,
            DocumentKind.RDM: self._packed,
            DocumentKind.CH: self._change,
            DocumentKind.CHI: self._change_list,
            DocumentKind.CD: self._change_package,
            DocumentKind.CDI: self._change_dump,
            DocumentKind.CDM: self._packed_change,
            DocumentKind.AR: self._archived,
            DocumentKind.NT: self._notified,
            DocumentKind.FN: self._notified,
        }
        self._check = check.get(kind)

    def check(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        self._count += 1
        if self._check is not None:
            self._check(subject, entry)
        self._check_via(subject, entry)

    def finish(self, subject: ExaminedDocument) -> None:
        root = subject.md or subject.root
        if subject.kind is DocumentKind.CAP and not self._count:
            subject.report_at("CA10", "the Capability List has no entry", root)
        if subject.kind in (DocumentKind.NT, DocumentKind.FN) and not self._count:
            subject.report_at("NT01", "the notification has no entry", root)
        if self._parts and self._parts == self._count:
            subject.report_at("RL08", "all entries are like those of an index", root)
        if self._open and "until" in subject.root_times:
            message = f"the index has an end, and {self._open} of its lists have none"
            subject.report_at("CI08", message, root)

    def _description(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        capability = entry.value("capability")
        # A channel of Framework Notifications: no set describes it.
        is_channel = capability == Capability.FRAMEWORK_NOTIFICATION and entry.linked("hub")
        if entry.md is None:
            subject.report("SD05", "an entry without rs:md", entry.node)
        elif capability != Capability.CAPABILITY_LIST and not is_channel:
            message = f"capability {capability!r} in a Source Description"
            part = "capability" if entry.has("capability") else ""
            subject.report("SD04", message, entry.md, part)
        if not is_channel and not entry.linked("describedby"):
            subject.report("SD06", "no link describes the set", entry.node)
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
        if known is None:
            message = f"{label[:64]!r} is not a capability that can be listed"
            subject.report("CA04", message, entry.md, "capability")
        elif known not in LISTED_CAPABILITIES and known not in NOTIFICATIONS:
            subject.report("CA04", f"{label} in a Capability List", entry.md, "capability")
        if label in self._capabilities:
            subject.report("CA05", f"a second {label[:64]}", entry.md, "capability")
        elif len(self._capabilities) < 1_000:  # noqa: PLR2004 - far more than there are
            self._capabilities.add(label)

    def _resource(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        mark = hash(entry.uri)
        if entry.uri and mark in self._listed:
            subject.report("RL04", f"{entry.uri[:200]} is listed twice", entry.node)
        elif entry.uri and len(self._listed) < MAX_ENTRIES:
            self._listed.add(mark)
        self._parts += entry.is_part
        end = subject.root_times.get("completed") or subject.root_times.get("at")
        lastmod, node = entry.lastmod, entry.lastmod_node
        if end and lastmod and node and lastmod.first > end.last:
            message = f"lastmod {lastmod.text} is after the list's {end.text}"
            subject.report("RL05", message, node, TEXT)
        if node is None and not entry.has("hash") and not entry.has("length"):
            subject.report("RL07", "an entry with no lastmod, length or hash", entry.node)

    def _resource_package(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        self._check_package(subject, entry, "RD02")
        check_within(subject, entry, "RD06", ("at", "completed"))

    def _check_package(self, subject: ExaminedDocument, entry: ParsedEntry, rule: str) -> None:
        missing = [name for name in ("type", "length") if not entry.value(name)]
        if missing:
            subject.report(rule, f"a package without {' and '.join(missing)}", entry.place)
        media_type = entry.value("type").partition(";")[0].strip().lower()
        if not media_type:
            return
        if self._media_type and media_type != self._media_type:
            message = f"a package of {media_type} beside one of {self._media_type}"
            subject.report("RD03", message, entry.place, "type")
        elif media_type not in _ZIP:
            subject.report("RD03", f"a package of {media_type}, not ZIP", entry.place, "type")
        self._media_type = self._media_type or media_type

    def _packed(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        if not entry.has("path"):
            subject.report("RM04", "an entry without path", entry.place)
        check_path(subject, entry)

    def _change(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        if entry.is_change_list:
            subject.report("CH03", "a Change List, as an index lists it", entry.place)
            return
        if not entry.has("change"):
            subject.report("CH03", "an entry without change", entry.place)
        if not entry.has("datetime"):
            subject.report("CH09", "an entry without datetime", entry.place)
        self._any_change(subject, entry)
        if entry.lastmod is not None and entry.lastmod_node is not None:
            _check_inside(subject, "CH07", entry.lastmod, entry.lastmod_node, TEXT)

    def _packed_change(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        if not entry.has("change"):
            subject.report("CM02", "an entry without change", entry.place)
        if entry.change == "deleted":
            if entry.has("path"):
                subject.report("CM04", "a deletion with a path", entry.place, "path")
        elif not entry.has("path"):
            subject.report("CM03", "an entry without path", entry.place)
        check_path(subject, entry)
        self._any_change(subject, entry)

    def _notified(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        if not entry.has("change"):
            subject.report("NT01", "an entry without change", entry.place)

    def _any_change(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        if entry.lastmod_node is None:
            subject.report("CH04", "an entry without lastmod", entry.node)
        self._changes.check(subject, entry)
        _check_inside(subject, "CH06", entry.times.get("datetime"), entry.place, "datetime")
        if entry.change == "deleted":
            for name in ("hash", "length", "type", "encoding"):
                if entry.has(name):
                    subject.report("CH13", f"a deletion with {name}", entry.place, name)

    def _change_list(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        start = entry.times.get("from")
        if not entry.has("from"):
            subject.report("CI03", "a Change List without from", entry.place)
        self._order.check(subject, "CI02", start, entry.place, "from")
        top = subject.root_times.get("from")
        if start and top and start.last < top.first:
            message = f"from {start.text} is before the index's {top.text}"
            subject.report("CI08", message, entry.place, "from")
        before = self._before
        if before is not None and before.has("from"):
            self._check_next(subject, entry, before)
        self._open += entry.has("from") and not entry.has("until")
        self._before = entry

    def _check_next(
        self, subject: ExaminedDocument, entry: ParsedEntry, before: ParsedEntry
    ) -> None:
        start, end = entry.times.get("from"), before.times.get("until")
        if not before.has("until"):
            subject.report("CI05", "the list above this one has no until", entry.place)
        elif start and end and start.first != end.first:
            message = f"from {start.text} is not the until {end.text} of the list above"
            subject.report("CI06", message, entry.place, "from")

    def _change_package(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        self._check_package(subject, entry, "CD03")
        if not entry.has("from"):
            subject.report("CD04", "a package without from", entry.place)
        self._order.check(subject, "CD02", entry.times.get("from"), entry.place, "from")
        check_within(subject, entry, "CD05", ("from", "until"))

    def _change_dump(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        if not entry.has("from"):
            subject.report("CD06b", "a Change Dump without from", entry.place)
        self._order.check(subject, "CD06a", entry.times.get("from"), entry.place, "from")

    def _archived(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        capability = subject.summary.capability
        past = None if capability is None else capability.archived
        name = "from" if past is not None and past.is_log else "at"
        if not entry.has(name):
            subject.report("AR02", f"an entry without {name}", entry.place)
        elif name == "from" and not entry.has("until"):
            subject.report("AR03", "an entry without until", entry.place)
        self._order.check(subject, "AR04", entry.times.get(name), entry.place, name)

    def _check_via(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        via = entry.linked("via")
        for link in via:
            if entry.uri and link.href == entry.uri:
                subject.report("AG01b", "loc is the original that via names", link.node, "href")
        if via:
            self._with_via = True
        elif self._with_via and entry.change != "deleted":
            subject.report_once("AG01c", "an entry without via, after others with it", entry.node)
