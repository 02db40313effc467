"""``resourcesync audit``: compare every copy with what the Source lists; write nothing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TextIO

import click

from resourcesync import config
from resourcesync.cli import options, words
from resourcesync.cli.exit_codes import ExitCode, worst
from resourcesync.cli.job import Job
from resourcesync.cli.options import option
from resourcesync.cli.output import Outcome, OutputOptions, Screen, problem_of, write_line
from resourcesync.cli.words import QUIET, Line
from resourcesync.destination.reports import AuditReport, FindingKind
from resourcesync.errors import ResourceSyncError, StorageError

SHOWN_FINDINGS: Final = 1000
"""Findings that are shown one by one unless ``-v`` is given; the counts are complete."""

_LISTS: Final = {
    "combined": frozenset(FindingKind),
    "missing": frozenset({FindingKind.MISSING}),
    "different": frozenset({FindingKind.DIFFERENT}),
    "extra": frozenset({FindingKind.EXTRA}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The command line of ``audit``, understood."""

    mirrors: tuple[Path, ...]
    method: Literal["lists", "stat", "hash"]
    offline: bool
    lists: Mapping[str, str]
    allow_origin: tuple[str, ...] = ()


def _list_option(name: str, what: str) -> Callable[[Any], Any]:
    return option(
        f"--{name}", metavar="FILE", help=f"Write {what} to a file; - is stdout, for text only."
    )


@click.command("audit")
@click.argument(
    "mirrors",
    nargs=-1,
    required=True,
    metavar="MIRROR...",
    type=click.Path(file_okay=False, path_type=Path),
)
@option(
    "--method",
    type=click.Choice(["lists", "stat", "hash"]),
    default="hash",
    show_default=True,
    help="Compare the mirror's memory, also size and time of each file, or also every byte.",
)
@option("--offline", is_flag=True, help="Compare with the lists as last read; ask nobody.")
@_list_option("combined", "all findings with their symbols")
@_list_option("missing", "paths that are missing here")
@_list_option("different", "paths that differ")
@_list_option("extra", "paths that the Source does not list")
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Compare every copy with what the Source lists.

    Symbols: + missing here, * different, - extra here, ! failed, ? not proven by a hash.
    Exit 0 in sync, 1 not. Nothing is written.
    """
    lists = {name: target for name in _LISTS if (target := values.pop(name)) is not None}
    if output.json and "-" in lists.values():
        raise click.UsageError("--json keeps stdout for itself: write the list to a file")
    arguments = Arguments(lists=lists, **values)

    def work(screen: Screen) -> Outcome:
        return _audit_all(arguments, screen)

    mirrors = [str(mirror) for mirror in arguments.mirrors]
    return Job(
        command="audit",
        output=output,
        work=work,
        words=AuditWords(is_shown="-" not in lists.values()),
        subject="audit",
        fields={"mirrors": mirrors, "method": arguments.method, "offline": arguments.offline},
        again=f"resourcesync audit {' '.join(mirrors)}",
    )


@dataclass(slots=True, kw_only=True)
class AuditWords:
    """Turns the events of an audit into lines; none while the findings themselves are on stdout."""

    is_shown: bool = True
    findings: int = 0

    def __call__(self, event: str, fields: Mapping[str, object]) -> Iterator[Line]:
        """Yield the lines for one event."""
        if event == "source" and self.is_shown:
            name = fields.get("resource_list") or fields.get("entry")
            yield Line(f"{name}", "Reference")
        elif event == "finding" and self.is_shown:
            self.findings += 1
            level = words.NORMAL if self.findings <= SHOWN_FINDINGS else words.DETAIL
            yield Line(f"{_name(fields)}   {fields.get('reason')}", str(fields["kind"]), level)
            if self.findings == SHOWN_FINDINGS + 1:
                yield Line("  more findings are not shown; -v or --combined FILE has them all")


def _name(fields: Mapping[str, object]) -> str:
    path = fields.get("path")
    return f"/{path}" if path else str(fields.get("uri"))


def _audit_all(arguments: Arguments, screen: Screen) -> Outcome:
    outcomes: list[Outcome] = []
    with ExitStack() as held:
        write = held.enter_context(_finding_lists(arguments.lists))
        for mirror in arguments.mirrors:
            try:
                outcome = _audit(mirror, arguments, screen, write)
            except ResourceSyncError as error:
                problem = problem_of(error)
                screen.problem(problem)
                outcome = Outcome(exit=problem.exit, fields={"mirror": str(mirror)})
            outcomes.append(outcome)
    code = worst(outcome.exit for outcome in outcomes)
    lines = tuple(line for outcome in outcomes for line in outcome.closing)
    fields = outcomes[0].fields
    if len(outcomes) > 1:
        fields = {"mirrors": [{**outcome.fields, "exit": outcome.exit} for outcome in outcomes]}
    # A list of findings on stdout is for a program: not even the exit code stands below it.
    has_stdout = "-" in arguments.lists.values()
    return Outcome(exit=code, closing=lines, fields=fields, says_exit=has_stdout)


def _audit(
    mirror: Path,
    arguments: Arguments,
    screen: Screen,
    write: Callable[[Mapping[str, object]], None],
) -> Outcome:
    from resourcesync.wiring import machine, mirrors  # noqa: PLC0415 - help stays quick

    if not mirrors.is_mirror(mirror):
        raise mirrors.not_a_mirror(mirror)
    several = {"mirror": str(mirror)} if len(arguments.mirrors) > 1 else {}

    clock = machine.system_clock()
    network = mirrors.Network(ca_file=config.ca_file())

    def report(event: str, fields: Mapping[str, object]) -> None:
        if event == "finding":
            write(fields)
            kept.add(fields)
        screen.report(event, {**several, **fields})

    opened = mirrors.open_destination(mirror, network=network, report=report, clock=clock)
    # The findings are kept while the mirror is held, so that two audits cannot mix theirs.
    with opened as destination, mirrors.audit_files(mirror).keeping() as kept:
        found = destination.audit(method=arguments.method, offline=arguments.offline)
        if not found.in_sync or found.foreign:
            kept.call(found.run, clock.now().strftime("%Y%m%d%H%M%S"))
    is_text_out = "-" in arguments.lists.values()
    return conclude(found, mirror, quiet=is_text_out, named=bool(several))


@contextmanager
def _finding_lists(lists: Mapping[str, str]) -> Iterator[Callable[[Mapping[str, object]], None]]:
    """Open the files of findings; yield what writes one finding to those that want it."""
    with ExitStack() as held:
        opened: list[tuple[str, TextIO]] = []
        for name, target in lists.items():
            try:
                stream = held.enter_context(click.open_file(target, "w", encoding="utf-8"))
            except OSError as error:
                raise StorageError(f"cannot write {target}: {error.strerror}") from error
            opened.append((name, stream))  # type: ignore[arg-type]  # opened for text

        def write(fields: Mapping[str, object]) -> None:
            for name, stream in opened:
                if fields["kind"] in _LISTS[name]:
                    path = words.escape(str(fields.get("path") or fields.get("uri")))
                    symbol = f"{fields['kind']} " if name == "combined" else ""
                    write_line(stream, f"{symbol}{path}")

        yield write


def conclude(
    report: AuditReport, mirror: Path, *, quiet: bool = False, named: bool = False
) -> Outcome:
    """Return how an audit ended, in the words of its closing lines.

    Args:
        report: What it found.
        mirror: The mirror.
        quiet: Say nothing: stdout holds a list of findings.
        named: Whether each mirror's lines name it.
    """
    lines = [] if quiet else _closing(report, mirror)
    if named and lines:
        lines.insert(0, Line(f"{mirror}", "Mirror", QUIET))
    code = ExitCode.OK if report.in_sync else ExitCode.FINDINGS
    return Outcome(exit=code, closing=tuple(lines), fields=fields_of(report, mirror))


def _closing(report: AuditReport, mirror: Path) -> list[Line]:
    coverage = _of(report.present, report.listed)
    accuracy = _of(report.accurate, report.present)
    cost = f"{words.duration(report.seconds)}, {words.size(report.read)} read"
    if report.in_sync:
        unproven = (
            f", {words.count(report.unproven)} without a hash at the Source"
            if report.unproven
            else ""
        )
        text = f"coverage {coverage}, accuracy {accuracy}{unproven}  {cost}"
        return [Line(text, "In sync", QUIET), *_foreign(report)]
    indent = " " * len("Not in sync   ")
    lines = [
        Line(f"coverage {coverage}", "Not in sync", QUIET),
        Line(f"{indent}accuracy {accuracy}     {cost}", level=QUIET),
    ]
    counts = _others(report)
    if counts:
        lines.append(Line(f"{indent}{counts}", level=QUIET))
    return [
        *lines,
        *_foreign(report),
        Line(f"  next        resourcesync repair {mirror} --from-audit {report.run}"),
    ]


def _of(part: int, whole: int) -> str:
    return f"{words.share(part, whole)} ({words.count(part)} of {words.count(whole)})"


def _others(report: AuditReport) -> str:
    counts: Sequence[tuple[int, str]] = (
        (report.extra, "here that the Source does not list"),
        (report.refused, "listed that cannot be used"),
        (report.unproven, "without a hash at the Source"),
    )
    return ", ".join(f"{words.count(number)} {what}" for number, what in counts if number)


def _foreign(report: AuditReport) -> list[Line]:
    if not report.foreign:
        return []
    files = words.counted(report.foreign, "file")
    return [Line(f"          {files} here did not come from the Source and are left alone")]


def fields_of(report: AuditReport, mirror: Path) -> dict[str, object]:
    """Return an audit's report as the fields of ``run.end``."""
    return {
        "mirror": str(mirror),
        "audit": report.run,
        "in_sync": report.in_sync,
        "at": report.at,
        "listed": report.listed,
        "present": report.present,
        "accurate": report.accurate,
        "unproven": report.unproven,
        "extra": report.extra,
        "foreign": report.foreign,
        "refused": report.refused,
        "coverage": report.coverage,
        "accuracy": report.accuracy,
        "read_bytes": report.read,
        "seconds": round(report.seconds, 3),
    }
