"""Several runs of one command, one after the other: their order, their ends, their exit code."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from resourcesync.cli.exit_codes import worst
from resourcesync.cli.output import QUIET, CommandOutcome, Problem, Screen, TextLine, problem_of
from resourcesync.errors import ResourceSyncError
from resourcesync.model import formatting
from resourcesync.ports import Reporter


class BatchResult(NamedTuple):
    """The result of one of several: its name, its fields in ``run.end``, and its outcome."""

    name: str
    fields: Mapping[str, object]
    outcome: CommandOutcome


def run_all(
    names: Sequence[str], noun: str, work: Callable[[str, Reporter], CommandOutcome], screen: Screen
) -> CommandOutcome:
    """Run the mirrors or sources in turn; the others go on after a failure of any kind."""
    ended = []
    for name in names:
        started = screen.clock.monotonic()
        key = {"mirror" if noun == "mirror" else "name": name}
        ended.append(BatchResult(name, key, _run_one(name, noun, work, screen)))
        report_end(ended[-1], round(screen.clock.monotonic() - started, 3), screen)
    return combine_outcomes(ended, noun)


def _run_one(
    name: str, noun: str, work: Callable[[str, Reporter], CommandOutcome], screen: Screen
) -> CommandOutcome:
    def report(event: str, fields: Mapping[str, object]) -> None:
        screen.report(event, {noun: name, **fields})

    try:
        return work(name, report)
    except ResourceSyncError as error:
        problem = problem_of(error, name if noun == "mirror" else "")
    except Exception as error:  # noqa: BLE001 - a bug in one mirror does not stop the others
        from resourcesync.cli.crash import write_crash_report  # noqa: PLC0415 - rarely needed

        problem = write_crash_report(error, ["pull" if noun == "mirror" else "publish", name])
    return report_failure(problem, name, screen, noun)


def report_end(result: BatchResult, seconds: float, screen: Screen) -> None:
    """Report the end of one of several."""
    tail = {"seconds": seconds, "exit": int(result.outcome.exit)}
    screen.report("mirror.end", {**result.fields, **result.outcome.fields, **tail})


def report_failure(
    problem: Problem, name: str, screen: Screen, noun: str = "mirror"
) -> CommandOutcome:
    """Show the error that ended one of several; return its outcome."""
    screen.problem(problem.about(noun, name))
    line = TextLine(f"{problem.code}: {problem.message}  exit {int(problem.exit)}", "Failed", QUIET)
    return problem.outcome()._replace(closing=(line,))


def combine_outcomes(ended: Iterable[BatchResult], noun: str) -> CommandOutcome:
    """Return the outcome of several: the lines of each, and the worst of their exit codes."""
    lines: list[TextLine] = []
    failed: list[TextLine] = []
    rows: list[dict[str, object]] = []
    codes = []
    head = "Source" if noun == "source" else "Mirror"
    for name, fields, outcome in ended:
        own = (TextLine(name, head, QUIET), *outcome.closing)
        lines += own
        failed += own if outcome.exit else ()
        rows.append({**fields, **outcome.fields, "exit": int(outcome.exit)})
        codes.append(outcome.exit)
    code = worst(codes)
    good = sum(not code for code in codes)
    text = f"{formatting.count(good)} of {formatting.counted(len(codes), noun)} OK"
    end = TextLine(f"{text}  exit {int(code)}", f"{noun.capitalize()}s", QUIET)
    return CommandOutcome(
        exit=code,
        closing=(*lines, end),
        fields={f"{noun}s": rows},
        shows_exit=True,
        failed=(*failed, end),
    )
