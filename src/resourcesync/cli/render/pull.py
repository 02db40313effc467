"""The text of a pull: its events, its end with the exit code, and the words for its counts.

The words are in the file ``words.txt``, one row for each field of a report.
"""

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from resourcesync.cli.exit_codes import ExitCode, exit_code_of_pull
from resourcesync.cli.output import (
    DETAIL,
    NORMAL,
    QUIET,
    CommandOutcome,
    TextLine,
    leniency_line,
    proof,
    read_tables,
)
from resourcesync.cli.terminal import count_field
from resourcesync.destination.reports import MirrorState, MirrorStatus, RunReport, report_fields
from resourcesync.errors import ResourceMissingError, SourceRefusedError
from resourcesync.model import formatting

SHOWN_FAILURES: Final = 20
"""Failures that are shown one by one unless ``--itemize`` is given."""

_DONE: Final = frozenset({"ok", "notneeded"})
_SYMBOLS: Final = {"create": "+", "update": "*", "delete": "-"}
Fields = Mapping[str, Any]


class PullRenderer(msgspec.Struct, kw_only=True):
    """A renderer of the events of a pull."""

    first: bool = True
    itemize: bool = False
    dry_run: bool = False
    has_trash: bool = True
    since_moves: bool = True  # --since is relative, such as -7d
    verbose: bool = True  # False: no line of level DETAIL need be made
    fate: str = ""  # of the pages that a plain sitemap will no longer list
    failures: int = 0
    held: int = 0  # deletions that a dry run would hold back: all, or none

    def __call__(self, event: str, fields: Fields) -> Iterable[TextLine]:
        """Return the lines for one event."""
        is_shown = self.verbose or self.itemize or self.dry_run or event != "item"
        if is_shown or fields["status"] not in _DONE or "code" in fields:
            return self._lines(event, fields)
        return ()

    def _lines(self, event: str, fields: Fields) -> Iterator[TextLine]:
        level = NORMAL if self.first else DETAIL
        match event:
            case "scope":
                yield _filters_line(fields, since_moves=self.since_moves)
            case "source":
                yield from self._source(fields, level)
            case "leniency" if self.verbose:
                yield leniency_line(fields)
            case "plan":
                self.held = fields["held"]
                yield TextLine(f"{fields['mode']}: {_planned(fields)}", "Plan", level)
            case "item":
                yield from self._item(fields)
            case "patch":
                text = f"{_name(fields)}   fetched whole, since its patch cannot be used"
                level = NORMAL if self.itemize else DETAIL
                yield TextLine(f"{text}: {fields['reason']}", "*", level)
            case "sets" | "mirror":
                yield from _several(event, fields)
            case _:
                return

    def _source(self, fields: Fields, level: int) -> Iterator[TextLine]:
        is_sitemap, spec = fields.get("sitemap"), fields.get("spec")
        kind = "plain sitemap" if is_sitemap else f"ResourceSync {spec}"
        yield TextLine(f"{fields['entry']}  ({kind})", "Source", level)
        shown = list(filter(None, (_listing(of, fields) for of in ("resource", "change"))))
        if shown and not is_sitemap:
            yield TextLine(", ".join(shown), "Set", level)
        if self.dry_run or fields.get("found_by"):
            level = NORMAL if self.dry_run else DETAIL
            yield TextLine(fields.get("found_by") or "its address", "Found by", level)

    def _item(self, fields: Fields) -> Iterator[TextLine]:
        status, action, name = fields["status"], fields["action"], _name(fields)
        level = NORMAL if self.itemize else DETAIL
        if status in {"absent", "skipped"}:
            kept = "; the copy is kept" if fields.get("kept") else ""
            yield TextLine(f"{name}   {status}: {fields['reason']}{kept}", "~", self._next_level())
        elif status in {"error", "impossible"} or fields.get("code"):
            yield from self._failure(fields)
        elif status != "ok":
            yield TextLine(name, "=", DETAIL)
        elif action == "move":
            done = "would be renamed to" if self.dry_run else "renamed to"
            level = NORMAL if self.dry_run else level
            yield TextLine(f"/{fields['was']}   {done} {name}", ">", level)
        else:
            would = "request: it may be unchanged" if fields.get("may_be_same") else action
            would = "hold back its deletion" if action == "delete" and self.held else would
            text = f"would {would}" if self.dry_run else _done(fields, has_trash=self.has_trash)
            yield TextLine(f"{name}   {text}", _SYMBOLS[action], level)

    def _next_level(self) -> int:
        self.failures += 1
        return NORMAL if self.itemize or self.failures <= SHOWN_FAILURES else DETAIL

    def _failure(self, fields: Fields) -> Iterator[TextLine]:
        level, tries = self._next_level(), fields.get("tries", 0)
        kept = "; kept" if fields["action"] == "delete" else "; old copy kept"
        often = f" after {tries} tries" if tries > 1 else ""
        text = f"{fields['reason']}{often}{kept if fields.get('kept') else ''}"
        yield TextLine(f"{_name(fields)}   {text}", "!", level)
        if self.failures == SHOWN_FAILURES + 1 and not self.itemize:
            yield TextLine("  more failures are not shown; use -i to see them")


def _planned(fields: Fields) -> str:
    unsized = fields["unsized"]
    more = f" and {formatting.count(unsized)} of unknown size" if unsized else ""
    size = f"{formatting.size(fields['bytes'])}{more} to fetch"
    if fields["mode"] == "baseline":
        total = fields["same"] + fields["create"] + fields["update"]
        return f"{formatting.counted(total, 'resource')}, {size}"
    parts = (f"{name} {formatting.count(fields[name])}" for name in _SYMBOLS)
    return f"{', '.join(parts)}; {size}"


def _done(fields: Fields, *, has_trash: bool) -> str:
    if fields["action"] == "delete":
        where = "moved to .resourcesync/quarantine" if fields["set_aside"] else "its file was gone"
        trash = "in the trash" if has_trash else "trash = 0: not kept"
        return f"deleted ({trash if fields['place'] else where})"
    before, patch = fields.get("was_bytes"), fields.get("patched")
    amount = f"{formatting.count(fields['bytes'])} B"
    if before is not None and before >= 0:  # negative: unknown
        amount = f"{formatting.count(before)} → {amount}"
    how = "" if patch is None else f"   by a patch of {formatting.count(patch)} B"
    return f"{amount}{how}   {proof(fields)}".rstrip()


def _several(event: str, fields: Fields) -> Iterator[TextLine]:
    if event == "mirror":
        of_set = f"  {fields['set']}" if "set" in fields else ""
        gone = "" if fields.get("offered", True) else "  (withdrawn by the Source; copies kept)"
        yield TextLine(f"{fields['mirror']}{of_set}{gone}", "Mirror")
        return
    yield TextLine(f"{formatting.counted(fields['sets'], 'set')} of {fields['source']}", "Sets")
    if failure := fields.get("not_asked_anew"):
        yield TextLine(f"          as last read, since now: {failure}")


def _listing(of: str, fields: Fields) -> str:
    found = (f"{of}_{kind}" for kind in ("list", "dump"))
    names = (
        f"{name.replace('_', ' ').title()} {fields[name]}" for name in found if fields.get(name)
    )
    return next(names, "")


def _name(fields: Fields) -> str:
    path = fields.get("path")
    return f"/{path}" if path else str(fields.get("uri"))


_OPTIONS: Final = {
    "include": "--include ",
    "exclude": "--exclude ",
    "types": "--type ",
    "max_size": "-o max_size=",
    "since": "--since ",
    "links": "-o link=",
    "allow_origins": "--allow-origin ",
}


def _filters_line(fields: Fields, *, since_moves: bool) -> TextLine:
    before, after = (_options(fields.get(name) or {}) for name in ("before", "after"))
    names = [name for name in _OPTIONS if before.get(name) != after.get(name)]
    changes = ", ".join(_change(before.get(name, ""), after.get(name, "")) for name in names)
    unchanged = ", ".join(after[name] for name in after if name not in names)
    still = f"; unchanged: {unchanged}" if unchanged else ""
    level = DETAIL if since_moves and fields["is_since_moving"] else NORMAL
    return TextLine(f"changed: {changes}{still}", "Filters", level)


def _change(was: str, now: str) -> str:
    if was and now:
        return f"{now} instead of {was}"
    return f"{now} added" if now else f"{was} removed"


def _options(filters: Fields) -> dict[str, str]:
    found = {}
    for name, option in _OPTIONS.items():
        value = filters.get(name)
        if isinstance(value, int):
            found[name] = f"{option}{formatting.size(value).replace(' ', '')}"
        elif isinstance(value, datetime):
            found[name] = f"{option}{formatting.stamp(value)}"
        elif value:
            found[name] = " ".join(f"{option}{shlex.quote(item)}" for item in value)
    return found


_EITHER: Final = re.compile(r"\[([^|\]]*)\|([^\]]*)\]")
_TABLES: Final = read_tables(Path(__file__).with_name("words.txt"))
_NO_RERUN: Final = (
    ResourceMissingError.default_code,
    SourceRefusedError.default_code,
    "robots",
    "redirect",
    "shared-answer",
    "path-in-the-way",
)
"""Codes of failures that no rerun mends, with words of their own."""

_UNLISTED: Final = ("retained.damaged", "retained.restored", "retained.unlisted", "retained.extra")
"""Copies that can be deleted only if the lists prove that their resources are gone."""


def say(
    table: str,
    report: RunReport | MirrorStatus,
    folder: str = "",
    *,
    more: Mapping[str, object] | None = None,
    only: Collection[str] = (),
) -> Iterator[str]:
    """Yield the words of a table for each count of a report that is not 0.

    The tables are the ``changes`` of the run, what the mirror ``lacks``, ``remarks`` that do not
    make it wrong, and ``faults`` with the next step. ``more`` are counts that are no field.
    """
    known: dict[str, Any] = {**dict(_numbers(report)), **(more or {})}
    if since := report.listed.since:
        known["accepted_since" if report.listed.is_since_accepted else "open_since"] = since
        known["faults.gap"] = False
    known["retained.damaged"] -= report.retained.excluded
    known["unusable"] = report.listed.refused - report.faults.unread
    known["accept"] = report.faults.absent_below and report.listed.right
    known["unproven"] = report.faults.unproving and report.retained.unlisted
    is_open = report.listed.refused > 0 or report.faults.gap or report.faults.unproving
    as_of, evidence = report.as_of, report.evidence
    if evidence.by_request + evidence.by_date:
        proofs = ("by_hash", "hash"), ("by_request", "request"), ("by_date", "date only")
        counts = ((getattr(evidence, name), how) for name, how in proofs)
        known["evidence"] = ", ".join(f"{formatting.count(n)} by {how}" for n, how in counts if n)
    values = {
        "folder": folder,
        "resources": formatting.count(report.resources),
        "absent": formatting.count(report.listed.absent + report.listed.skipped),
        "listed": formatting.count(report.listed.total),
        "since": f" since {formatting.moment(as_of)}" if isinstance(as_of, datetime) else "",
    }
    for field, words in _TABLES[table].items():
        number = known.get(field, 0)
        if number and (not only or field in only):
            text = _EITHER.sub(r"\1" if number == 1 else r"\2", words)
            if is_open and field in _UNLISTED:
                text = text.partition(";")[0]
            if isinstance(number, datetime):
                number = formatting.moment(number)
            shown = number if isinstance(number, str) else formatting.count(int(number))
            yield text.format(n=shown, **values)


def deletions_line(report: RunReport | MirrorStatus) -> str:
    """Return the number of held deletions, and their share of the copies when they were held."""
    held = report.held
    of = max(held, report.held_of or report.resources)  # a second wrong move may hold more
    share = formatting.share(held, of)
    return f"would delete {formatting.count(held)} of {formatting.count(of)} ({share})"


def step_of_failure(code: str, folder: str) -> str:
    """Return the next step for one resource that failed: that of a pull; empty if it is a rerun."""
    words = _TABLES["faults"][code].split() if code in _NO_RERUN else ()
    return _EITHER.sub(r"\1", " ".join(words)).format(n=1, folder=folder)


def _numbers(report: Any, of: str = "") -> Iterator[tuple[str, object]]:
    for name in report.__struct_fields__:
        value = getattr(report, name)
        if hasattr(value, "__struct_fields__"):
            yield from _numbers(value, f"{of}{name}.")
        else:
            yield f"{of}{name}", value


_NEXT: Final = "  next   "
_INDENT: Final = " " * 10


def conclude(
    report: RunReport,
    folder: str,
    *,
    first: bool,
    plan: Mapping[str, object],
    by: str = "pull",
    place: str = "",
) -> CommandOutcome:
    """Return the outcome of a pull, with its closing lines.

    ``by`` is its command, with options without which the next one would do something else.
    """
    code = exit_code_of_pull(report)
    if report.dry_run:
        lines = _dry_run_lines(report, plan)
        if code is ExitCode.PARTIAL:
            copies = (f"retained.{of}" for of in ("damaged", "excluded", "edited", "open", "extra"))
            only = (*copies, "faults.gap", "faults.undecided", "faults.unread", "unusable")
            more = _tried_again(report)
            lines += _next_steps(report, folder, more=more, only=(*only, "tried_after"))
    elif report.spent:
        lines = _budget_lines(report, folder, plan)
    elif report.lists_only:
        lines = _inventory_lines(report, folder, plan)
    elif code is ExitCode.OK:
        lines = _in_sync(report, folder, place or folder, first=first)
    else:
        lines = _not_in_sync(report, folder, code)
    if report.held and not report.spent:
        steps = release_steps(report, folder, by)
        lines = [*lines, *(TextLine(f"{_NEXT}{step}") for step in steps)]
    fields, shown = report_fields(report), code is not ExitCode.OK
    if shown:
        lines[0] = lines[0]._replace(text=f"{lines[0].text}  exit {int(code)}")
    return CommandOutcome(exit=code, closing=tuple(lines), fields=fields, shows_exit=shown)


def _dry_run_lines(report: RunReport, plan: Mapping[str, object]) -> list[TextLine]:
    names = ["create", "update"] if report.held else ["create", "update", "delete"]
    counts = [f"{name} {formatting.count(count_field(plan, name))}" for name in names]
    if unsure := count_field(plan, "may_be_same"):
        counts[1] += f" ({formatting.count(unsure)} of them may be unchanged)"
    if report.renamed:
        counts.insert(0, f"rename {formatting.count(report.renamed)}")
    unsized = count_field(plan, "unsized")
    more = f" and {formatting.count(unsized)} of unknown size" if unsized else ""
    fetch = f"fetch {formatting.size(count_field(plan, 'bytes'))}{more}; nothing was changed"
    text = f"would {', '.join(counts)}, {fetch}  {formatting.duration(report.seconds)}"
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


def release_steps(report: RunReport | MirrorStatus, folder: str, by: str) -> Iterator[str]:
    """Yield what to do about held deletions; ``by`` is the command that holds them."""
    if former := report.faults.moved_from:
        yield f"if the Source did not move: resourcesync pull {folder} --moved {former}"
    name, _, options = by.partition(" ")
    is_chosen = options.startswith(("--prune", "--delete"))
    meant = "if this is intended" if is_chosen else "if the Source really shrank"
    more = f"{options} ".lstrip()
    yield f"{meant}: resourcesync {name} {folder} {more}--max-delete {report.held}"


def _budget_lines(report: RunReport, folder: str, plan: Mapping[str, object]) -> list[TextLine]:
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
        text = f"{resources} in {place}, {size} fetched  ({changes}{_hash_note(report)})  {seconds}"
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
    least = "at least " if report.faults.gap or report.faults.unread else ""
    wanted = formatting.count(report.listed.total + report.held + report.retained.extra)
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
    kept = retained.contradicting + retained.edited + retained.damaged
    counts = {code: report.reasons.get(code, 0) for code in _NO_RERUN}
    counts["other_failed"] = report.failed - kept
    lacks = ", ".join((*say("changes", report), *say("lacks", report, more=counts)))
    text = f"{_right_of(report)} ({lacks or 'nothing changed'})"
    if code is ExitCode.STOPPED:
        held = TextLine(f"{_INDENT}{deletions_line(report)}; none of these was deleted")
        return [TextLine(text, "Stopped", QUIET), held]
    # A rerun does not help for entries that cannot be used, nor for what the Source must mend.
    others = counts["other_failed"] - sum(counts[code] for code in _NO_RERUN)
    is_known = bool(report.failed - others or listed.refused or retained.open or retained.extra)
    is_known = is_known or faults.gap or bool(faults.undecided or faults.absent_below)
    is_known = is_known or faults.skew_seconds != 0
    # A rerun helps the others, unless all of them rest.
    when = _tried_again(report) if others > 0 or not is_known else {}
    steps = _next_steps(report, folder, more=counts | when)
    return [TextLine(text, "Not in sync", QUIET), *steps]


def _tried_again(report: RunReport) -> dict[str, object]:
    settled = {*_NO_RERUN, "local-change", "contradicting"}
    if report.reasons.get("damaged", 0) == report.retained.damaged:  # none of them is listed
        settled.add("damaged")
    due = [failing.due for failing in report.failures if failing.code not in settled]
    return {"tried_after": min(filter(None, due))} if due and all(due) else {"again": True}


def _next_steps(report: RunReport, folder: str, **chosen: Any) -> Iterator[TextLine]:
    for said in say("faults", report, folder, **chosen):
        first, *rest = said.split("\n")
        yield TextLine(f"{_NEXT}{first}")
        yield from (TextLine(f"{' ' * len(_NEXT)}{line}") for line in rest)
