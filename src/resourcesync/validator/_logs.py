"""Checks of entries on the change side, and of archives and notifications (§12, §13)."""

from resourcesync.validator._entries import ParsedEntry
from resourcesync.validator._nodes import TEXT, ElementNode
from resourcesync.validator._order import ChangeSequenceCheck, TimeOrderCheck
from resourcesync.validator._packed import PackageEntryCheck, check_path, check_within
from resourcesync.validator._subject import DocumentKind, ExaminedDocument, ParsedTime


class LogEntryChecks:
    """Checks the entries of one change document, archive or notification."""

    def __init__(self, kind: DocumentKind, packages: PackageEntryCheck) -> None:
        self._packages = packages
        self._changes = ChangeSequenceCheck(kind)
        self._orders = {rule: TimeOrderCheck(rule) for rule in ("CI02", "CD02", "CD06a", "AR04")}
        self._before: ParsedEntry | None = None
        self._open = 0

    def finish(self, subject: ExaminedDocument) -> None:
        """Tell what only the end of the document shows."""
        if subject.kind is DocumentKind.CHI and "until" in subject.root_times and self._open:
            message = f"the index has an end, and {self._open} of its lists have none"
            subject.report_at("CI08", message, subject.md or subject.root)

    # --- changes -------------------------------------------------------------------------------

    def change(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        """Check an entry of a Change List (§12.1)."""
        if entry.is_change_list:
            subject.report("CH03", "a Change List, as an index lists it", entry.place)
            return
        if not entry.has("change"):
            subject.report("CH03", "an entry that tells no change", entry.place)
        if not entry.has("datetime"):
            subject.report("CH09", "an entry that tells no datetime", entry.place)
        self._any_change(subject, entry)
        if entry.lastmod is not None and entry.lastmod_node is not None:
            _check_inside(subject, "CH07", entry.lastmod, entry.lastmod_node, TEXT)

    def packed_change(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        """Check an entry of a Change Dump Manifest (§13.2)."""
        if not entry.has("change"):
            subject.report("CM02", "an entry that tells no change", entry.place)
        if entry.change == "deleted":
            if entry.has("path"):
                subject.report("CM04", "a deletion with a path", entry.place, "path")
        elif not entry.has("path"):
            subject.report("CM03", "an entry without path", entry.place)
        check_path(subject, entry)
        self._any_change(subject, entry)

    def notified(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        """Check an entry of a Change Notification or a Framework Notification."""
        if not entry.has("change"):
            subject.report("NT01", "an entry that tells no change", entry.place)

    def _any_change(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        if entry.lastmod_node is None:
            subject.report("CH04", "an entry without lastmod", entry.node)
        self._changes.check(subject, entry)
        moment = entry.times.get("datetime")
        if moment is not None:
            _check_inside(subject, "CH06", moment, entry.place, "datetime")
        if entry.change == "deleted":
            for name in ("hash", "length", "type", "encoding"):
                if entry.has(name):
                    subject.report("CH13", f"a deletion with {name}", entry.place, name)

    # --- lists and packages of changes ---------------------------------------------------------

    def change_list(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        """Check an entry of a Change List Index (§12.2)."""
        start = entry.times.get("from")
        if not entry.has("from"):
            subject.report("CI03", "a Change List without from", entry.place)
        self._check_order(subject, entry, "CI02", "from")
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

    def change_package(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        """Check an entry of a Change Dump (§13.1)."""
        self._packages.check(subject, entry, "CD03")
        if not entry.has("from"):
            subject.report("CD04", "a package without from", entry.place)
        self._check_order(subject, entry, "CD02", "from")
        check_within(subject, entry, "CD05", ("from", "until"))

    def change_dump(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        """Check an entry of a Change Dump Index (§13.1, A)."""
        if not entry.has("from"):
            subject.report("CD06b", "a Change Dump without from", entry.place)
        self._check_order(subject, entry, "CD06a", "from")

    def archived(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        """Check an entry of an archive (Archives §3 to §6)."""
        capability = subject.summary.capability
        past = None if capability is None else capability.archived
        name = "from" if past is not None and past.is_log else "at"
        if not entry.has(name):
            subject.report("AR02", f"an entry without {name}", entry.place)
        elif name == "from" and not entry.has("until"):
            subject.report("AR03", "an entry without until", entry.place)
        self._check_order(subject, entry, "AR04", name)

    def _check_order(
        self, subject: ExaminedDocument, entry: ParsedEntry, rule: str, name: str
    ) -> None:
        self._orders[rule].check(subject, entry.times.get(name), entry.place, name)


def _check_inside(
    subject: ExaminedDocument, rule: str, moment: ParsedTime, node: ElementNode, part: str
) -> None:
    start, end = subject.root_times.get("from"), subject.root_times.get("until")
    name = node.name if part == TEXT else part
    if start and moment.last < start.first:
        message = f"{name} {moment.text} is before the list's from {start.text}"
        subject.report(rule, message, node, part)
    elif end and moment.first > end.last:
        message = f"{name} {moment.text} is after the list's until {end.text}"
        subject.report(rule, message, node, part)
