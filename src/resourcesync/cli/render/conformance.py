"""The results of ``conformance``: lines, a page and a badge."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from resourcesync.cli.formatting import DETAIL, NORMAL, TextLine
from resourcesync.cli.render.validate import ValidateRenderer
from resourcesync.conformance.clauses import (
    UNREAD,
    ClauseOutcome,
    ClauseReport,
    ClauseResult,
    SourceVerdict,
)
from resourcesync.conformance.judge import ConformanceFault, StepResult
from resourcesync.conformance.scenarios import ClientScenario
from resourcesync.server.dashboard.layout import card, outcome, report_page, row, table
from resourcesync.server.dashboard.markup import Markup, tag
from resourcesync.validator.rule import RuleFinding

FAULTS: Final = {
    ConformanceFault.MISSING: "a resource is missing",
    ConformanceFault.STALE: "content is there that was replaced, deleted, or is not as listed",
    ConformanceFault.ESCAPED: "a file was written outside the folder",
    ConformanceFault.FALSE_SUCCESS: "success is reported, but the copy is not in sync",
    ConformanceFault.FALSE_FAILURE: "failure is reported, but the copy is in sync",
    ConformanceFault.TIMEOUT: "the client did not end in time",
}
_CLAUSE_HEADS: Final = ("Clause", "Rule", "Level", "What it asks", "Result")
_HEADS: Final = ("Scenario", "Clause", "Step", "Result", "#Exit", "#Requests")


class ConformanceRenderer:
    """Yields the lines of events: those of steps here, those of findings as ``validate`` does."""

    def __init__(self) -> None:
        self._findings = ValidateRenderer()

    def __call__(self, event: str, fields: Mapping[str, Any]) -> Iterator[TextLine]:
        """Yield the lines for one event."""
        if event == "conformance":
            yield from _step_lines(fields)
        elif event == "clause":
            yield from _clause_lines(fields)
        else:
            yield from self._findings(event, fields)


def _clause_lines(fields: Mapping[str, Any]) -> Iterator[TextLine]:
    result = fields["result"]
    is_open = result == ClauseResult.NOT_TESTED and fields["level"] == "MUST"
    is_shown = is_open and fields["reason"] != UNREAD  # the closing lines name what was not read
    text = f"{fields['code']} (clause {fields['clause']}) {result}"
    reason = f": {fields['reason']}" if fields["reason"] else ""
    yield TextLine(text + reason, level=NORMAL if is_shown else DETAIL)


def _step_lines(fields: Mapping[str, Any]) -> Iterator[TextLine]:
    label = "ok" if fields["conforms"] else "FAULT"
    where = f"{fields['scenario']}: {fields['step']}"
    yield TextLine(where, label, DETAIL if fields["conforms"] else NORMAL)
    for fault, evidence in zip(fields["faults"], fields["evidence"], strict=True):
        yield TextLine(f"  {FAULTS[ConformanceFault(fault)]}: {evidence}")


def client_page(
    scenarios: Sequence[ClientScenario], results: Sequence[StepResult], command: str
) -> str:
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


def client_badge(
    scenarios: Sequence[ClientScenario], results: Sequence[StepResult], command: str
) -> str:
    """Return a small picture (SVG) with the number of scenarios without a fault.

    Args:
        scenarios: The scenarios.
        results: The results of their steps.
        command: The command of the client.
    """
    failed = {result.scenario for result in results if result.faults}
    figure = f"{len(scenarios) - len(failed)}/{len(scenarios)}"
    words = f"ResourceSync Destination: {figure} scenarios, by {command}"
    return _badge(figure, words, is_good=not failed)


def _badge(figure: str, words: str, *, is_good: bool) -> str:
    """Return a small picture (SVG).

    Args:
        figure: The result, in at most eleven characters.
        words: The same in words.
        is_good: True if there is nothing to complain about.
    """
    drawn = tag(
        "svg",
        tag("title", words),
        tag("rect", width="112", height="20", fill="#424a53"),
        tag("rect", x="112", width="78", height="20", fill="#1a7f37" if is_good else "#9a6700"),
        tag("text", "ResourceSync", x="10", y="14"),
        tag("text", figure, x="122", y="14"),
        xmlns="http://www.w3.org/2000/svg",
        width="190",
        height="20",
        role="img",
        fill="#fff",
        font_family="sans-serif",
        font_size="12",
    )
    return f"{drawn}\n"


def clause_fields(outcome_: ClauseOutcome) -> dict[str, object]:
    """Return an outcome as the fields of its event."""
    rule = outcome_.rule
    return {
        "clause": rule.clause,
        "rule": rule.id,
        "code": rule.code,
        "level": rule.level.value,
        "sentence": rule.sentence,
        "result": outcome_.result.value,
        "reason": outcome_.reason,
        "findings": outcome_.findings,
        "evidence": [
            {"uri": found.uri, "line": found.line, "message": found.message}
            for found in outcome_.evidence
        ],
    }


def clause_counts(found: ClauseReport) -> dict[str, int]:
    """Return the number of clauses of each result."""
    results = [out.result for out in found.outcomes()]
    return {result.name.lower(): results.count(result) for result in ClauseResult}


def sentence(found: ClauseReport) -> str:
    """Return the result in a sentence."""
    parts = [
        f"{number} {name.replace('_', ' ')}"
        for name, number in clause_counts(found).items()
        if number
    ]
    return f"{', '.join(parts)} clauses"


def source_page(url: str, found: ClauseReport) -> str:
    """Return a page with the outcome of each clause."""
    verdict = found.verdict()
    word = f"{verdict.value}: {sentence(found)}"
    return report_page(
        "Conformance of a Source",
        tag("h1", "Conformance of a Source"),
        tag("p", outcome(is_good=verdict is SourceVerdict.CONFORMS, word=word)),
        tag("p", tag("code", url)),
        card([tag("p", line) for line in found.bounds()], title="What was looked at"),
        card(table(_CLAUSE_HEADS, map(_clause_row, found.outcomes())), title="Clauses"),
    )


def _clause_row(out: ClauseOutcome) -> Markup:
    rule = out.rule
    word = out.result.value.replace("-", " ")
    is_plain = out.result in (ClauseResult.NOT_APPLICABLE, ClauseResult.NOT_TESTED)
    shown = word if is_plain else outcome(is_good=out.result is ClauseResult.PASSED, word=word)
    more = [tag("p", _evidence(finding)) for finding in out.evidence]
    if hidden := out.findings - len(out.evidence):
        more.append(tag("p", f"and {hidden} more"))
    reason = tag("p", out.reason) if out.reason else None
    cells = (rule.clause, rule.code, rule.level.value, rule.sentence, [shown, reason, *more])
    return row(_CLAUSE_HEADS, cells)


def _evidence(finding: RuleFinding) -> str:
    line = f":{finding.line}" if finding.line else ""
    return f"{finding.uri}{line}: {finding.message}"


def source_badge(url: str, found: ClauseReport) -> str:
    """Return a small picture (SVG) with the verdict."""
    verdict = found.verdict()
    words = f"ResourceSync Source: {verdict.value}, {sentence(found)}: {url}"
    return _badge(verdict.value, words, is_good=verdict is SourceVerdict.CONFORMS)
