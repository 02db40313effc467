"""Several runs of one command, one after the other: their order, their ends, their exit code."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from resourcesync import app
from resourcesync.cli import formatting
from resourcesync.cli.exit_codes import worst
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.output import CommandOutcome, Problem, Screen, problem_of
from resourcesync.errors import ResourceSyncError

if TYPE_CHECKING:
    from resourcesync.ports import Reporter

PullNamed = Callable[[str, "Reporter"], CommandOutcome]
"""A function that pulls the mirror of a name; raises ``ResourceSyncError``."""


class BatchResult(NamedTuple):
    """The result of one of several: its name, its fields in ``run.end``, and its outcome."""

    name: str
    fields: Mapping[str, object]
    outcome: CommandOutcome


def pull_many(names: Sequence[str], pull_one: PullNamed, screen: Screen) -> CommandOutcome:
    """Pull the mirrors in turn; the others go on after a failure of any kind."""
    ended = [
        run_part(name, {"mirror": name}, partial(_pull_named, name, pull_one, screen), screen)
        for name in names
    ]
    return combine_outcomes(ended, "mirror")


def run_part(
    name: str, fields: Mapping[str, object], work: Callable[[], CommandOutcome], screen: Screen
) -> BatchResult:
    """Run one of several, and report its end as the event ``mirror.end``."""
    clock = app.machine.system_clock()
    started = clock.monotonic()
    outcome = work()
    result = BatchResult(name, fields, outcome)
    report_end(result, round(clock.monotonic() - started, 3), screen)
    return result


def report_end(result: BatchResult, seconds: float, screen: Screen) -> None:
    """Report the end of one of several."""
    tail = {"seconds": seconds, "exit": int(result.outcome.exit)}
    screen.report("mirror.end", {**result.fields, **result.outcome.fields, **tail})


def _pull_named(name: str, pull_one: PullNamed, screen: Screen) -> CommandOutcome:
    def report(event: str, fields: Mapping[str, object]) -> None:
        screen.report(event, {"mirror": name, **fields})

    screen.report("mirror", {"mirror": name})
    try:
        return pull_one(name, report)
    except ResourceSyncError as error:
        return report_failure(problem_of(error, name), name, screen)
    except Exception as error:  # noqa: BLE001 - a bug in one mirror does not stop the others
        from resourcesync.cli.crash import write_crash_report  # noqa: PLC0415 - rarely needed

        return report_failure(write_crash_report(error, ["pull", name]), name, screen)


def report_failure(
    problem: Problem, name: str, screen: Screen, noun: str = "mirror"
) -> CommandOutcome:
    """Show the error that ended one of several; return its outcome."""
    screen.problem(problem._replace(evidence=((noun, name), *problem.evidence)))
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
