"""Findings as one HTML page that needs nothing else: no script, no font, no request."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from resourcesync.cli.rule import clause_of
from resourcesync.cli.validate_words import Tally, cut_short
from resourcesync.validator.findings import Finding
from resourcesync.wiring.sampling import Unreached
from resourcesync.wiring.validating import (
    Alone,
    CutShort,
    Event,
    Heard,
    Judged,
    ReadAgain,
    Sampled,
    Unopened,
)

_STYLE: Final = """
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


def html_page(events: Sequence[Event], tally: Tally) -> str:
    """Return the findings as a page, document by document."""
    return "\n".join(_page(events, tally))


def _page(events: Sequence[Event], tally: Tally) -> Iterator[str]:
    sections, titles = _sections(events)
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>ResourceSync: findings</title>\n<style>{_STYLE}</style>"
    yield "</head>\n<body>\n<main>"
    yield f"<h1>{escape(tally.sentence())}</h1>"
    for place, articles in sections.items():
        yield f"<section>\n<h2>{escape(place)}</h2>"
        if place in titles:
            yield f"<p>{escape(titles[place])}</p>"
        yield from articles or ['<p class="none">No finding.</p>']
        yield "</section>"
    yield "</main>\n</body>\n</html>"


def _sections(events: Sequence[Event]) -> tuple[dict[str, list[str]], dict[str, str]]:
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
            case Finding():
                sections.setdefault(event.uri, []).append("\n".join(_article(event)))
            case Unreached():
                article = _brief("error", f"{event.error.code}: {event.error.message}")
                sections.setdefault(event.uri, []).append(article)
            case CutShort():
                sections.setdefault(event.uri, []).append(_brief("warning", cut_short(event)))
            case Sampled() | ReadAgain() | Alone() | Unopened():
                pass  # the title has the number
    return sections, titles


def _brief(kind: str, text: str) -> str:
    return f'<article class="{kind}"><p>{escape(text)}</p></article>'


def _article(finding: Finding) -> Iterator[str]:
    rule = finding.rule
    place = f"line {finding.line}, column {finding.column}: " if finding.line else ""
    yield f'<article class="{finding.severity.value}">'
    yield (
        f"<p><strong>{rule.code} {finding.severity.value}</strong>"
        f" {place}{escape(finding.message)}</p>"
    )
    if finding.excerpt:
        yield f'<pre tabindex="0">{_marked(finding)}</pre>'
    yield f"<p>{escape(rule.sentence)} ({escape(clause_of(rule.clause))})</p>"
    yield f"<p>Fix: {escape(rule.fix)}</p>\n</article>"


def _marked(finding: Finding) -> str:
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
