"""The end of a pull or a repair: its exit code, its fields, and the closing lines."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from resourcesync.cli import formatting
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.output import CommandOutcome
from resourcesync.cli.terminal import count_field
from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.errors import ResourceMissingError, SourceRefusedError


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
    lines: tuple[TextLine, ...]
    if report.dry_run:
        lines = _dry_run_lines(report, folder, plan, pruning=pruning)
    elif report.spent:
        lines = _budget_lines(report, folder, plan)
    elif report.lists_only:
        lines = _inventory_lines(report, folder, plan)
    elif code is ExitCode.OK:
        lines = _in_sync(report, folder, place or folder, first=first)
    else:
        lines = _not_in_sync(report, folder, code, pruning=pruning)
    return CommandOutcome(
        exit=code, closing=lines, fields=pull_fields(report), shows_exit=code is not ExitCode.OK
    )


def exit_code_of(report: RunReport) -> ExitCode:
    """Return the exit code of a pull's report; a dry run exits with 7 if it would be held back."""
    if report.dry_run and report.state is MirrorState.STOPPED:
        return ExitCode.STOPPED
    if report.dry_run or report.state is MirrorState.IN_SYNC:
        return ExitCode.BUDGET if report.spent else ExitCode.OK
    if report.spent and report.state is not MirrorState.STOPPED:
        return ExitCode.BUDGET
    return ExitCode.STOPPED if report.state is MirrorState.STOPPED else ExitCode.PARTIAL


def pull_fields(report: RunReport) -> dict[str, object]:
    """Return a pull's report as the fields of ``run.end``."""
    return {
        "state": report.state.value,
        "mode": report.mode.value,
        "dry_run": report.dry_run,
        "lists_only": report.lists_only,
        "spent": report.spent,
        "pull": report.run,
        **{name: getattr(report, name) for name in _REPORT_COUNTS},
        "bytes": report.received,
        "useful_bytes": report.useful,
        "seconds": round(report.seconds, 3),
        "as_of": report.as_of,
        "skew_seconds": report.skew,
        **({"absent_below": report.absent_below} if report.absent_below else {}),
    }


_REPORT_COUNTS: Final = (
    *("resources", "listed", "unchanged", "applied", "pending", "absent", "skipped", "same"),
    *("created", "updated", "refetched", "deleted", "failed", "refused", "unread", "edited"),
    *("held", "held_of", "unlisted", "filtered", "restored"),
    *("verified", "server_verified", "weak", "unverified"),
    *("by_hash", "by_request", "by_date", "unconfirmed", "rechecked", "stale_dates"),
    *("contradicting", "gap", "renamed", "linked", "patched", "unpatched", "requests"),
)
"""Fields of ``run.end`` that have the name of their attribute in the report."""


def _dry_run_lines(
    report: RunReport, folder: str, plan: Mapping[str, object], *, pruning: bool
) -> tuple[TextLine, ...]:
    """Return the lines about what a run would do, and would hold back."""
    names = ["create", "update"] if report.held else ["create", "update", "delete"]
    counts = ", ".join(f"{name} {formatting.count(count_field(plan, name))}" for name in names)
    if report.renamed:
        counts = f"rename {formatting.count(report.renamed)}, {counts}"
    unsized = count_field(plan, "unsized")
    more = f" and {formatting.count(unsized)} of unknown size" if unsized else ""
    size = f"{formatting.size(count_field(plan, 'bytes'))}{more}"
    text = (
        f"would {counts}, fetch {size}; nothing was changed  {formatting.duration(report.seconds)}"
    )
    kept = tuple(map(TextLine, (*_absent_before(plan), *_filtered(report))))
    if not report.held:
        return (TextLine(text, "Dry run", QUIET), *kept)
    held = formatting.counted(report.held, "deletion")
    share = (
        f"{formatting.share(report.held, report.held_of)} of what was here; limit {plan['limit']}"
    )
    return (
        TextLine(f"{text}  exit {int(ExitCode.STOPPED)}", "Dry run", QUIET),
        TextLine(f"          would hold back {held} ({share})"),
        *kept,
        *_release_steps(report, folder, pruning=pruning),
    )


def _absent_before(plan: Mapping[str, object]) -> Iterator[str]:
    if absent := count_field(plan, "absent"):
        were = "was" if absent == 1 else "were"
        again = f"not delivered before: a pull requests {_them(absent)} again"
        yield f"          {formatting.count(absent)} of these {were} {again}"


def _release_steps(report: RunReport, folder: str, *, pruning: bool) -> Iterator[TextLine]:
    """Yield the commands that release held deletions; first, that a wrong move is undone."""
    again = f"resourcesync pull {folder}"
    if report.moved_from:
        yield TextLine(f"  next   if the Source did not move: {again} --moved {report.moved_from}")
    meant = "if this is intended" if pruning else "if the Source really shrank"
    how = f"{'--prune ' if pruning else ''}--max-delete {report.held}"
    yield TextLine(f"{'         ' if report.moved_from else '  next   '}{meant}: {again} {how}")


def _budget_lines(
    report: RunReport, folder: str, plan: Mapping[str, object]
) -> tuple[TextLine, ...]:
    """Return the lines about what a run did within its budget, and what remains."""
    done = _changes(report) or "nothing fetched"
    what = "time" if report.spent == "time" else "bytes"
    rest = "the number of remaining resources is unknown: the lists were not read to the end"
    if plan:
        size = max(0, count_field(plan, "bytes") - report.useful)
        rest = f"{formatting.counted(report.pending, 'resource')} remain, {formatting.size(size)}"
    complete = f"{formatting.count(report.unchanged + report.applied)} of"
    present = f"{complete} {formatting.count(report.listed)} in the mirror"
    code = int(exit_code_of(report))
    return (
        TextLine(f"{present} ({done}); {rest}  exit {code}", "Not done", QUIET),
        TextLine(f"          the limit of {what} was reached; all files are complete"),
        TextLine(f"  next   run it again to continue: resourcesync pull {folder}"),
    )


def _inventory_lines(
    report: RunReport, folder: str, plan: Mapping[str, object]
) -> tuple[TextLine, ...]:
    """Return the lines of a run with ``--lists-only``."""
    listed, size = (
        formatting.counted(report.listed, "resource"),
        formatting.size(count_field(plan, "bytes")),
    )
    text = f"{listed} listed; 0 fetched, {formatting.count(report.pending)} to fetch, {size}"
    seconds = formatting.duration(report.seconds)
    code = exit_code_of(report)
    if code is ExitCode.OK:
        return (TextLine(f"{text}  {seconds}", "Inventory", QUIET),)
    return (
        TextLine(f"{text}  {seconds}  exit {int(code)}", "Inventory", QUIET),
        TextLine(f"  next   fetch them: resourcesync pull {folder}"),
    )


def _in_sync(report: RunReport, folder: str, place: str, *, first: bool) -> tuple[TextLine, ...]:
    resources = formatting.counted(report.unchanged + report.applied, "resource")
    seconds = formatting.duration(report.seconds)
    requests = formatting.counted(report.requests, "request")
    as_of = "" if report.as_of is None else formatting.moment(report.as_of)
    more = [TextLine(text) for text in _remarks(report, folder)]
    changes = _changes(report)
    if first and changes:
        size, note = formatting.size(report.useful), _hash_note(report)
        text = f"{resources}, {size} in {place}  ({changes}{note})"
        lines = [TextLine(f"{text}  {seconds}", "In sync", QUIET), *more]
        state = f"state as of {as_of}. " if as_of else ""
        return (*lines, TextLine(f"          {state}Run the same command again to update."))
    if changes:
        amount = formatting.size(report.useful)
        text = f"{resources} ({changes}, {amount}), {requests}, {seconds}"
    else:
        since = f" since {as_of}" if as_of else ""
        text = f"{resources}, nothing changed{since}, {requests}, {seconds}"
    return (TextLine(text, "In sync", QUIET), *more)


def _changes(report: RunReport) -> str:
    counts = {
        "created": report.created,
        "updated": report.updated,
        "deleted": report.deleted,
        "fetched again and equal": report.refetched,
        "renamed": report.renamed,
    }
    return ", ".join(f"{formatting.count(n)} {name}" for name, n in counts.items() if n)


def _hash_note(report: RunReport) -> str:
    by_server, weak = report.server_verified, report.weak
    fetched = report.verified + by_server + weak + report.unverified
    if fetched in (0, report.verified):
        return ", all hashes verified" if fetched else ""
    note = f", {formatting.count(report.verified)} of {formatting.count(fetched)} hashes verified"
    if by_server:
        note += f", {formatting.count(by_server)} by the server's digests"
    return f"{note}, {formatting.count(weak)} by MD5, SHA-1 or length only" if weak else note


def _remarks(report: RunReport, folder: str) -> Iterator[str]:
    """Yield remarks that do not make the mirror wrong."""
    if report.linked:
        linked = formatting.counted(report.linked, "resource")
        yield f"          {linked} of them not listed, but linked from listed resources"
    if report.unpatched:
        whole = formatting.counted(report.unpatched, "resource")
        yield f"          {whole} fetched whole, since a patch cannot be used; -i shows why"
    yield from _filtered(report)
    if report.by_date:
        shown = f"{formatting.count(report.by_date)} of {formatting.count(report.resources)}"
        yield f"          {shown} known by their dates only; they are requested again in turn"
    if report.restored:
        files = formatting.counted(report.restored, "file")
        deletes = f"resourcesync repair {folder} --delete deletes {_them(report.restored)}"
        yield f"          {files} restored from the trash (kept); {deletes}"
    if not_given := formatting.not_given(report.absent, report.skipped, report.unknown):
        yield f"          {not_given}"
    if report.unlisted:
        files = formatting.counted(report.unlisted, "file")
        deletes = f"--delete absent deletes {_them(report.unlisted)}"
        yield f"          {files} no longer listed (kept); {deletes}"


def _filtered(report: RunReport) -> Iterator[str]:
    if report.filtered:
        files = formatting.counted(report.filtered, "file")
        match = "matches" if report.filtered == 1 else "match"
        deletes = f"--prune deletes {_them(report.filtered)}"
        yield f"          {files} no longer {match} the filters (kept); {deletes}"


def _them(number: int) -> str:
    return "it" if number == 1 else "them"


def _not_in_sync(
    report: RunReport, folder: str, code: ExitCode, *, pruning: bool
) -> tuple[TextLine, ...]:
    counts = list(filter(None, [_changes(report)]))
    names = {
        "absent": report.absent,
        "skipped": report.skipped,
        "failed": report.failed - report.contradicting - report.edited,
        "changed locally and kept": report.edited,
        "not matching the list": report.contradicting,
        "refused": report.refused - report.unread,
        "held": report.held,
    }
    if report.unread:
        counts.append(f"{formatting.counted(report.unread, 'part')} of the list not read")
    counts += [f"{formatting.count(number)} {name}" for name, number in names.items() if number]
    wanted = report.listed + report.held
    right = report.unchanged + report.applied
    least = "at least " if report.gap or report.unread else ""  # the lists are incomplete
    told = ", ".join(counts) or "nothing changed"
    text = f"{formatting.count(right)} of {least}{formatting.count(wanted)} ({told})"
    label = "Stopped" if code is ExitCode.STOPPED else "Not in sync"
    lines = [TextLine(f"{text}  exit {int(code)}", label, QUIET)]
    if code is ExitCode.STOPPED:
        of = report.held_of or report.resources
        would = f"would delete {formatting.count(report.held)} of {formatting.count(of)}"
        share = formatting.share(report.held, of)
        lines.append(TextLine(f"          {would} ({share}); none of these was deleted"))
        lines += _release_steps(report, folder, pruning=pruning)
    else:
        lines += _next_steps(report, folder)
    return tuple(lines)


def _incomplete_steps(report: RunReport, folder: str) -> Iterator[TextLine]:
    if report.gap:
        since = f" since {formatting.moment(report.as_of)}" if report.as_of else ""
        yield TextLine(f"  next   changes may be missing{since}, and nothing was")
        yield TextLine("         deleted for them. The Source's next Resource List proves what")
        yield TextLine(f"         there is; after it: resourcesync pull {folder}")
    if report.unread:
        yield TextLine(
            "  next   a part of the list cannot be read, and nothing was deleted: ask the"
        )
        yield TextLine(f"         Source to correct it, then: resourcesync pull {folder}")


def _absent_steps(report: RunReport, folder: str) -> Iterator[TextLine]:
    """Yield what to do if most of the listed pages are absent: most of the addresses are wrong."""
    if not report.absent_below:
        return
    absent, listed = formatting.count(report.absent), formatting.count(report.listed)
    yield TextLine(
        f"  next   {absent} of {listed} listed pages are absent at the Source (404), all"
    )
    yield TextLine(f"         of them below {report.absent_below}")
    yield TextLine("         ask the Source to correct its list")
    if report.unchanged + report.applied:
        yield TextLine(f"         or accept that: resourcesync pull {folder} --accept-missing")


def _next_steps(report: RunReport, folder: str) -> Iterator[TextLine]:
    """Yield the next steps; a rerun does not help for entries that cannot be used."""
    if report.contradicting:
        copies = formatting.counted(report.contradicting, "copy", "copies")
        yield TextLine(
            f"  next   {copies} not matching the list (--verify lenient): ask the Source"
        )
        yield TextLine(f"         to correct its list; for details: resourcesync why {folder} URI")
    if report.edited:
        files = formatting.counted(report.edited, "file")
        yield TextLine(f"  next   {files} to delete, but changed locally: move or remove them,")
        yield TextLine(f"         then: resourcesync pull {folder}")
    if report.skew:
        yield TextLine(
            "  next   correct this machine's clock, for example with NTP; if the Source's"
        )
        yield TextLine("         clock is wrong, report it to the Source")
    yield from _absent_steps(report, folder)
    codes = Counter(failure.code for failure in report.failures)
    missing = codes[ResourceMissingError.default_code]
    if refused := codes[SourceRefusedError.default_code]:
        listed = formatting.counted(refused, "listed resource")
        yield TextLine(f"  next   {listed} refused by the server (401, 403): give its credentials")
        out = f"leave {_them(refused)} out (--exclude GLOB)"
        yield TextLine(f"         (--auth NAME), {out}, or ask the Source")
    if missing:
        listed = formatting.counted(missing, "listed resource")
        yield TextLine(f"  next   {listed} not at the Source (404): ask it to correct its list,")
        yield TextLine(f"         or accept that: resourcesync pull {folder} --accept-missing")
    unhelped = report.contradicting + missing + refused + report.edited
    others = report.failed - unhelped + report.held
    known = report.refused or unhelped or report.skew or report.absent_below
    if others or not (known or report.gap):
        yield TextLine(f"  next   run it again: resourcesync pull {folder}")
    yield from _incomplete_steps(report, folder)
    if report.refused > report.unread:
        entries = formatting.counted(report.refused - report.unread, "entry", "entries")
        yield TextLine(f"  next   ask the Source to correct the {entries} that cannot be used;")
        yield TextLine("         if it may list resources of another origin: --allow-origin ORIGIN")
        yield TextLine(f"         if it moved there: resourcesync pull {folder} --moved URL")
