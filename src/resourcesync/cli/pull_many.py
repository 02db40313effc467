"""Several mirrors in one run: each in turn, and how they ended together."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from resourcesync.cli import words
from resourcesync.cli.exit_codes import worst
from resourcesync.cli.output import CommandOutcome, Problem, Screen, problem_of
from resourcesync.cli.words import QUIET, TextLine
from resourcesync.errors import ResourceSyncError
from resourcesync.ports import Reporter

PullNamed = Callable[[str, Reporter], CommandOutcome]
"""Pulls the mirror of a name; raises ``ResourceSyncError``."""


class BatchResult(NamedTuple):
    """How one of several ended: its name, what tells it apart in ``run.end``, and its outcome."""

    name: str
    fields: Mapping[str, object]
    outcome: CommandOutcome


def pull_many(names: Sequence[str], pull_one: PullNamed, screen: Screen) -> CommandOutcome:
    """Pull the mirrors in turn; one that fails, for whatever reason, does not keep the others back.

    Args:
        names: The mirrors, as the operator calls them.
        pull_one: Pulls one of them.
        screen: Shows it.
    """
    ended = [
        BatchResult(name, {"mirror": name}, _pull_named(name, pull_one, screen)) for name in names
    ]
    return combine_outcomes(ended, "mirror")


def _pull_named(name: str, pull_one: PullNamed, screen: Screen) -> CommandOutcome:
    def report(event: str, fields: Mapping[str, object]) -> None:
        screen.report(event, {"mirror": name, **fields})

    screen.report("mirror", {"mirror": name})
    try:
        return pull_one(name, report)
    except ResourceSyncError as error:
        return report_failure(problem_of(error), name, screen)
    except Exception as error:  # noqa: BLE001 - our own fault in one mirror is no reason to stop
        from resourcesync.cli.crash import write_crash_report  # noqa: PLC0415 - seldom needed

        return report_failure(write_crash_report(error, ["pull", name]), name, screen)


def report_failure(
    problem: Problem, name: str, screen: Screen, noun: str = "mirror"
) -> CommandOutcome:
    """Tell of the error that ended one of several; return how that one ended."""
    screen.problem(replace(problem, evidence=((noun, name), *problem.evidence)))
    line = TextLine(f"{problem.code}: {problem.message}  exit {int(problem.exit)}", "Failed", QUIET)
    return CommandOutcome(exit=problem.exit, closing=(line,))


def combine_outcomes(ended: Iterable[BatchResult], noun: str) -> CommandOutcome:
    """Return how several ended: the lines of each, and the worst of their exit codes.

    Args:
        ended: How each ended.
        noun: What they are, ``mirror``, ``set`` or ``source``.
    """
    lines: list[TextLine] = []
    rows: list[dict[str, object]] = []
    codes = []
    for name, fields, outcome in ended:
        lines += [
            TextLine(name, "Source" if noun == "source" else "Mirror", QUIET),
            *outcome.closing,
        ]
        rows.append({**fields, **outcome.fields, "exit": int(outcome.exit)})
        codes.append(outcome.exit)
    code = worst(codes)
    good = sum(not it for it in codes)
    text = f"{words.count(good)} of {words.counted(len(codes), noun)} without a fault"
    lines.append(TextLine(f"{text}  exit {int(code)}", f"{noun.capitalize()}s", QUIET))
    return CommandOutcome(
        exit=code, closing=tuple(lines), fields={f"{noun}s": rows}, shows_exit=True
    )
