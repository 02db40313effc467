"""The page of findings that ``serve`` shows its operators."""

import re

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.cli.render.serve_pages import findings_page
from resourcesync.cli.render.validate import ValidationTally
from resourcesync.errors import ResourceMissingError
from resourcesync.validator.events import CutShort, Judged, ValidationEvent
from resourcesync.validator.rule import RULES, RuleFinding
from resourcesync.validator.sample import Unreached
from resourcesync.validator.summaries import DocumentSummary

TEXTS = st.text(max_size=40)
FINDINGS = st.builds(
    RuleFinding,
    rule=st.sampled_from(list(RULES.values())),
    uri=TEXTS,
    message=TEXTS,
    line=st.integers(0, 3),
    column=st.integers(0, 30),
    length=st.integers(0, 30),
    excerpt=TEXTS,
    excerpt_column=st.integers(0, 30),
)
EVENTS = st.lists(
    FINDINGS
    | TEXTS.map(lambda name: Judged(DocumentSummary(uri=name, label=name), name))
    | TEXTS.map(lambda name: Unreached(uri=name, error=ResourceMissingError(name, uri=name)))
    | TEXTS.map(lambda name: CutShort(name, 3)),
    max_size=5,
)


def tally(events: list[ValidationEvent]) -> ValidationTally:
    found = ValidationTally(fail_on="error")
    for event in events:
        found.add(event)
    return found


def test_the_page_needs_nothing_from_anywhere_and_marks_the_fault() -> None:
    rule = RULES["G13a"]
    finding = RuleFinding(
        rule=rule, uri="a.xml", message="m", line=3, excerpt="<loc>x</loc>", excerpt_column=6
    )

    page = findings_page([finding], tally([finding]))

    assert page.startswith("<!doctype html>")
    assert not re.search(r"<(script|link|img|iframe)\b|url\(|@import|src=", page)
    assert "<mark>x</mark>" in page
    assert page.count("<main ") == page.count("</main>") == 1
    assert '<pre tabindex="0">' in page  # scrolled by keys too
    assert rule.code in page


@given(EVENTS)
def test_the_page_shows_texts_and_never_runs_them(events: list[ValidationEvent]) -> None:
    page = findings_page(events, tally(events))

    tags = set(re.findall(r"<([a-zA-Z0-9]+)", page))
    assert tags <= {
        *("html", "head", "meta", "title", "style", "body", "main", "footer", "h1", "h2"),
        *("section", "article", "p", "strong", "pre", "mark"),
    }


def test_a_script_in_a_document_is_text_on_the_page() -> None:
    rule = RULES["G01"]
    finding = RuleFinding(rule=rule, uri="<script>", message="<img src=x>", excerpt="<b onload=x>")

    page = findings_page([finding], tally([finding]))

    assert "<script>" not in page
    assert "<img" not in page
    assert "<b " not in page
