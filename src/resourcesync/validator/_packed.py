"""Checks of packages and of what they hold (§11, §13)."""

from typing import Final

from resourcesync.validator._entries import ParsedEntry
from resourcesync.validator._subject import ExaminedDocument

_ZIP: Final = frozenset({"application/zip", "application/x-zip-compressed"})


class PackageEntryCheck:
    """The packages of a dump: their types and lengths (§11.1, §13.1)."""

    def __init__(self) -> None:
        self._media_type = ""

    def check(self, subject: ExaminedDocument, entry: ParsedEntry, rule: str) -> None:
        """Check the next package."""
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


def check_path(subject: ExaminedDocument, entry: ParsedEntry) -> None:
    """Check where an entry of a manifest says that its bytes are, and of which type (§11.2)."""
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
    start, end = (subject.root_times.get(name) for name in names)
    for name in names:
        moment = entry.times.get(name)
        if moment is None:
            continue
        if start and moment.last < start.first:
            message = f"{name} {moment.text} is before the dump's {names[0]} {start.text}"
            subject.report(rule, message, entry.place, name)
        elif end and moment.first > end.last:
            message = f"{name} {moment.text} is after the dump's {names[1]} {end.text}"
            subject.report(rule, message, entry.place, name)
