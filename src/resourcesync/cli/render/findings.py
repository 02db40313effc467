"""Findings of ``validate`` as a self-contained HTML page, SARIF 2.1.0, JUnit or GitHub commands."""

import re
import sys
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, Final, Protocol
from urllib.parse import quote

import msgspec

from resourcesync import __version__
from resourcesync.cli.formatting import clause_of, counted
from resourcesync.cli.output import write_line
from resourcesync.cli.render.validate import (
    ValidationTally,
    cut_short_message,
    failing_severities,
    finding_fields,
    finding_lines,
)
from resourcesync.server.dashboard.layout import report_page
from resourcesync.server.dashboard.markup import Markup, Piece, tag
from resourcesync.validator.events import (
    CutShort,
    Judged,
    Sampled,
    StandaloneDocument,
    Unopened,
    ValidationEvent,
)
from resourcesync.validator.rule import AppliedRules, Rule, RuleFinding, Severity
from resourcesync.validator.sample import Unreached

_HTML_STYLE: Final = """
section { margin-top: 2rem; } h2 { overflow-wrap: anywhere; }
article { border-left: .3rem solid var(--muted); padding: .1rem 0 .1rem 1rem; margin: 1rem 0; }
article.error { border-color: var(--bad); } article.warning { border-color: var(--warn); }
mark { background: #ffd54f; color: #000; }
"""


def html_page(events: Sequence[ValidationEvent], tally: ValidationTally) -> str:
    """Return the findings as an HTML page, by document."""
    sections, titles = _html_sections(events)
    return report_page(
        "Findings",
        tag("h1", tally.sentence()),
        [
            tag(
                "section",
                tag("h2", place),
                tag("p", titles[place]) if place in titles else None,
                articles or tag("p", "No finding.", class_="muted"),
            )
            for place, articles in sections.items()
        ],
        style=_HTML_STYLE,
    )


def _html_sections(
    events: Sequence[ValidationEvent],
) -> tuple[dict[str, list[Markup]], dict[str, str]]:
    """Return the articles and the titles of each document."""
    sections: dict[str, list[Markup]] = {}
    titles: dict[str, str] = {}
    for event in events:
        match event:
            case Judged(summary, place):
                titles[place] = f"{summary.phrase}, {counted(summary.entries, 'entry', 'entries')}"
                sections.setdefault(place, [])
            case RuleFinding():
                sections.setdefault(event.uri, []).append(_html_article(event))
            case Unreached():
                article = _html_note("error", f"{event.error.code}: {event.error.message}")
                sections.setdefault(event.uri, []).append(article)
            case CutShort():
                sections.setdefault(event.uri, []).append(
                    _html_note("warning", cut_short_message(event))
                )
            case AppliedRules() | Sampled() | StandaloneDocument() | Unopened():
                pass  # the title has the number
    return sections, titles


def _html_note(kind: str, text: str) -> Markup:
    return tag("article", tag("p", text), class_=kind)


def _html_article(finding: RuleFinding) -> Markup:
    rule = finding.rule
    place = f"line {finding.line}, column {finding.column}: " if finding.line else ""
    severity = finding.severity.value
    return tag(
        "article",
        tag("p", tag("strong", f"{rule.code} {severity}"), f" {place}{finding.message}"),
        tag("pre", _html_excerpt(finding), tabindex="0") if finding.excerpt else None,
        tag("p", f"{rule.sentence} ({clause_of(rule.clause)})"),
        tag("p", f"Fix: {rule.fix}"),
        class_=severity,
    )


def _html_excerpt(finding: RuleFinding) -> Piece:
    """Return the line at fault with the fault marked."""
    text, start = finding.excerpt, finding.excerpt_column - 1
    if start < 0:
        return text
    end = start + max(finding.length, 1)
    return text[:start], tag("mark", text[start:end]), text[end:]


_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_SARIF_LEVELS: Final = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.ADVICE: "note",
}


def sarif_log(events: Sequence[ValidationEvent], tally: ValidationTally) -> str:
    """Return the findings as a SARIF log of one run."""
    findings = [event for event in events if isinstance(event, RuleFinding)]
    rules = {finding.rule.code: finding.rule for finding in findings}
    indexes = {code: index for index, code in enumerate(rules)}
    failures = [_sarif_notification(event) for event in events if isinstance(event, Unreached)]
    limits = [_sarif_limit(event) for event in events if isinstance(event, CutShort)]
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "resourcesync",
                "version": __version__,
                "rules": [_sarif_rule(rule) for rule in rules.values()],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not failures,
                "toolExecutionNotifications": [*failures, *limits],
            }
        ],
        "results": [_sarif_result(finding, indexes[finding.rule.code]) for finding in findings],
        "properties": {"summary": tally.sentence()},
    }
    log = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log), indent=1).decode()


def _sarif_rule(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.code,
        "name": rule.id,
        "shortDescription": {"text": rule.sentence},
        "fullDescription": {"text": f"{rule.sentence} {rule.why}"},
        "help": {"text": f"{rule.fix} ({clause_of(rule.clause)})"},
        "defaultConfiguration": {"level": _SARIF_LEVELS[rule.severity]},
        "properties": {"level": rule.level.value, "document": rule.document},
    }


def _sarif_result(finding: RuleFinding, index: int) -> dict[str, object]:
    location: dict[str, object] = {"artifactLocation": {"uri": uri_reference(finding.uri)}}
    if finding.line:
        region: dict[str, object] = {"startLine": finding.line}
        if finding.column:
            region["startColumn"] = finding.column
            region["endColumn"] = finding.column + max(finding.length, 1)
        if finding.excerpt:
            region["snippet"] = {"text": _valid_unicode(finding.excerpt)}
        location["region"] = region
    return {
        "ruleId": finding.rule.code,
        "ruleIndex": index,
        "level": _SARIF_LEVELS[finding.severity],
        "message": {"text": _valid_unicode(finding.message)},
        "locations": [{"physicalLocation": location}],
    }


def _sarif_limit(event: CutShort) -> dict[str, object]:
    location = {"physicalLocation": {"artifactLocation": {"uri": uri_reference(event.uri)}}}
    return {
        "level": "warning",
        "descriptor": {"id": "cut-short"},
        "message": {"text": _valid_unicode(cut_short_message(event))},
        "locations": [location],
    }


def _sarif_notification(event: Unreached) -> dict[str, object]:
    location = {"physicalLocation": {"artifactLocation": {"uri": uri_reference(event.uri)}}}
    return {
        "level": "error",
        "descriptor": {"id": event.error.code},
        "message": {"text": _valid_unicode(event.error.message)},
        "locations": [location],
    }


def uri_reference(uri: str) -> str:
    """Return an address, or the path of a file, as a URI reference for SARIF."""
    safe = "/:?#[]@!$&'()*+,;=%~" if "://" in uri else "/~"
    return quote(uri, safe=safe, errors="replace")


def _valid_unicode(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


MOST_FINDINGS: Final = 10_000
"""Most findings in one document of findings; the counts are complete."""
_ILLEGAL_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_GITHUB_COMMANDS: Final = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.ADVICE: "notice",
}


class FindingsWriter(Protocol):
    """A writer of events to stdout, in one format."""

    def add(self, event: ValidationEvent) -> None:
        """Accept an event."""

    def end(self, tally: ValidationTally) -> None:
        """Write the rest."""


def open_findings_writer(name: str, *, fail_on: str) -> FindingsWriter:
    """Return the writer of a format: ``github``, ``sarif``, ``junit`` or ``html``."""
    if name == "github":
        return GithubFindingsWriter()
    render: dict[str, Callable[[Sequence[ValidationEvent], ValidationTally], str]] = {
        "sarif": sarif_log,
        "html": html_page,
        "junit": lambda events, tally: junit_suites(events, tally, fail_on=fail_on),
    }
    return WholeFindingsWriter(render[name])


class WholeFindingsWriter:
    """A writer that stores the first findings and writes them as one document.

    Args:
        render: Returns the document.
    """

    def __init__(self, render: Callable[[Sequence[ValidationEvent], ValidationTally], str]) -> None:
        self._render = render
        self._events: list[ValidationEvent] = []

    def add(self, event: ValidationEvent) -> None:
        """Store an event."""
        if len(self._events) < MOST_FINDINGS or isinstance(event, CutShort):
            self._events.append(event)

    def end(self, tally: ValidationTally) -> None:
        """Write the document."""
        write_line(sys.stdout, self._render(self._events, tally))


class GithubFindingsWriter:
    """A writer of one workflow command for each finding."""

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
        """Write the summary, for the log."""
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

    Findings below ``fail_on`` are tests that pass, with the finding as their output.
    """
    suites: dict[str, list[str]] = {}
    failures = 0
    for event in events:
        match event:
            case Judged(_, place):
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
            case AppliedRules() | Sampled() | StandaloneDocument() | Unopened():
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
