"""The text output of ``pull``: its events, its plan and its closing lines."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from resourcesync.cli import formatting
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import DETAIL, NORMAL, QUIET, TextLine
from resourcesync.cli.output import CommandOutcome
from resourcesync.cli.render.filters import filters_line
from resourcesync.cli.terminal import count_field
from resourcesync.destination.reports import MirrorState, Mode, RunReport
from resourcesync.errors import ResourceMissingError, SourceRefusedError

SHOWN_FAILURES: Final = 20
"""Failures that are shown one by one unless ``--itemize`` is given."""

_DONE: Final = frozenset({"ok", "notneeded"})
_SYMBOLS: Final = {"create": "+", "update": "*", "delete": "-"}


class PullRenderer(msgspec.Struct, kw_only=True):
    """A renderer of the events of a pull.

    Attributes:
        first: True for the mirror's first pull: then lists and plan are shown.
        itemize: True if every action gets a line.
        dry_run: True if the actions are only planned.
        since_moves: True if ``--since`` is relative, such as -7d, and so another in each run.
        verbose: False if no line of level ``DETAIL`` is shown: they need not be made.
        failures: Number of failures so far.
    """

    first: bool = True
    itemize: bool = False
    dry_run: bool = False
    since_moves: bool = True
    verbose: bool = True
    failures: int = 0

    def __call__(self, event: str, fields: Mapping[str, object]) -> Iterable[TextLine]:
        """Return the lines for one event."""
        if event == "scope":
            return (filters_line(fields, since_moves=self.since_moves),)
        is_shown = self.verbose or self.itemize or self.dry_run or event != "item"
        if is_shown or fields["status"] not in _DONE or "code" in fields:
            return self._lines(event, fields)
        return ()

    def _lines(self, event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
        match event:
            case "source":
                yield from self._source(fields)
            case "leniency":
                yield formatting.leniency_line(fields)
            case "plan":
                yield self._plan(fields)
            case "item":
                yield from self._item(fields)
            case "patch":
                text = f"{_name(fields)}   fetched whole, since its patch cannot be used: "
                level = NORMAL if self.itemize else DETAIL
                yield TextLine(f"{text}{fields.get('reason')}", "*", level)
            case "sets":
                yield from _sets(fields)
            case "mirror":
                yield _mirror(fields)
            case _:
                return

    def _source(self, fields: Mapping[str, object]) -> Iterator[TextLine]:
        level = NORMAL if self.first else DETAIL
        spec = fields.get("spec")
        kind = "plain sitemap" if fields.get("sitemap") else f"ResourceSync {spec}"
        yield TextLine(f"{fields.get('entry')}  ({kind})", "Source", level)
        shown = list(filter(None, (_listing(of, fields) for of in ("resource", "change"))))
        if shown and not fields.get("sitemap"):
            yield TextLine(", ".join(shown), "Set", level)
        if self.dry_run or fields.get("found_by"):
            level = NORMAL if self.dry_run else DETAIL
            yield TextLine(str(fields.get("found_by") or "its address"), "Found by", level)

    def _plan(self, fields: Mapping[str, object]) -> TextLine:
        total = sum(count_field(fields, name) for name in ("same", "create", "update"))
        size = formatting.size(count_field(fields, "bytes"))
        unsized = count_field(fields, "unsized")
        more = f" and {formatting.count(unsized)} of unknown size" if unsized else ""
        if fields.get("mode") == Mode.BASELINE:
            to_do = f"{formatting.counted(total, 'resource')}, {size}{more} to fetch"
        else:
            parts = (f"{name} {formatting.count(count_field(fields, name))}" for name in _SYMBOLS)
            to_do = f"{', '.join(parts)}; {size}{more} to fetch"
        return TextLine(f"{fields.get('mode')}: {to_do}", "Plan", NORMAL if self.first else DETAIL)

    def _item(self, fields: Mapping[str, object]) -> Iterator[TextLine]:
        status, action = fields.get("status"), str(fields.get("action"))
        if status in {"absent", "skipped"}:
            kept = "; the copy is kept" if fields.get("kept") else ""
            yield TextLine(
                f"{_name(fields)}   {status}: {fields.get('reason')}{kept}", "~", self._next_level()
            )
        elif status in {"error", "impossible"} or fields.get("code"):
            yield from self._failure(fields)
        elif status == "ok" and action == "move":
            done = "would be renamed to" if self.dry_run else "renamed to"
            level = NORMAL if self.itemize or self.dry_run else DETAIL
            yield TextLine(f"/{fields['was']}   {done} {_name(fields)}", ">", level)
        elif status == "ok":
            level = NORMAL if self.itemize else DETAIL
            yield TextLine(
                f"{_name(fields)}   {self._action_text(action, fields)}", _SYMBOLS[action], level
            )
        else:
            yield TextLine(_name(fields), "=", DETAIL)

    def _next_level(self) -> int:
        """Return the level of the next failure: the first ones are shown."""
        self.failures += 1
        return NORMAL if self.itemize or self.failures <= SHOWN_FAILURES else DETAIL

    def _failure(self, fields: Mapping[str, object]) -> Iterator[TextLine]:
        level = self._next_level()
        word = "; kept" if fields.get("action") == "delete" else "; old copy kept"
        kept = word if fields.get("kept") else ""
        tries = count_field(fields, "tries")
        often = f" after {tries} tries" if tries > 1 else ""
        yield TextLine(f"{_name(fields)}   {fields.get('reason')}{often}{kept}", "!", level)
        if self.failures == SHOWN_FAILURES + 1 and not self.itemize:
            yield TextLine("  more failures are not shown; use -i to see them")

    def _action_text(self, action: str, fields: Mapping[str, object]) -> str:
        if self.dry_run:
            return f"would {action}"
        if action == "delete":
            return "deleted (in the trash)"
        size, before = count_field(fields, "bytes"), fields.get("was_bytes")
        amount = f"{formatting.count(size)} B"
        if isinstance(before, int) and before >= 0:  # negative: unknown
            amount = f"{formatting.count(before)} → {amount}"
        patch = fields.get("patched")
        how = f"   by a patch of {formatting.count(patch)} B" if isinstance(patch, int) else ""
        return f"{amount}{how}   {formatting.proof(fields)}".rstrip()


def _mirror(fields: Mapping[str, object]) -> TextLine:
    """Return the first line of one of several mirrors; only a mirror of a set names its set."""
    of_set = f"  {fields['set']}" if "set" in fields else ""
    gone = "" if fields.get("offered", True) else "  (withdrawn by the Source; copies kept)"
    return TextLine(f"{fields.get('mirror')}{of_set}{gone}", "Mirror")


def _sets(fields: Mapping[str, object]) -> Iterator[TextLine]:
    yield TextLine(
        f"{formatting.counted(count_field(fields, 'sets'), 'set')} of {fields.get('source')}",
        "Sets",
    )
    if fields.get("not_asked_anew"):
        yield TextLine(f"          as last read, since now: {fields.get('not_asked_anew')}")


def _listing(of: str, fields: Mapping[str, object]) -> str:
    """Return the name of the list of resources or changes, or of the dump in its place."""
    for kind in ("list", "dump"):
        uri = fields.get(f"{of}_{kind}")
        if uri:
            return f"{of} {kind} ".title() + str(uri)
    return ""


def _name(fields: Mapping[str, object]) -> str:
    path = fields.get("path")
    return f"/{path}" if path else str(fields.get("uri"))


def conclude(
    report: RunReport,
    folder: str,
    *,
    first: bool,
    plan: Mapping[str, object],
    pruning: bool = False,
    place: str = "",
) -> CommandOutcome:
    """Return the outcome of a pull, with its closing lines.

    Args:
        report: The report of the pull.
        folder: The mirror's folder.
        first: True for the mirror's first pull.
        plan: The fields of its ``plan`` event.
        pruning: True if copies that do not match the filters are deleted.
        place: The place of the copies, if not the folder.
    """
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
    }


_REPORT_COUNTS: Final = (
    *("resources", "listed", "unchanged", "applied", "pending", "absent", "skipped", "same"),
    *("created", "updated", "refetched", "deleted", "failed", "refused", "unread", "edited"),
    *("held", "held_of", "unlisted", "filtered", "restored"),
    *("verified", "server_verified", "weak", "unverified"),
    *("contradicting", "gap", "renamed", "linked", "patched", "unpatched", "requests"),
)
"""Fields of ``run.end`` that have the name of their attribute in the report."""


def _dry_run_lines(
    report: RunReport, folder: str, plan: Mapping[str, object], *, pruning: bool
) -> tuple[TextLine, ...]:
    """Return the lines about what a run would do, and would hold back."""
    names = [name for name in _SYMBOLS if name != "delete" or not report.held]
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
        yield TextLine("  next   some changes are unknown, and nothing was deleted for them; after")
        yield TextLine(f"         the Source's next Resource List: resourcesync pull {folder}")
    if report.unread:
        yield TextLine(
            "  next   a part of the list cannot be read, and nothing was deleted: ask the"
        )
        yield TextLine(f"         Source to correct it, then: resourcesync pull {folder}")


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
    known = report.refused or unhelped or report.skew
    if others or not (known or report.gap):
        yield TextLine(f"  next   run it again: resourcesync pull {folder}")
    yield from _incomplete_steps(report, folder)
    if report.refused > report.unread:
        entries = formatting.counted(report.refused - report.unread, "entry", "entries")
        yield TextLine(f"  next   ask the Source to correct the {entries} that cannot be used;")
        yield TextLine("         if it may list resources of another origin: --allow-origin ORIGIN")
        yield TextLine(f"         if it moved there: resourcesync pull {folder} --moved URL")
