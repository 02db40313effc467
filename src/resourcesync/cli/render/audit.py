"""The text output of ``audit``: its events and its closing lines."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from resourcesync.cli import formatting
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.output import CommandOutcome
from resourcesync.destination.audits.reports import AuditReport
from resourcesync.destination.reports import report_fields

_REMOTE: Final = "check them at the server: --method remote"

_SHOWN_FINDINGS: Final = 1000
"""Findings that are shown one by one unless ``-v`` is given; the counts are complete."""


class AuditRenderer(msgspec.Struct, kw_only=True):
    """A renderer of the events of an audit; silent if the findings themselves go to stdout."""

    is_shown: bool = True
    findings: int = 0

    def __call__(self, event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
        """Yield the lines for one event."""
        if event == "mirror" and self.is_shown:
            yield TextLine(str(fields["mirror"]), "Mirror")
        elif event == "source" and self.is_shown:
            lists = map(fields.get, ("resource_list", "resource_dump", "entry"))
            yield TextLine(f"{next(filter(None, lists))}", "Reference")
        elif event == "finding" and self.is_shown:
            self.findings += 1
            level = formatting.NORMAL if self.findings <= _SHOWN_FINDINGS else formatting.DETAIL
            yield TextLine(f"{_name(fields)}   {fields.get('reason')}", str(fields["kind"]), level)
            if self.findings == _SHOWN_FINDINGS + 1:
                yield TextLine("  more findings are not shown; -v or --combined FILE has them all")


def _name(fields: Mapping[str, object]) -> str:
    path = fields.get("path")
    return f"/{path}" if path else str(fields.get("uri"))


def conclude(
    report: AuditReport, mirror: Path, *, quiet: bool = False, named: bool = False
) -> CommandOutcome:
    """Return the outcome of an audit, with its closing lines."""
    lines = [] if quiet else _closing(report, mirror)
    if named and lines:
        lines.insert(0, TextLine(f"{mirror}", "Mirror", QUIET))
    code = ExitCode.OK if report.in_sync else ExitCode.FINDINGS
    return CommandOutcome(exit=code, closing=tuple(lines), fields=audit_fields(report, mirror))


def _closing(report: AuditReport, mirror: Path) -> list[TextLine]:
    coverage = _coverage(report)
    accuracy = accuracy_of(report)
    cost = f"{formatting.duration(report.seconds)}, {formatting.size(report.read_bytes)} read"
    if report.in_sync:
        unproven = f"; {_REMOTE}" if report.unproven else ""
        unseen = "" if report.is_looking else ", no file was checked"
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
        gap = "changes may be missing: the lists that were read do not cover all of them"
        lines.append(TextLine(f"{indent}{gap}", level=QUIET))
    counts = _remaining_counts(report)
    if counts:
        lines.append(TextLine(f"{indent}{counts}", level=QUIET))
    return [
        *lines,
        *_not_given(report),
        *_retained(report, mirror),
        *_foreign(report),
        TextLine(f"  next        {_next_command(report, mirror)}"),
    ]


def _coverage(report: AuditReport) -> str:
    if report.is_begun:
        present = formatting.counted(report.present, "resource")
        return f"not known: the first pull never completed; {present} in the mirror"
    return _share_of(report.present, report.listed)


def _next_command(report: AuditReport, mirror: Path) -> str:
    """Return the command that helps most; a repair needs copies that are missing or different."""
    is_complete = report.present == report.accurate == report.listed
    if is_complete and report.held:
        release = f"resourcesync pull {mirror} --max-delete {report.held}"
        return f"if the Source really shrank: {release}"
    if report.is_begun or report.has_gap or not report.present or is_complete:
        return f"resourcesync pull {mirror}"
    return f"resourcesync repair {mirror} --from-audit {report.audit}"


def _sampled(report: AuditReport) -> str:
    proven = report.proven or 0
    # Copies that the filters leave out now are files of the mirror all the same.
    of = f" of {formatting.count(report.listed)}" if proven <= report.listed else ""
    checked = f"{formatting.count(proven)}{of} files read"
    ended = ", until the time limit" if report.stopped else ""
    since = ""
    if report.proven_since is not None:
        since = f"; every file checked since {formatting.moment(report.proven_since)}"
    return f"{checked}{ended}{since}  {formatting.duration(report.seconds)}"


def accuracy_of(report: AuditReport) -> str:
    """Return the share of copies that are known to be right, and the reason if it is unknown."""
    if report.accuracy is not None:
        known = _share_of(report.accurate, report.present)
        return f"at most {known}" if report.unproven else known
    if not report.present:
        return "not known: the Source delivers no listed resource"
    if report.unproven == report.present:
        return "not known: the Source lists no hash"
    few, present = formatting.count(report.unproven), formatting.count(report.present)
    return f"not known: {few} of {present} not verifiable (the Source lists no hash)"


def _share_of(part: int, whole: int) -> str:
    return (
        f"{formatting.share(part, whole)} ({formatting.count(part)} of {formatting.count(whole)})"
    )


def _remaining_counts(report: AuditReport) -> str:
    counts: Sequence[tuple[int, str]] = (
        (report.extra, "not listed by the Source"),
        (report.refused, "listed but not usable"),
        (report.unproven, "not verifiable (the Source lists no hash)"),
    )
    return ", ".join(f"{formatting.count(number)} {what}" for number, what in counts if number)


def _not_given(report: AuditReport) -> list[TextLine]:
    """Return the line of listed resources that the Source does not deliver."""
    text = formatting.not_given(report.absent, report.skipped, report.unknown)
    unknown = ", not known to be right" if report.unknown else ""
    return [TextLine(f"          {text}{unknown}")] if text else []


def _retained(report: AuditReport, mirror: Path) -> list[TextLine]:
    if not report.unlisted:
        return []
    copies = formatting.counted(report.unlisted, "copy", "copies")
    if report.has_gap:  # they may still be listed
        return [TextLine(f"          {copies} not in the lists that could be read (kept)")]
    remove = f"to remove: resourcesync repair {mirror} --delete"
    return [TextLine(f"          {copies} no longer listed (kept); {remove}")]


def _foreign(report: AuditReport) -> list[TextLine]:
    if not report.foreign:
        return []
    files = formatting.counted(report.foreign, "file")
    return [TextLine(f"          {files} did not come from the Source (not touched)")]


def audit_fields(report: AuditReport, mirror: Path) -> dict[str, object]:
    """Return an audit's report as the fields of ``run.end``; its findings are events."""
    fields = report_fields(report)
    del fields["findings"]
    return {
        "mirror": str(mirror),
        **fields,
        "in_sync": report.in_sync,
        "coverage": None if report.is_begun else report.coverage,
        "accuracy": report.accuracy,
    }
