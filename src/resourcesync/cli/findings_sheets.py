"""Findings in the formats of others: SARIF, JUnit, GitHub's workflow commands, one HTML page."""

import re
import sys
from collections.abc import Callable, Sequence
from html import escape
from typing import Final, Protocol

from resourcesync.cli.findings_html import html_page
from resourcesync.cli.findings_sarif import sarif_log
from resourcesync.cli.output import write_line
from resourcesync.cli.validate_words import (
    ValidationTally,
    cut_short_message,
    failing_severities,
    finding_fields,
    finding_lines,
)
from resourcesync.validator.findings import RuleFinding
from resourcesync.validator.rule import Severity
from resourcesync.wiring.resource_sample import Unreached
from resourcesync.wiring.validation import (
    CutShort,
    Heard,
    Judged,
    ReadAgain,
    Sampled,
    StandaloneDocument,
    Unopened,
    ValidationEvent,
)

MOST_FINDINGS: Final = 10_000
"""Findings that a whole document of findings holds; the counts are complete."""
_ILLEGAL_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_GITHUB_COMMANDS: Final = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.ADVICE: "notice",
}


class FindingsWriter(Protocol):
    """Takes events, writes them to stdout in its own format."""

    def add(self, event: ValidationEvent) -> None:
        """Take an event."""
        ...

    def end(self, tally: ValidationTally) -> None:
        """Write what is not written yet."""
        ...


def open_findings_writer(name: str, *, fail_on: str) -> FindingsWriter:
    """Return the sheet of a format: ``github``, ``sarif``, ``junit`` or ``html``."""
    if name == "github":
        return GithubFindingsWriter()
    render: dict[str, Callable[[Sequence[ValidationEvent], ValidationTally], str]] = {
        "sarif": sarif_log,
        "html": html_page,
        "junit": lambda events, tally: junit_suites(events, tally, fail_on=fail_on),
    }
    return WholeFindingsWriter(render[name])


class WholeFindingsWriter:
    """Keeps the first findings and writes them as one document.

    Args:
        render: Makes the document.
    """

    def __init__(self, render: Callable[[Sequence[ValidationEvent], ValidationTally], str]) -> None:
        self._render = render
        self._events: list[ValidationEvent] = []

    def add(self, event: ValidationEvent) -> None:
        """Keep an event."""
        if len(self._events) < MOST_FINDINGS or isinstance(event, CutShort):
            self._events.append(event)

    def end(self, tally: ValidationTally) -> None:
        """Write the document."""
        write_line(sys.stdout, self._render(self._events, tally))


class GithubFindingsWriter:
    """Writes a workflow command for each finding, as it comes."""

    def add(self, event: ValidationEvent) -> None:
        """Write a finding."""
        if isinstance(event, RuleFinding):
            write_line(sys.stdout, github_command(event))
        elif isinstance(event, Unreached):
            title = f"title={_github_property(event.error.code)}"
            text = _github_data(f"{event.uri}: {event.error.message}")
            write_line(sys.stdout, f"::error {title}::{text}")
        elif isinstance(event, CutShort):
            text = _github_data(f"{event.uri}: {cut_short_message(event)}")
            write_line(sys.stdout, f"::warning title=cut-short::{text}")

    def end(self, tally: ValidationTally) -> None:
        """Write what was found in all, for the log."""
        write_line(sys.stdout, tally.sentence())


def github_command(finding: RuleFinding) -> str:
    """Return the workflow command that marks a finding."""
    properties = [f"file={_github_property(finding.uri)}"]
    if finding.line:
        properties.append(f"line={finding.line}")
    if finding.column:
        properties.append(f"col={finding.column}")
        properties.append(f"endColumn={finding.column + max(finding.length, 1)}")
    properties.append(f"title={_github_property(finding.rule.code)}")
    text = f"{finding.message}. {finding.rule.fix}"
    return f"::{_GITHUB_COMMANDS[finding.severity]} {','.join(properties)}::{_github_data(text)}"


def _github_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _github_property(text: str) -> str:
    return _github_data(text).replace(":", "%3A").replace(",", "%2C")


def junit_suites(events: Sequence[ValidationEvent], tally: ValidationTally, *, fail_on: str) -> str:
    """Return the findings as JUnit XML: a suite for each document, a failure for each finding.

    Findings below ``fail_on`` are tests that pass and say what they saw.
    """
    suites: dict[str, list[str]] = {}
    failures = 0
    for event in events:
        match event:
            case Judged(_, place) | Heard(place, _):
                suites.setdefault(place, [])
            case RuleFinding():
                fails = event.severity in failing_severities(fail_on)
                failures += fails
                suites.setdefault(event.uri, []).append(_junit_case(event, fails=fails))
            case Unreached():
                failures += 1
                text = _junit_attribute(event.error.message)
                case = f'<testcase name="{_junit_attribute(event.error.code)}" classname="fetch">'
                suites.setdefault(event.uri, []).append(
                    f'{case}<error message="{text}"/></testcase>'
                )
            case CutShort():
                fails = Severity.WARNING in failing_severities(fail_on)
                failures += fails
                suites.setdefault(event.uri, []).append(_junit_limit_case(event, fails=fails))
            case Sampled() | ReadAgain() | StandaloneDocument() | Unopened():
                pass  # the name of the whole has the number
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    number = sum(max(len(cases), 1) for cases in suites.values())
    name = _junit_attribute(tally.sentence())
    lines.append(f'<testsuites name="{name}" tests="{number}" failures="{failures}">')
    for place, cases in suites.items():
        failed = sum("<failure" in case or "<error" in case for case in cases)
        shown = cases or ['<testcase name="no finding" classname="resourcesync"/>']
        head = f'name="{_junit_attribute(place)}" tests="{len(shown)}" failures="{failed}"'
        lines += [f"<testsuite {head}>", *shown, "</testsuite>"]
    return "\n".join([*lines, "</testsuites>"])


def _junit_limit_case(event: CutShort, *, fails: bool) -> str:
    text = cut_short_message(event)
    body = f"<system-out>{_junit_text(text)}</system-out>"
    if fails:
        body = f'<failure type="warning" message="{_junit_attribute(text)}"/>'
    return f'<testcase name="cut-short" classname="resourcesync">{body}</testcase>'


def _junit_case(finding: RuleFinding, *, fails: bool) -> str:
    rule = finding.rule
    name = f"{rule.code} line {finding.line}" if finding.line else rule.code
    text = _junit_text("\n".join(finding_lines(finding_fields(finding))))
    head = f'<testcase name="{_junit_attribute(name)}" classname="{rule.code}">'
    if fails:
        kind = finding.severity.value
        message = _junit_attribute(finding.message)
        body = f'<failure type="{kind}" message="{message}">{text}</failure>'
    else:
        body = f"<system-out>{text}</system-out>"
    return f"{head}{body}</testcase>"


def _junit_text(text: str) -> str:
    return escape(_ILLEGAL_XML.sub("�", text), quote=False)


def _junit_attribute(text: str) -> str:
    return escape(_ILLEGAL_XML.sub("�", text)).replace("\n", "&#10;").replace("\t", "&#9;")
