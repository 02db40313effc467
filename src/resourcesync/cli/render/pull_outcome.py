"""The end of a pull or a repair: its exit code, its fields, and the closing lines."""

from collections.abc import Iterator, Mapping
from typing import Final

from resourcesync.cli import formatting
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.output import CommandOutcome
from resourcesync.cli.render.words import say
from resourcesync.cli.terminal import count_field
from resourcesync.destination.reports import MirrorState, RunReport, report_fields
from resourcesync.errors import ResourceMissingError, SourceRefusedError

_NEXT: Final = "  next   "
_INDENT: Final = " " * 10


def conclude(
    report: RunReport,
    folder: str,
    *,
    first: bool,
    plan: Mapping[str, object],
    pruning: bool = False,
    place: str = "",
) -> CommandOutcome:
    """Return the outcome of a pull, with its closing lines."""
    code = exit_code_of(report)
    if report.dry_run:
        lines = _dry_run_lines(report, plan)
    elif report.spent:
        lines = _budget_lines(report, folder, plan)
    elif report.lists_only:
        lines = _inventory_lines(report, folder, plan)
    elif code is ExitCode.OK:
        lines = _in_sync(report, folder, place or folder, first=first)
    else:
        lines = _not_in_sync(report, folder, code)
    if report.held and not report.spent:
        lines = [*lines, *_release_steps(report, folder, pruning=pruning)]
    if code is not ExitCode.OK:
        lines[0] = lines[0]._replace(text=f"{lines[0].text}  exit {int(code)}")
    return CommandOutcome(
        exit=code,
        closing=tuple(lines),
        fields=report_fields(report),
        shows_exit=code is not ExitCode.OK,
    )


def exit_code_of(report: RunReport) -> ExitCode:
    """Return the exit code of a pull's report; a dry run exits with 7 if it would be held back."""
    if report.state is MirrorState.STOPPED:
        return ExitCode.STOPPED
    if report.spent:
        return ExitCode.BUDGET
    is_good = report.dry_run or report.state is MirrorState.IN_SYNC
    return ExitCode.OK if is_good else ExitCode.PARTIAL


def _dry_run_lines(report: RunReport, plan: Mapping[str, object]) -> list[TextLine]:
    """Return the lines about what a run would do, and would hold back."""
    names = ["create", "update"] if report.held else ["create", "update", "delete"]
    counts = [f"{name} {formatting.count(count_field(plan, name))}" for name in names]
    if report.renamed:
        counts.insert(0, f"rename {formatting.count(report.renamed)}")
    unsized = count_field(plan, "unsized")
    more = f" and {formatting.count(unsized)} of unknown size" if unsized else ""
    text = (
        f"would {', '.join(counts)}, fetch {formatting.size(count_field(plan, 'bytes'))}{more};"
        f" nothing was changed  {formatting.duration(report.seconds)}"
    )
    lines = [TextLine(text, "Dry run", QUIET)]
    if report.held:
        share = formatting.share(report.held, report.held_of)
        held = f"{formatting.counted(report.held, 'deletion')} ({share} of what was here"
        lines.append(TextLine(f"{_INDENT}would hold back {held}; limit {plan['limit']})"))
    if absent := count_field(plan, "absent"):
        again = "it" if absent == 1 else "them"
        before = f"{formatting.count(absent)} of these not delivered before"
        lines.append(TextLine(f"{_INDENT}{before}: a pull requests {again} again"))
    kept = say("remarks", report, only={"retained.filtered"})
    return [*lines, *(TextLine(f"{_INDENT}{text}") for text in kept)]


def _release_steps(report: RunReport, folder: str, *, pruning: bool) -> Iterator[TextLine]:
    """Yield the commands that release held deletions; first, that a wrong move is undone."""
    again = f"resourcesync pull {folder}"
    if former := report.faults.moved_from:
        yield TextLine(f"{_NEXT}if the Source did not move: {again} --moved {former}")
    meant = "if this is intended" if pruning else "if the Source really shrank"
    how = f"{'--prune ' if pruning else ''}--max-delete {report.held}"
    yield TextLine(f"{_NEXT}{meant}: {again} {how}")


def _budget_lines(report: RunReport, folder: str, plan: Mapping[str, object]) -> list[TextLine]:
    """Return the lines about what a run did within its budget, and what remains."""
    rest = "the number of remaining resources is unknown: the lists were not read to the end"
    if plan:
        size = max(0, count_field(plan, "bytes") - report.fetched.bytes)
        remain = formatting.counted(report.listed.pending, "resource")
        rest = f"{remain} remain, {formatting.size(size)}"
    done = _changes(report) or "nothing fetched"
    present = f"{_right_of(report)} in the mirror ({done}); {rest}"
    return [
        TextLine(present, "Not done", QUIET),
        TextLine(f"{_INDENT}the limit of {report.spent} was reached; all files are complete"),
        TextLine(f"{_NEXT}run it again to continue: resourcesync pull {folder}"),
    ]


def _inventory_lines(report: RunReport, folder: str, plan: Mapping[str, object]) -> list[TextLine]:
    """Return the lines of a run with ``--lists-only``."""
    listed, pending = report.listed.total, formatting.count(report.listed.pending)
    size = formatting.size(count_field(plan, "bytes"))
    text = f"{formatting.counted(listed, 'resource')} listed; 0 fetched, {pending} to fetch, {size}"
    lines = [TextLine(f"{text}  {formatting.duration(report.seconds)}", "Inventory", QUIET)]
    if report.state is not MirrorState.IN_SYNC:
        lines.append(TextLine(f"{_NEXT}fetch them: resourcesync pull {folder}"))
    return lines


def _in_sync(report: RunReport, folder: str, place: str, *, first: bool) -> list[TextLine]:
    resources = formatting.counted(report.listed.right, "resource")
    seconds = formatting.duration(report.seconds)
    as_of = "" if report.as_of is None else formatting.moment(report.as_of)
    changes, size = _changes(report), formatting.size(report.fetched.bytes)
    remarks = [TextLine(f"{_INDENT}{text}") for text in say("remarks", report, folder)]
    if first and changes:
        text = f"{resources}, {size} in {place}  ({changes}{_hash_note(report)})  {seconds}"
        state = f"state as of {as_of}. " if as_of else ""
        last = TextLine(f"{_INDENT}{state}Run the same command again to update.")
        return [TextLine(text, "In sync", QUIET), *remarks, last]
    requests = formatting.counted(report.requests, "request")
    since = f" since {as_of}" if as_of else ""
    done = f" ({changes}, {size})" if changes else f", nothing changed{since}"
    return [TextLine(f"{resources}{done}, {requests}, {seconds}", "In sync", QUIET), *remarks]


def _changes(report: RunReport) -> str:
    return ", ".join(say("changes", report))


def _right_of(report: RunReport) -> str:
    """Return how many are in the mirror as listed, of those that are listed or to be deleted."""
    least = "at least " if report.faults.gap or report.faults.unread else ""
    wanted = formatting.count(report.listed.total + report.held)
    return f"{formatting.count(report.listed.right)} of {least}{wanted}"


def _hash_note(report: RunReport) -> str:
    got = report.fetched
    fetched = got.verified + got.server_verified + got.weak + got.unverified
    if fetched in (0, got.verified):
        return ", all hashes verified" if fetched else ""
    note = f", {formatting.count(got.verified)} of {formatting.count(fetched)} hashes verified"
    if got.server_verified:
        note += f", {formatting.count(got.server_verified)} by the server's digests"
    weak = f", {formatting.count(got.weak)} by MD5, SHA-1 or length only"
    return f"{note}{weak if got.weak else ''}"


def _not_in_sync(report: RunReport, folder: str, code: ExitCode) -> list[TextLine]:
    retained, faults, listed = report.retained, report.faults, report.listed
    counts = {
        "missing": report.reasons.get(ResourceMissingError.default_code, 0),
        "forbidden": report.reasons.get(SourceRefusedError.default_code, 0),
        "accept": listed.right if faults.absent_below else 0,
        "unusable": listed.refused - faults.unread,
        "other_failed": report.failed - retained.contradicting - retained.edited,
    }
    lacks = ", ".join((*say("changes", report), *say("lacks", report, more=counts)))
    text = f"{_right_of(report)} ({lacks or 'nothing changed'})"
    if code is ExitCode.STOPPED:
        of = report.held_of or report.resources
        would = f"would delete {formatting.count(report.held)} of {formatting.count(of)}"
        share = formatting.share(report.held, of)
        held = TextLine(f"{_INDENT}{would} ({share}); none of these was deleted")
        return [TextLine(text, "Stopped", QUIET), held]
    # A rerun does not help for entries that cannot be used, nor for what the Source must mend.
    others = counts["other_failed"] - counts["missing"] - counts["forbidden"]
    is_known = bool(report.failed - others or listed.refused)
    is_known = is_known or bool(faults.gap or faults.skew_seconds or faults.absent_below)
    counts["again"] = max(others, 0) if is_known else 1
    lines = [TextLine(text, "Not in sync", QUIET)]
    for said in say("faults", report, folder, more=counts):
        first, *rest = said.split("\n")
        lines.append(TextLine(f"{_NEXT}{first}"))
        lines += (TextLine(f"{' ' * len(_NEXT)}{line}") for line in rest)
    return lines
