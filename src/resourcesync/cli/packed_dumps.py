"""Packages of resources, for Destinations that start or are behind: ``publish --dumps``."""

from typing import TYPE_CHECKING

from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.output import CommandOutcome, Screen
from resourcesync.model import formatting

if TYPE_CHECKING:
    from resourcesync.source.dumps.dump_publisher import DumpOutcome, DumpRequest


def dump_request(kinds: str) -> "DumpRequest":
    """Return the request for the dumps of ``--dumps``: of resources, changes, or all."""
    from resourcesync.source.dumps.dump_publisher import DumpRequest  # noqa: PLC0415 - help stays quick

    return DumpRequest(resources=kinds != "changes", changes=kinds != "resources", may_fork=True)


def with_packages(outcome: CommandOutcome, dumped: "DumpOutcome", screen: Screen) -> CommandOutcome:
    """Report the packages of a publication; return its outcome with their line and fields."""
    for packed in dumped.packages:
        screen.report(
            "package", {"name": packed.name, "entries": packed.entries, "bytes": packed.length}
        )
    if dumped.lost:
        screen.report("warning", _lost_versions(dumped.lost))
    return CommandOutcome(
        exit=outcome.exit,
        closing=(*outcome.closing, _packed_line(dumped)),
        fields={**outcome.fields, **_packed_fields(dumped)},
    )


def _lost_versions(count: int) -> dict[str, object]:
    changes = formatting.counted(count, "change")
    return {
        "code": "versions-gone",
        "message": f"{changes} cannot be packed: the bytes of these versions no longer exist",
        "evidence": (("kept", "all later changes: the Change Dump begins with them"),),
        "hint": "from now on, changed versions are stored until they are packed",
    }


def _packed_line(dumped: "DumpOutcome") -> TextLine:
    if not dumped.packages:
        text = f"nothing new; {formatting.counted(dumped.reused, 'package')} unchanged"
        return TextLine(text, "Packed", QUIET)
    entries = sum(package.entries for package in dumped.packages)
    size = sum(package.length for package in dumped.packages)
    text = (
        f"{entries:,} {'entry' if entries == 1 else 'entries'} in"
        f" {formatting.counted(len(dumped.packages), 'package')}, {formatting.size(size)}"
    )
    rest = f"; {formatting.counted(dumped.reused, 'package')} unchanged" if dumped.reused else ""
    return TextLine(text + rest, "Packed", QUIET)


def _packed_fields(dumped: "DumpOutcome") -> dict[str, object]:
    return {
        "packages": [package.name for package in dumped.packages],
        "packages_kept": dumped.reused,
        "packed_entries": sum(package.entries for package in dumped.packages),
        "packed_bytes": sum(package.length for package in dumped.packages),
    }
