"""Findings as one HTML page that needs nothing else: no script, no font, no request."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from resourcesync.cli.rule import clause_of
from resourcesync.cli.validate_words import ValidationTally, cut_short_message
from resourcesync.validator.findings import RuleFinding
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

_HTML_STYLE: Final = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1rem; overflow-wrap: anywhere; margin-top: 2rem; }
article { border-left: .3rem solid #888; padding: .1rem 0 .1rem 1rem; margin: 1rem 0; }
article.error { border-color: #c62828; } article.warning { border-color: #b26a00; }
pre { overflow-x: auto; background: #8881; padding: .5rem; margin: .3rem 0; }
mark { background: #ffd54f; color: #000; } p { margin: .3rem 0; overflow-wrap: anywhere; }
.none { color: #2e7d32; }
@media (prefers-color-scheme: dark) { .none { color: #81c784; } }
"""


def html_page(events: Sequence[ValidationEvent], tally: ValidationTally) -> str:
    """Return the findings as a page, document by document."""
    return "\n".join(_html_lines(events, tally))


def _html_lines(events: Sequence[ValidationEvent], tally: ValidationTally) -> Iterator[str]:
    sections, titles = _html_sections(events)
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>ResourceSync: findings</title>\n<style>{_HTML_STYLE}</style>"
    yield "</head>\n<body>\n<main>"
    yield f"<h1>{escape(tally.sentence())}</h1>"
    for place, articles in sections.items():
        yield f"<section>\n<h2>{escape(place)}</h2>"
        if place in titles:
            yield f"<p>{escape(titles[place])}</p>"
        yield from articles or ['<p class="none">No finding.</p>']
        yield "</section>"
    yield "</main>\n</body>\n</html>"


def _html_sections(
    events: Sequence[ValidationEvent],
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the articles of each place, and what stands above them."""
    sections: dict[str, list[str]] = {}
    titles: dict[str, str] = {}
    for event in events:
        match event:
            case Judged(summary, place):
                titles[place] = f"{summary.phrase}, {summary.entries:,} entries"
                sections.setdefault(place, [])
            case Heard(place, kind):
                titles[place] = kind
                sections.setdefault(place, [])
            case RuleFinding():
                sections.setdefault(event.uri, []).append("\n".join(_html_article(event)))
            case Unreached():
                article = _html_note("error", f"{event.error.code}: {event.error.message}")
                sections.setdefault(event.uri, []).append(article)
            case CutShort():
                sections.setdefault(event.uri, []).append(
                    _html_note("warning", cut_short_message(event))
                )
            case Sampled() | ReadAgain() | StandaloneDocument() | Unopened():
                pass  # the title has the number
    return sections, titles


def _html_note(kind: str, text: str) -> str:
    return f'<article class="{kind}"><p>{escape(text)}</p></article>'


def _html_article(finding: RuleFinding) -> Iterator[str]:
    rule = finding.rule
    place = f"line {finding.line}, column {finding.column}: " if finding.line else ""
    yield f'<article class="{finding.severity.value}">'
    yield (
        f"<p><strong>{rule.code} {finding.severity.value}</strong>"
        f" {place}{escape(finding.message)}</p>"
    )
    if finding.excerpt:
        yield f'<pre tabindex="0">{_html_excerpt(finding)}</pre>'
    yield f"<p>{escape(rule.sentence)} ({escape(clause_of(rule.clause))})</p>"
    yield f"<p>Fix: {escape(rule.fix)}</p>\n</article>"


def _html_excerpt(finding: RuleFinding) -> str:
    """Return the line at fault with the fault marked."""
    start = finding.excerpt_column - 1
    if start < 0:
        return escape(finding.excerpt)
    end = start + max(finding.length, 1)
    before, fault, after = (
        escape(part)
        for part in (finding.excerpt[:start], finding.excerpt[start:end], finding.excerpt[end:])
    )
    return f"{before}<mark>{fault}</mark>{after}"
