"""The pages for operators: whatever a Source writes, it is text in them and nothing else."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree as ET

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from resourcesync.cli.remedies import with_command
from resourcesync.destination.audits.reports import AuditReport
from resourcesync.destination.reports import FailedRun, MirrorState, MirrorStatus
from resourcesync.errors import Remedy
from resourcesync.model import formatting
from resourcesync.server.dashboard.charts import days_between, integer_marks, rounded_marks, spark
from resourcesync.server.dashboard.detail_pages import (
    audits_page,
    events_page,
    missing_page,
    resource_page,
    run_page,
)
from resourcesync.server.dashboard.layout import RANGES, STYLE
from resourcesync.server.dashboard.markup import Markup, address, join_markup, tag
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
    AppliedChange,
    EndedAudit,
    EndedRun,
    ExplainedResource,
    ExplorableSource,
    PushStatus,
    ValidationStatus,
)
from resourcesync.server.metrics import Metric
from tests.support.dashboard_values import (
    HOUR,
    NOW,
    Seen,
    brief,
    detail,
    explored,
    overview,
    pushed,
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
    lambda text: run_page(text, ran(text), NOW, with_command),
    lambda text: run_page(text, ran(text, good=False), NOW, with_command),
    lambda text: audits_page(
        [EndedAudit(mirror=text, ended=NOW, method=text, report=AuditReport(run=text, at=NOW))],
        NOW,
        with_command,
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


def test_markup_is_not_escaped_twice_and_nothing_is_nothing() -> None:
    inner = tag("b", "<")
    assert join_markup(inner, None, ["&", 3]) == "<b>&lt;</b>&amp;3"
    assert isinstance(inner, Markup)
    assert tag("a", data_x=None, for_="y", x=1.0) == '<a for="y" x="1"></a>'
    assert address("run", name="a b&c=\udcff") == "run?name=a+b%26c%3D%ED%B3%BF"


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


def test_every_mark_says_its_value_and_a_table_has_all_of_them() -> None:
    page = mirror_page(detail("museum"))
    assert "created: 1</title>" in page
    assert page.count("<summary>") == 5
    assert "2 h 0 min</td>" in page
    assert 'aria-label="Changes: 1, 0, 5"' in spark((1, 0, 5), "Changes")


def _text(markup: str) -> str:
    return "".join(Seen(markup).texts)


def test_the_next_pull_is_shown_where_it_is_known() -> None:
    moment = datetime(2026, 11, 21, 13, 45, tzinfo=UTC)
    waits = replace(brief("museum"), next_pull="13:45:00Z (retry 1)", next_at=moment)
    page = overview([waits, brief("other")])
    cells = [name.partition("</td>")[0] for name in page.split('data-label="Next pull">')[1:]]
    assert sorted(map(_text, cells)) == ["-", "13:45:00Z (retry 1)"]
    assert "Next pull" not in overview([brief("other")])

    known = mirror_page(replace(detail("museum"), summary=waits))
    assert "next pull: 13:45:00Z (retry 1)" in _text(known)
    assert "next pull:" not in mirror_page(detail("museum"))


def test_what_is_worst_of_a_mirrors_subscriptions_stands_in_the_list_of_mirrors() -> None:
    def cell(push: PushStatus | None) -> str:
        page = overview([replace(brief("museum"), push=push), brief("other")])
        return page.partition('data-label="Push">')[2].partition("</td>")[0]

    assert cell(pushed("x")) == '<span class="state bad">refused</span>'
    assert cell(None) == "-"
    assert "not offered" in cell(PushStatus(is_known=True))
    assert "not yet" in cell(PushStatus())
    without = overview([replace(brief("museum"), push=None)])
    assert ">Push<" not in without
    card = mirror_page(detail("museum")).partition("<h2>Notifications</h2>")[2]
    assert "Refused: 2 without a valid signature." in card
    assert "5 sent to a former callback" in card
    assert "1 h ago" in card


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


def test_each_document_hangs_below_the_one_that_lists_it() -> None:
    page = explore_page(replace(explored("http://x.example/"), notes=(), summary=""))
    tree = ET.fromstring(page.partition("<h2>Documents</h2>")[2].partition("</section>")[0])

    def depths(list_: ET.Element) -> list[object]:
        found: list[object] = []
        for item in list_.findall("li"):
            below = item.find("ul")
            found.append([] if below is None else depths(below))
        return found

    assert depths(tree) == [[[[], [[]]], [], [], []]]
    assert page.count("<summary>Details</summary>") == 7


def test_an_operator_sees_the_command_of_the_next_step() -> None:
    failed = FailedRun(
        code="rollback", hint="read its whole list", remedy=Remedy("baseline", target="./docs")
    )

    after_failure = run_page(
        "docs", replace(ran("x", good=False), failed=failed), NOW, with_command
    )
    without_audit = audits_page([], NOW, with_command)

    assert "<code>resourcesync pull ./docs --mode baseline</code>" in after_failure
    assert "<code>resourcesync audit MIRROR</code>" in without_audit


def test_the_worst_mirror_comes_first() -> None:
    words = (MirrorState.IN_SYNC, MirrorState.STOPPED, MirrorState.BEHIND, MirrorState.FAILING)
    found = [
        replace(brief(""), status=MirrorStatus(folder=f"m-{word.value}", source="", state=word))
        for word in words
    ]
    late = replace(found[2], lag=None, status=replace(found[2].status, folder="m-later"))
    lost = replace(found[0], error="lost", status=replace(found[0].status, folder="m-lost"))
    texts = Seen(overview([*found, late, lost])).texts
    names = [text for text in texts if text.startswith("m-")]
    assert names == ["m-lost", "m-stopped", "m-failing", "m-later", "m-behind", "m-in sync"]
    counts = ("all 6", "3 problems", "1 cannot be read", "1 stopped", "1 failing", "2 behind")
    assert tuple(text for text in texts if text in counts) == counts


@given(st.floats(min_value=1e-9, max_value=1e15))
def test_an_axis_reaches_its_greatest_value_in_few_round_steps(most: float) -> None:
    marks = rounded_marks(most)
    assert marks[0] == 0
    assert marks[-1] >= most * (1 - 1e-6)
    assert 2 <= len(marks) <= 6


@given(st.integers(min_value=1, max_value=10**12))
def test_an_axis_of_things_that_are_counted_has_whole_marks(most: int) -> None:
    marks = integer_marks(most)
    assert marks == [float(int(mark)) for mark in marks]
    assert marks[-1] >= most
    assert 2 <= len(marks) <= 6


@given(
    st.datetimes(timezones=st.just(UTC)).filter(lambda moment: 1 < moment.year < 9_999),
    st.one_of(*(st.floats(min_value=20, max_value=item) for item in (86_400, 172_800, 1e9))),
)
@example(since=datetime(9998, 12, 20, tzinfo=UTC), seconds=32_486_400.0)
def test_an_axis_of_time_has_few_marks_that_differ_and_is_never_without_one(
    since: datetime, seconds: float
) -> None:
    until = since + min(timedelta(seconds=seconds), datetime.max.replace(tzinfo=UTC) - since)
    marks = days_between(since, until)
    assert 2 <= len(marks) <= 12
    assert all(since <= moment < until for moment, _ in marks)
    labels = [label for _, label in marks]
    assert len(set(labels)) == len(labels) or 24 * HOUR < until - since <= 48 * HOUR


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_all_text_can_be_read_on_its_ground_by_day_and_by_night() -> None:
    light, dark = STYLE.split("prefers-color-scheme: dark", 1)
    dark = dark.partition("} }")[0]
    for scheme in (light, dark):
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", scheme))
        pairs = [
            (name, ground) for name in ("text", "muted", "blue") for ground in ("card", "back")
        ]
        pairs += [(name, f"{name}back") for name in ("good", "warn", "bad", "muted")]
        pairs += [("text", "mutedback")]
        pairs += [(name, "card") for name in ("good", "warn", "bad", "violet")]
        for name, ground in pairs:
            bright, dim = sorted((luminance(colours[name]), luminance(colours[ground])))[::-1]
            assert (bright + 0.05) / (dim + 0.05) >= 4.5, (name, ground)


def test_times_at_an_axis_are_round_and_differ() -> None:
    change = detail("museum").changes[0]
    waits = [timedelta(minutes=number) for number in (1, 30, 95, 1_000, 3_000)]
    for wait in waits:
        late = replace(change, dated=change.time - wait)
        long = replace(detail("museum"), since=NOW - 240 * HOUR, changes=(late,))
        plot = mirror_page(long).partition("Latency of changes</title>")[2].partition("</svg>")[0]
        labels = re.findall(r'class="end">([^<]+)</text>', plot)
        assert len(set(labels)) == len(labels) >= 2
        assert labels[0] == "0"


def test_the_worst_pull_of_an_interval_is_shown() -> None:
    good = ran("a")
    assert good.report is not None
    bad = replace(good, report=replace(good.report, pending=1, refused=1))
    page = mirror_page(replace(detail("museum"), runs=(good, bad, good)))
    assert "in sync: 77.7778 %</title>" in page
    assert "in sync: 100 %</title>" not in page


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


def test_each_cause_says_when_its_resources_are_tried_again() -> None:
    museum = detail("museum")
    late = replace(museum.causes[0], due=NOW + HOUR)
    early = replace(museum.causes[0], due=NOW - HOUR)
    soon = replace(museum.summary, next_pull="15:05:00Z", next_at=NOW)
    text = _text(mirror_page(replace(museum, summary=soon, causes=(late, early))))

    assert f"from {formatting.moment(NOW + HOUR)}" in text
    assert "with the next pull, 15:05:00Z" in text


def test_an_interval_in_which_nothing_was_right_stands_in_the_table_of_the_chart() -> None:
    bad = ran("a")
    assert bad.report is not None
    bad = replace(bad, report=replace(bad.report, pending=9))
    page = mirror_page(replace(detail("museum"), runs=(bad,)))
    chart = page.partition("In sync, minimum")[2].partition("</figure>")[0]

    assert "<td>0 %</td>" in chart


def test_what_was_made_before_the_window_counts_for_no_latency() -> None:
    old = AppliedChange(time=NOW - HOUR, kind="created", uri="a", dated=NOW - 999 * HOUR)
    both = replace(detail("museum"), changes=(*detail("museum").changes, old))
    assert "95 % within 2 h 0 min" in mirror_page(both)
    assert "no dated changes" in mirror_page(replace(both, changes=(old,)))
