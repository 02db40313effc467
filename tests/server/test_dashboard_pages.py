"""The pages for operators: whatever a Source writes, it is text in them and nothing else."""

import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from resourcesync.destination.reports import ListedCounts, MirrorState
from resourcesync.model import formatting
from resourcesync.server.dashboard.layout import missing_page
from resourcesync.server.dashboard.markup import tag
from resourcesync.server.dashboard.mirror_page import mirror_page
from resourcesync.server.dashboard.source_page import source_page
from tests.support.dashboard_values import HOUR, NOW, Seen, brief, detail, overview, ran, source

_NAMES = """
a body button code dd details div dl dt footer form h1 h2 head header html input label li link main
meta nav p section span strong summary table tbody td th thead time title tr ul
"""
TAGS = frozenset(_NAMES.split())
HOSTILE = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            *("</title><script>alert(1)</script>", '"><img src=x onerror=alert(1)>'),
            *("' onmouseover='alert(1)", "javascript:alert(1)"),
            *("http://x/]]><svg onload=alert(1)>", "\ud800\u202eevil\x00\x1b[2J\n"),
            "http://[::1]/\"'&lt;&amp;",
        ]
    ),
)
PAGES: tuple[Callable[[str], str], ...] = (
    lambda text: overview([brief(text), replace(brief(text), error=text or "x")], text=text),
    lambda text: mirror_page(detail(text), can_act=True),
    lambda text: missing_page(text, text, NOW),
    lambda text: source_page(source(text)),
)
NEVER_SHOWN = re.compile("[\x00-\x09\x0b-\x1f\ud800-\udfff\u202e]")


@settings(max_examples=20)
@given(HOSTILE)
def test_what_a_source_writes_is_text_in_every_page(text: str) -> None:
    for make in PAGES:
        page = make(text)
        seen = Seen(page)
        assert seen.tags <= TAGS
        assert not {name for name in seen.attributes if name.startswith("on") or name == "style"}
        for place in seen.addresses - {"style.css", "metrics", "act"}:
            is_source = place == formatting.escape(text) and text.startswith(
                ("http://", "https://")
            )
            assert place.startswith(("./", "mirror?", "data:,")) or is_source
        assert not NEVER_SHOWN.search(page)


@given(HOSTILE)
def test_markup_says_exactly_the_text_that_was_given(text: str) -> None:
    made = tag("p", text, title=text)
    parsed = ET.fromstring(made)
    assert (parsed.text or "", parsed.get("title")) == (formatting.escape(text),) * 2


def test_the_page_of_a_source_shows_its_subscribers_and_how_their_deliveries_are() -> None:
    page = source_page(source("https://museum.example"))
    words = ("delivery pending", "3 deliveries failed", "up to date", "And 4 others.")
    assert [word for word in words if word not in page] == []
    assert "Subscribers" not in source_page(replace(source("x"), subscribers=None))
    assert "There are no subscribers." in source_page(replace(source("x"), subscribers=()))


def test_pulls_with_the_same_result_in_a_row_are_one_row() -> None:
    runs = [ran("ok", hours=hours) for hours in (1, 2, 3)]
    runs += [ran("http", hours=4, good=False), ran("ok", hours=5, updated=7)]
    texts = "".join(Seen(mirror_page(replace(detail("m"), runs=tuple(runs)))).texts)

    first = formatting.moment(NOW - 3 * HOUR)
    assert f"nothing new; 3 times since {first}" in texts
    assert "http: http" in texts
    assert "7 updated" in texts


def test_held_deletions_are_called_so_and_never_listed() -> None:
    before = detail("museum")
    status = replace(
        before.summary.status,
        state=MirrorState.STOPPED,
        resources=500,
        listed=ListedCounts(unchanged=100),
        held=400,
    )
    museum = replace(before.summary, seen=before.summary.seen._replace(status=status))
    texts = Seen(mirror_page(replace(before, summary=museum))).texts
    assert "100 listed" in texts
    assert "20 %" in texts
    assert "400 deletions held" in texts
    assert {"deletion", "when it is released"} <= set(texts)
    assert "Release" not in texts
    assert "Release" in Seen(mirror_page(replace(before, summary=museum), can_act=True)).texts
    assert ">400 deletions held</td>" in overview([museum])
    more = replace(status, listed=ListedCounts(unchanged=100, pending=3))
    both = replace(museum, seen=museum.seen._replace(status=more))
    assert ">3, 400 deletions held</td>" in overview([both])
