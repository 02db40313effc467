"""The results of ``conformance``: lines, a page and a badge."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from resourcesync.cli.formatting import DETAIL, NORMAL, TextLine
from resourcesync.conformance.judge import ConformanceFault, StepResult
from resourcesync.conformance.scenarios import ClientScenario
from resourcesync.server.dashboard.layout import card, outcome, report_page, row, table
from resourcesync.server.dashboard.markup import Markup, tag

FAULTS: Final = {
    ConformanceFault.MISSING: "a resource is missing",
    ConformanceFault.STALE: "content is there that was replaced, deleted, or is not as listed",
    ConformanceFault.ESCAPED: "a file was written outside the folder",
    ConformanceFault.FALSE_SUCCESS: "success is reported, but the copy is not in sync",
    ConformanceFault.FALSE_FAILURE: "failure is reported, but the copy is in sync",
    ConformanceFault.TIMEOUT: "the client did not end in time",
}
_HEADS: Final = ("Scenario", "Clause", "Step", "Result", "#Exit", "#Requests")


def render_event(event: str, fields: Mapping[str, Any]) -> Iterator[TextLine]:
    """Yield the lines of a step."""
    if event != "conformance":
        return
    label = "ok" if fields["conforms"] else "FAULT"
    where = f"{fields['scenario']}: {fields['step']}"
    yield TextLine(where, label, DETAIL if fields["conforms"] else NORMAL)
    for fault, evidence in zip(fields["faults"], fields["evidence"], strict=True):
        yield TextLine(f"  {FAULTS[ConformanceFault(fault)]}: {evidence}")


def report(scenarios: Sequence[ClientScenario], results: Sequence[StepResult], command: str) -> str:
    """Return a page with all results.

    Args:
        scenarios: The scenarios.
        results: The results of their steps.
        command: The command of the client.
    """
    failed = {result.scenario for result in results if result.faults}
    word = f"{len(scenarios) - len(failed)} of {len(scenarios)} scenarios without a fault"
    return report_page(
        "Conformance of a Destination",
        tag("h1", "Conformance of a Destination"),
        tag("p", outcome(is_good=not failed, word=word)),
        tag("p", tag("code", command)),
        card(table(_HEADS, _rows(scenarios, results)), title="Steps"),
    )


def _rows(scenarios: Sequence[ClientScenario], results: Sequence[StepResult]) -> Iterator[Markup]:
    known = {scenario.name: scenario for scenario in scenarios}
    for result in results:
        scenario = known[result.scenario]
        words = [f"{FAULTS[fault]}: {name}" for fault, name in _faults_of(result)]
        said = [tag("p", text) for text in words]
        code = "-" if result.exit is None else str(result.exit)
        cells = (
            [tag("strong", scenario.name), ": ", scenario.title],
            scenario.clause,
            result.step,
            [outcome(is_good=not words, word="conforms" if not words else "fault"), *said],
            code,
            str(result.requests),
        )
        yield row(_HEADS, cells)


def _faults_of(result: StepResult) -> Iterator[tuple[ConformanceFault, str]]:
    return zip(result.faults, result.evidence, strict=True)


def badge(scenarios: Sequence[ClientScenario], results: Sequence[StepResult], command: str) -> str:
    """Return a small picture (SVG) with the number of scenarios without a fault.

    Args:
        scenarios: The scenarios.
        results: The results of their steps.
        command: The command of the client.
    """
    failed = {result.scenario for result in results if result.faults}
    figure = f"{len(scenarios) - len(failed)}/{len(scenarios)}"
    words = f"ResourceSync Destination: {figure} scenarios, by {command}"
    colour = "#9a6700" if failed else "#1a7f37"
    drawn = tag(
        "svg",
        tag("title", words),
        tag("rect", width="112", height="20", fill="#424a53"),
        tag("rect", x="112", width="58", height="20", fill=colour),
        tag("text", "ResourceSync", x="10", y="14"),
        tag("text", figure, x="122", y="14"),
        xmlns="http://www.w3.org/2000/svg",
        width="170",
        height="20",
        role="img",
        fill="#fff",
        font_family="sans-serif",
        font_size="12",
    )
    return f"{drawn}\n"
