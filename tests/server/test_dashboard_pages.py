"""The pages for operators: whatever a Source writes, it is text in them and nothing else."""

import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from resourcesync.destination.audits.reports import AuditReport
from resourcesync.destination.reports import MirrorState
from resourcesync.model import formatting
from resourcesync.server.dashboard.detail_pages import (
    audits_page,
    events_page,
    missing_page,
    resource_page,
    run_page,
)
from resourcesync.server.dashboard.layout import RANGES
from resourcesync.server.dashboard.markup import tag
from resourcesync.server.dashboard.mirror_page import mirror_page
from resourcesync.server.dashboard.source_page import (
    explore_page,
    explored_page,
    source_page,
    sources_page,
    validating_page,
)
from resourcesync.server.dashboard.timeline import timeline
from resourcesync.server.dashboard.views import (
    EndedAudit,
    EndedRun,
    ExplainedResource,
    ExplorableSource,
    ValidationStatus,
)
from resourcesync.server.metrics import Metric
from tests.support.dashboard_values import (
    NOW,
    Seen,
    brief,
    detail,
    explored,
    overview,
    ran,
    source,
    validated,
)

_NAMES = """
a body button circle code dd defs details div dl dt figcaption figure footer form g h1 h2 head
header html i input label li line link main meta nav noscript p path pattern rect script section
span strong summary svg table tbody td text th thead time title tr ul
"""
TAGS = frozenset(_NAMES.split())


def ended(text: str, *, is_good: bool = False) -> EndedRun:
    return EndedRun(time=NOW, mirror=text, kind=text, word=text, is_good=is_good, text=text)


HOSTILE = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "</title><script>alert(1)</script>",
            '"><img src=x onerror=alert(1)>',
            "' onmouseover='alert(1)",
            "javascript:alert(1)",
            "http://x/]]><svg onload=alert(1)>",
            "\ud800\u202eevil\x00\x1b[2J\n",
            "http://[::1]/\"'&lt;&amp;",
        ]
    ),
)


PAGES: tuple[Callable[[str], str], ...] = (
    lambda text: overview([brief(text), replace(brief(text), error=text or "x")], text=text),
    *(lambda text, found=found: mirror_page(detail(text), found) for found in RANGES),
    lambda text: resource_page(
        text,
        ExplainedResource(uri=text, lines=((text, text),), history=detail(text).changes),
        NOW,
    ),
    lambda text: run_page(text, ran(text), NOW),
    lambda text: run_page(text, ran(text, good=False), NOW),
    lambda text: audits_page(
        [EndedAudit(mirror=text, ended=NOW, method=text, report=AuditReport(run=text, at=NOW))],
        NOW,
    ),
    lambda text: events_page([ended(text), ended(text)], NOW),
    lambda text: missing_page(text, NOW),
    lambda text: source_page(source(text)),
    lambda text: validating_page(validated(text)),
    lambda text: sources_page([ExplorableSource(name=text, kind=text, address=text)], NOW),
    lambda text: explore_page(explored(text)),
    lambda text: explored_page(explored(text)),
)


NEVER_SHOWN = re.compile("[\x00-\x09\x0b-\x1f\ud800-\udfff\u202e]")


@settings(max_examples=20)
@given(HOSTILE)
def test_what_a_source_writes_is_text_in_every_page(text: str) -> None:
    for number, make in enumerate(PAGES):
        page = make(text)
        seen = Seen(page)
        assert seen.tags <= TAGS
        assert not {name for name in seen.attributes if name.startswith("on") or name == "style"}
        assert seen.scripts == ["live.js"], number
        ours = ("./", "mirror?", "resource?", "run?", "audit?", "explore?", "data:,", "#content")
        exact = {"audits", "events", "style.css", "resource", "metrics", "explore"}
        exact |= {"events?only=problems"}
        exact |= {"validate", "validate?again=1"}
        for place in seen.addresses - exact:
            is_source = place == formatting.escape(text) and text.startswith(
                ("http://", "https://")
            )
            assert place.startswith(ours) or is_source
        assert not NEVER_SHOWN.search(page)


@given(HOSTILE)
def test_markup_says_exactly_the_text_that_was_given(text: str) -> None:
    made = tag("p", text, title=text)
    parsed = ET.fromstring(made)
    assert (parsed.text or "", parsed.get("title")) == (formatting.escape(text),) * 2


def elements(picture: str, name: str) -> list[ET.Element]:
    return list(ET.fromstring(picture).iter(name))


def test_each_change_is_joined_to_the_pull_that_brought_it() -> None:
    figure = timeline(detail("museum"))
    lines = [element for element in elements(figure, "line") if element.get("class") == "join"]
    assert len(lines) == 2
    left, right = 128, 1120 - 14
    made, came = (left + (right - left) * part / 24 for part in (21, 23))
    ends = {(line.get("x1"), line.get("x2")) for line in lines}
    assert ends == {(f"{made:.1f}", f"{came:.1f}"), (f"{came:.1f}", f"{came:.1f}")}
    titles = [element.text or "" for element in elements(figure, "title")]
    assert "1 resource created 2026-11-21 12:00:00Z; applied after 2 h 0 min" in titles
    assert any(title.startswith("Pending, made 2026-11-21 14:00:00Z") for title in titles)
    assert any("failed: museum" in title for title in titles)
    opened = [
        element for element in elements(figure, "rect") if element.get("fill") == "url(#open)"
    ]
    assert [element.get("x") for element in opened] == [f"{left + (right - left) * 19 / 24:.1f}"]


def test_the_page_of_a_source_tells_its_changes_its_subscribers_and_what_was_judged() -> None:
    page = source_page(source("https://museum.example"))
    assert "created: 3</title>" in page
    assert "updated: 2</title>" in page
    words = ("delivery pending", "3 deliveries failed", "up to date", "And 4 others.")
    assert [word for word in words if word not in page] == []
    assert ">errors<" in page
    assert "Subscribers" not in source_page(replace(source("x"), subscribers=None))
    received = Metric(
        name="x_bytes_total",
        kind="counter",
        help_text="Received; or not.",
        values=(((), 8_558_623),),
    )
    figures = "".join(Seen(source_page(replace(source("x"), figures=(received,)))).texts)
    assert "Received8.6 MB" in figures
    assert "There are no subscribers." in source_page(replace(source("x"), subscribers=()))

    def judged(**told: Any) -> str:
        return "".join(Seen(validating_page(ValidationStatus(now=NOW, **told))).texts)

    assert "Not validated since" in judged()
    assert "being validated: 2 documents so far. Reload" in judged(is_running=True, documents=2)
    good = judged(ended=NOW, summary="all well", is_good=True)
    assert "no error all well" in good
    assert "The findings" in good
    assert "have changed since" in judged(ended=NOW, is_stale=True)
    assert "The findings" not in judged(ended=NOW, error="It ended.")


def test_copies_that_the_source_lists_no_more_are_not_called_listed() -> None:
    held = ran("a")
    assert held.report is not None
    report = replace(held.report, state=MirrorState.STOPPED, listed=100, held=400, created=0)
    before = detail("museum")
    status = replace(
        before.summary.status,
        state=MirrorState.STOPPED,
        resources=500,
        pending=0,
        outdated=0,
        held=400,
    )
    museum = replace(before.summary, status=status)
    page = mirror_page(replace(before, summary=museum, runs=(replace(held, report=report),)))
    texts = Seen(page).texts

    assert "500 listed" not in page
    assert "100 listed" in texts
    assert "20 %" in texts
    assert "400 deletions held" in texts
    assert "in sync: 20 %</title>" in page
    assert "stopped; 400 deletions held" in page
