"""The text output of ``audit``: its events and its closing lines."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.output import DETAIL, NORMAL, QUIET, CommandOutcome, TextLine
from resourcesync.destination.audits.reports import AuditReport
from resourcesync.destination.reports import report_fields
from resourcesync.model import formatting

_SHOWN_FINDINGS: Final = 1000
"""Findings that are shown one by one unless ``-v`` is given; the counts are complete."""
_INDENT: Final = " " * 10
_BELOW: Final = " " * len("Not in sync   ")
_NO_HASH: Final = "not verifiable (the Source lists no hash)"


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
        elif event in {"finding", "item"} and self.is_shown:  # an item is a refused entry
            self.findings += 1
            level = NORMAL if self.findings <= _SHOWN_FINDINGS else DETAIL
            name = f"/{fields['path']}" if fields.get("path") else fields.get("uri")
            yield TextLine(f"{name}   {fields.get('reason')}", str(fields.get("kind", "!")), level)
            if self.findings == _SHOWN_FINDINGS + 1:
                yield TextLine("  more findings are not shown; -v or --combined FILE has them all")


def conclude(
    report: AuditReport, mirror: Path, *, quiet: bool = False, named: bool = False
) -> CommandOutcome:
    """Return the outcome of an audit, with its closing lines."""
    closing = _in_sync(report, mirror) if report.in_sync else _not_in_sync(report, mirror)
    lines = () if quiet else tuple(closing)
    if named and lines:
        lines = (TextLine(f"{mirror}", "Mirror", QUIET), *lines)
    code = ExitCode.OK if report.in_sync else ExitCode.FINDINGS
    return CommandOutcome(exit=code, closing=lines, fields=audit_fields(report, mirror))


def _in_sync(report: AuditReport, mirror: Path) -> Iterator[TextLine]:
    if report.proven is not None:
        yield TextLine(_sampled(report), "In sync", QUIET)
    else:
        unproven = "; check them at the server: --method remote" if report.unproven else ""
        unseen = "" if report.is_looking else ", no file was checked"
        known = f"coverage {_coverage(report)}, accuracy {_accuracy(report)}"
        yield TextLine(f"{known}{unproven}{unseen}  {_cost(report)}", "In sync", QUIET)
    yield from _remarks(report, mirror)


def _not_in_sync(report: AuditReport, mirror: Path) -> Iterator[TextLine]:
    yield TextLine(f"coverage {_coverage(report)}", "Not in sync", QUIET)
    accuracy = f"{_BELOW}accuracy {_accuracy(report)}     {_cost(report)}"
    yield TextLine(accuracy, level=QUIET)
    if report.has_gap:
        gap = "the lists that were read may not cover all changes"
        yield TextLine(f"{_BELOW}{gap}", level=QUIET)
    counts = {
        "not listed by the Source": report.extra - report.excluded,
        "damaged, and excluded by the filters": report.excluded,
        "listed but not usable": report.refused - report.unread,
        f"{'part' if report.unread == 1 else 'parts'} of the list not read": report.unread,
        "listed but not at the Source (404, 410)": report.unserved,
        "could not be checked": report.unchecked - report.unserved,
        _NO_HASH: report.unproven,
    }
    if said := formatting.counts(counts):
        yield TextLine(f"{_BELOW}{said}", level=QUIET)
    yield from _remarks(report, mirror)
    yield TextLine(f"  next        {_next_command(report, mirror)}")


def _remarks(report: AuditReport, mirror: Path) -> Iterator[TextLine]:
    counts = {
        "listed but absent at the Source (404, 410)": report.absent,
        "skipped (robots.txt, or a redirect to another site)": report.skipped,
    }
    if text := formatting.counts(counts):
        copies = formatting.counted(report.unknown, "older copy", "older copies")
        unknown = f"; {copies} kept, not known to be right" if report.unknown else ""
        yield TextLine(f"{_INDENT}{text}{unknown}")
    copies = formatting.counted(report.unlisted, "copy", "copies")
    is_open = report.has_gap or report.refused or report.unproving
    if report.unlisted and is_open:  # they may still be listed
        yield TextLine(f"{_INDENT}{copies} not in the lists, as far as these can be read (kept)")
    elif report.unlisted:
        remove = f"to remove: resourcesync repair {mirror} --delete"
        yield TextLine(f"{_INDENT}{copies} no longer listed (kept); {remove}")
    if report.foreign and report.proven is None:
        files = formatting.counted(report.foreign, "file")
        yield TextLine(f"{_INDENT}{files} did not come from the Source (not touched)")


def _coverage(report: AuditReport) -> str:
    if report.is_begun:
        present = formatting.counted(report.present, "resource")
        return f"not known: the first pull never completed; {present} in the mirror"
    known = formatting.part_of(report.present, report.listed)
    return f"at most {known}" if report.unread else known


def _cost(report: AuditReport) -> str:
    return f"{formatting.duration(report.seconds)}, {formatting.size(report.read_bytes)} read"


def _next_command(report: AuditReport, mirror: Path) -> str:
    is_sound = report.accurate + report.unchecked + report.originals == report.listed
    if is_sound and (step := _step_for_extra(report, mirror)):
        return step
    ask = "ask the Source to correct its list, or "
    accept = f"{ask}accept that: resourcesync pull {mirror} --accept-missing"
    if is_sound and report.lacks_pages and not report.has_gap:  # no pull helps
        return accept if report.present else f"{ask}to serve them to programs"
    without_fault = is_sound and not (report.extra or report.refused)
    if report.originals and without_fault:
        return "ask the Source to copy these originals again: it lists what the mirror has"
    if report.unchecked and without_fault and not report.doubted:
        return accept if report.unserved else "run it again, when they can be checked"
    if report.is_begun or report.has_gap or not report.present or is_sound:
        return f"resourcesync pull {mirror}"
    return f"resourcesync repair {mirror} --from-audit {report.audit}"


def _step_for_extra(report: AuditReport, mirror: Path) -> str:
    if report.held:
        return f"decide on the held deletions: resourcesync status {mirror}"
    if report.edited:
        return f"move or remove what was changed locally, then: resourcesync pull {mirror}"
    if not report.damaged or report.refused:
        return ""
    is_excluded = report.damaged == report.excluded  # those, too, cannot be fetched
    step = f"pull {mirror} --prune" if is_excluded else f"repair {mirror} --delete"
    return f"resourcesync {step}"


def _sampled(report: AuditReport) -> str:
    proven, since = report.proven or 0, report.proven_since
    # Copies that the filters leave out now are files of the mirror all the same.
    of = f" of {formatting.count(report.listed)}" if proven <= report.listed else ""
    ended = ", until the time limit" if report.stopped else ""
    every = f"; every file checked since {formatting.moment(since)}" if since else ""
    text = f"{formatting.count(proven)}{of} files read{ended}{every}"
    return f"{text}  {formatting.duration(report.seconds)}"


def _accuracy(report: AuditReport) -> str:
    if report.accuracy is not None:
        known = formatting.part_of(report.accurate, report.checked)
        return f"at most {known}" if report.unproven else known
    if not report.present and (report.absent or report.skipped):
        return "not known: the Source delivers no listed resource"
    if not report.present:
        return "not known: no listed resource is in the mirror"
    if not report.checked:
        return "not known: nothing could be checked"
    if report.unproven == report.present:
        return "not known: the Source lists no hash"
    few, present = formatting.count(report.unproven), formatting.count(report.present)
    return f"not known: {few} of {present} {_NO_HASH}"


def audit_fields(report: AuditReport, mirror: Path) -> dict[str, object]:
    """Return an audit's report as the fields of ``run.end``; its findings are events."""
    fields = report_fields(report)
    del fields["findings"]
    return {
        "mirror": str(mirror),
        **fields,
        "in_sync": report.in_sync,
        "coverage": report.coverage,
        "accuracy": report.accuracy,
    }
