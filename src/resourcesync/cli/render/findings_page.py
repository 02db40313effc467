"""Findings of ``validate`` as a self-contained page, for the server's operators."""

from collections.abc import Sequence
from typing import Final

from resourcesync.cli.formatting import clause_of, counted
from resourcesync.cli.render.validate import ValidationTally, cut_short_message
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
from resourcesync.validator.rule import AppliedRules, RuleFinding
from resourcesync.validator.sample import Unreached

_STYLE: Final = """
section { margin-top: 2rem; } h2 { overflow-wrap: anywhere; }
article { border-left: .3rem solid var(--muted); padding: .1rem 0 .1rem 1rem; margin: 1rem 0; }
article.error { border-color: var(--bad); } article.warning { border-color: var(--warn); }
mark { background: #ffd54f; color: #000; }
"""


def findings_page(events: Sequence[ValidationEvent], tally: ValidationTally) -> str:
    """Return the findings as an HTML page, by document."""
    sections, titles = _sections(events)
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
        style=_STYLE,
    )


def _sections(
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
                sections.setdefault(event.uri, []).append(_article(event))
            case Unreached():
                article = _note("error", f"{event.error.code}: {event.error.message}")
                sections.setdefault(event.uri, []).append(article)
            case CutShort():
                sections.setdefault(event.uri, []).append(
                    _note("warning", cut_short_message(event))
                )
            case AppliedRules() | Sampled() | StandaloneDocument() | Unopened():
                pass  # the title has the number
    return sections, titles


def _note(kind: str, text: str) -> Markup:
    return tag("article", tag("p", text), class_=kind)


def _article(finding: RuleFinding) -> Markup:
    rule = finding.rule
    place = f"line {finding.line}, column {finding.column}: " if finding.line else ""
    severity = finding.severity.value
    return tag(
        "article",
        tag("p", tag("strong", f"{rule.code} {severity}"), f" {place}{finding.message}"),
        tag("pre", _excerpt(finding), tabindex="0") if finding.excerpt else None,
        tag("p", f"{rule.sentence} ({clause_of(rule.clause)})"),
        tag("p", f"Fix: {rule.fix}"),
        class_=severity,
    )


def _excerpt(finding: RuleFinding) -> Piece:
    """Return the line at fault with the fault marked."""
    text, start = finding.excerpt, finding.excerpt_column - 1
    if start < 0:
        return text
    end = start + max(finding.length, 1)
    return text[:start], tag("mark", text[start:end]), text[end:]
