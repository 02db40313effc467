"""What ``audit`` says: its events, its closing lines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from resourcesync.cli import formatting
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.output import CommandOutcome
from resourcesync.destination.reports import AuditReport

EVIDENCE_FILES: Final = {
    "html": "report.html",
    "json": "report.json",
    "csv": "report.csv",
    "bagit": "manifest-sha256.txt",
    "premis": "premis.xml",
}
"""The forms of evidence, and their files."""

FULL_AUDIT_FORMS: Final = frozenset({"bagit", "premis"})
MOST_FINDINGS: Final = 1_000_000

_REMOTE: Final = "--method remote asks the server"

SHOWN_FINDINGS: Final = 1000
"""Findings that are shown one by one unless ``-v`` is given; the counts are complete."""


@dataclass(slots=True, kw_only=True)
class AuditRenderer:
    """Turns the events of an audit into lines; none while the findings themselves are on stdout."""

    is_shown: bool = True
    findings: int = 0

    def __call__(self, event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
        """Yield the lines for one event."""
        if event == "source" and self.is_shown:
            lists = map(fields.get, ("resource_list", "resource_dump", "entry"))
            yield TextLine(f"{next(filter(None, lists))}", "Reference")
        elif event == "finding" and self.is_shown:
            self.findings += 1
            level = formatting.NORMAL if self.findings <= SHOWN_FINDINGS else formatting.DETAIL
            yield TextLine(f"{_name(fields)}   {fields.get('reason')}", str(fields["kind"]), level)
            if self.findings == SHOWN_FINDINGS + 1:
                yield TextLine("  more findings are not shown; -v or --combined FILE has them all")


def _name(fields: Mapping[str, object]) -> str:
    path = fields.get("path")
    return f"/{path}" if path else str(fields.get("uri"))


def conclude(
    report: AuditReport, mirror: Path, *, quiet: bool = False, named: bool = False
) -> CommandOutcome:
    """Return how an audit ended, in the words of its closing lines.

    Args:
        report: What it found.
        mirror: The mirror.
        quiet: Say nothing: stdout holds a list of findings.
        named: Whether each mirror's lines name it.
    """
    lines = [] if quiet else _closing(report, mirror)
    if named and lines:
        lines.insert(0, TextLine(f"{mirror}", "Mirror", QUIET))
    code = ExitCode.OK if report.in_sync else ExitCode.FINDINGS
    return CommandOutcome(exit=code, closing=tuple(lines), fields=fields_of(report, mirror))


def _closing(report: AuditReport, mirror: Path) -> list[TextLine]:
    coverage = _coverage(report)
    accuracy = accuracy_of(report)
    cost = f"{formatting.duration(report.seconds)}, {formatting.size(report.read)} read"
    if report.in_sync:
        unproven = f"; {_REMOTE}" if report.unproven else ""
        unseen = "" if report.is_looking else ", no file was looked at"
        text = f"coverage {coverage}, accuracy {accuracy}{unproven}{unseen}  {cost}"
        if report.proven is not None:
            text = _sampled(report)
        lines = [TextLine(text, "In sync", QUIET), *_not_given(report), *_retained(report, mirror)]
        return lines if report.proven is not None else [*lines, *_foreign(report)]
    indent = " " * len("Not in sync   ")
    lines = [
        TextLine(f"coverage {coverage}", "Not in sync", QUIET),
        TextLine(f"{indent}accuracy {accuracy}     {cost}", level=QUIET),
    ]
    if report.has_gap:
        gap = "there may be changes that no list tells of that was read"
        lines.append(TextLine(f"{indent}{gap}", level=QUIET))
    counts = _remaining_counts(report)
    if counts:
        lines.append(TextLine(f"{indent}{counts}", level=QUIET))
    kept = [*_not_given(report), *_retained(report, mirror)]
    return [
        *lines,
        *kept,
        *_foreign(report),
        TextLine(f"  next        {_next_command(report, mirror)}"),
    ]


def _coverage(report: AuditReport) -> str:
    if report.is_begun:
        here = formatting.counted(report.present, "resource")
        return f"not known: the first pull was never completed; {here} here"
    return _share_of(report.present, report.listed)


def _next_command(report: AuditReport, mirror: Path) -> str:
    """Return the command that mends most: nothing is here yet for a repair to mend."""
    is_here = report.present == report.accurate == report.listed
    if report.is_begun or report.has_gap or not report.present or is_here:
        return f"resourcesync pull {mirror}"
    return f"resourcesync repair {mirror} --from-audit {report.run}"


def _sampled(report: AuditReport) -> str:
    proven, listed = formatting.count(report.proven or 0), formatting.count(report.listed)
    looked = f"{proven} of {listed} files read"
    ended = ", then the time was over" if report.stopped else ""
    since = ""
    if report.proven_since is not None:
        since = f"; every file proven since {formatting.moment(report.proven_since)}"
    return f"{looked}{ended}{since}  {formatting.duration(report.seconds)}"


def accuracy_of(report: AuditReport) -> str:
    """Return how much of what is here is known to be equal, and what of it is not known."""
    if report.accuracy is not None:
        known = _share_of(report.accurate, report.present)
        return f"at most {known}" if report.unproven else known
    if not report.present:
        return "not known: the Source gives nothing of what it lists"
    if report.unproven == report.present:
        return "not known: the Source lists no hash"
    few, all_here = formatting.count(report.unproven), formatting.count(report.present)
    return f"not known: {few} of {all_here} without a hash at the Source"


def _share_of(part: int, whole: int) -> str:
    return (
        f"{formatting.share(part, whole)} ({formatting.count(part)} of {formatting.count(whole)})"
    )


def _remaining_counts(report: AuditReport) -> str:
    counts: Sequence[tuple[int, str]] = (
        (report.extra, "here that the Source does not list"),
        (report.refused, "listed that cannot be used"),
        (report.unproven, "without a hash at the Source"),
    )
    return ", ".join(f"{formatting.count(number)} {what}" for number, what in counts if number)


def _not_given(report: AuditReport) -> list[TextLine]:
    """Return a line of what the Source lists and does not give: no copy of it counts as right."""
    text = formatting.not_given(report.absent, report.skipped)
    return (
        [TextLine(f"          {text}: whether a copy of it is right is not known")] if text else []
    )


def _retained(report: AuditReport, mirror: Path) -> list[TextLine]:
    if not report.unlisted:
        return []
    copies = formatting.counted(report.unlisted, "copy", "copies")
    if report.has_gap:  # then it is not known that they are gone
        return [TextLine(f"          {copies} kept, not in the lists that could be read")]
    drop = f"resourcesync repair {mirror} --delete drops"
    them = "it" if report.unlisted == 1 else "them"
    return [TextLine(f"          {copies} kept, no longer listed; {drop} {them}")]


def _foreign(report: AuditReport) -> list[TextLine]:
    if not report.foreign:
        return []
    files = formatting.counted(report.foreign, "file")
    are = "is" if report.foreign == 1 else "are"
    return [TextLine(f"          {files} here did not come from the Source and {are} left alone")]


def fields_of(report: AuditReport, mirror: Path) -> dict[str, object]:
    """Return an audit's report as the fields of ``run.end``."""
    return {
        "mirror": str(mirror),
        "audit": report.run,
        "in_sync": report.in_sync,
        "begun": report.is_begun,
        "gap": report.has_gap,
        "at": report.at,
        "listed": report.listed,
        "absent": report.absent,
        "skipped": report.skipped,
        "present": report.present,
        "accurate": report.accurate,
        "unproven": report.unproven,
        "extra": report.extra,
        "unlisted": report.unlisted,
        "foreign": report.foreign,
        "refused": report.refused,
        "coverage": None if report.is_begun else report.coverage,
        "accuracy": report.accuracy,
        "read_bytes": report.read,
        "doubted": report.doubted,
        "proven": report.proven,
        "proven_since": report.proven_since,
        "stopped": report.stopped,
        "seconds": round(report.seconds, 3),
    }
