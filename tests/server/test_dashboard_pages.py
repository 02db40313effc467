"""The pages for operators: what a Source writes is text in them, and many mirrors fit on one."""

import gzip
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from resourcesync.destination.mirror_health import CheckedMirror
from resourcesync.destination.reports import FailedRun, ListedCounts, MirrorState, MirrorStatus
from resourcesync.model import formatting
from resourcesync.server.admin import OperationsApplication
from resourcesync.server.dashboard.app import mirror_pages
from resourcesync.server.dashboard.layout import missing_page
from resourcesync.server.dashboard.markup import tag
from resourcesync.server.dashboard.mirror_page import mirror_page
from resourcesync.server.dashboard.mirror_selection import PAGE_SIZE, MirrorQuery, select_mirrors
from resourcesync.server.dashboard.source_page import source_page
from resourcesync.server.dashboard.views import MirrorSummary
from resourcesync.server.metrics import Metric
from resourcesync.watch.scheduler import NextPull, PullReason
from tests.support.dashboard_values import HOUR, NOW, Seen, brief, detail, overview, ran, source
from tests.support.servers.asgi import ask

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
    parsed = ET.fromstring(tag("p", text, title=text))
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
    for words in (f"nothing new; 3 times since {first}", "http: http", "7 updated"):
        assert words in texts


def test_held_deletions_are_called_so_and_never_listed() -> None:
    before = detail("museum")
    status = replace(
        before.summary.status,
        state=MirrorState.STOPPED,
        resources=500,
        listed=ListedCounts(unchanged=100),
        deletions=400,
        held=400,
    )
    museum = replace(before.summary, seen=before.summary.seen._replace(status=status))
    texts = Seen(mirror_page(replace(before, summary=museum))).texts
    for words in ("100 listed", "20 %", "400 deletions held"):
        assert words in texts
    assert {"deletion", "when it is released"} <= set(texts)
    assert "Release" not in texts
    assert "Release" in Seen(mirror_page(replace(before, summary=museum), can_act=True)).texts
    assert ">400 deletions held</td>" in overview([museum])
    more = replace(status, listed=ListedCounts(unchanged=100, pending=3))
    both = replace(museum, seen=museum.seen._replace(status=more))
    assert ">3, 400 deletions held</td>" in overview([both])


def mirror(number: int, **fields: object) -> MirrorSummary:
    """Return a mirror of one of ten hosts that is in sync, but for some fields of its status."""
    status = MirrorStatus(
        mirror=f"m{number:04}",
        source=f"https://host{number % 10}.example/{number}",
        state=MirrorState.IN_SYNC,
        resources=number,
    )
    return MirrorSummary(seen=CheckedMirror(replace(status, **fields), float(number)))


PAUSED = NextPull(time=None, reason=PullReason.PAUSED, failures=0, is_paused=True)


def failing(
    number: int, code: str = "connect", host: str = "down.example", **fields: object
) -> MirrorSummary:
    failed = FailedRun(code=code, kind="SourceUnavailableError", message=f"{code} failed")
    source = f"https://{host}/{number}"
    return mirror(number, state=MirrorState.FAILING, source=source, failed_run=failed, **fields)


MANY = [mirror(number) for number in range(250)]


def names(mirrors: Sequence[MirrorSummary], **query: object) -> list[str]:
    return [found.name for found in select_mirrors(mirrors, MirrorQuery(**query)).shown]  # type: ignore[arg-type]  # its fields


def test_a_page_has_a_hundred_mirrors_and_the_last_one_the_rest() -> None:
    pages = [names(MANY, page=number) for number in (1, 2, 3, 99)]
    assert [len(page) for page in pages] == [PAGE_SIZE, PAGE_SIZE, 50, 50]
    worst_first = [one.name for one in reversed(MANY)]
    assert [name for page in pages[:3] for name in page] == worst_first
    assert pages[3] == pages[2]

    second = overview(MANY, page=2, text="m0")
    assert "101 to 200 of 250" in second
    links = {place for place in Seen(second).addresses if "page=" in place}
    assert links == {"./?q=m0&page=3"}  # the first page needs no number
    assert "./?q=m0" in Seen(second).addresses


def test_a_filter_shows_one_state_and_each_has_its_number() -> None:
    late = MirrorSummary(seen=mirror(300).seen._replace(max_lag=1.0))
    mirrors = [*MANY, failing(301), late, replace(mirror(302), error="lost", next=PAUSED)]
    found = select_mirrors(mirrors, MirrorQuery(state="problems"))
    assert [one.name for one in found.shown] == ["m0302", "m0301", "m0300"]
    assert found.counts == {
        "problems": 3,
        "unreadable": 1,
        "failing": 1,
        "in sync": 251,
        "paused": 1,
    }
    assert names(mirrors, state="failing") == ["m0301"]
    assert names(mirrors, state="paused") == ["m0302"]
    page = overview(mirrors, state="failing")
    assert "<title>(3) Mirrors | resourcesync</title>" in page
    assert "./?state=in+sync" in Seen(page).addresses
    assert "<title>Mirrors |" in overview(MANY)


@pytest.mark.parametrize(
    "fields", [{"page": "x"}, {"page": "-1"}, {"page": "9" * 30}, {"state": "x"}]
)
def test_a_request_that_is_not_valid_shows_all_mirrors(fields: dict[str, str]) -> None:
    assert MirrorQuery.parse(fields) == MirrorQuery()


def test_three_failures_with_one_cause_are_one_line() -> None:
    down = [failing(number) for number in range(150)]
    others = [failing(200, "http"), failing(201, host="other.example"), failing(202, "http")]
    found = select_mirrors([*down, *others, *MANY[203:]], MirrorQuery())
    assert [(group.code, group.host, len(group.mirrors)) for group in found.groups] == [
        ("connect", "down.example", 150)
    ]
    assert {one.name for one in found.shown[:3]} == {"m0200", "m0201", "m0202"}
    page = overview([*down, *others])
    assert "150 mirrors of down.example: connect failed</strong></summary>" in page
    assert "(50 more)" in page
    assert page.count("<tr>") < 10
    assert "./?q=down.example&state=failing" in Seen(page).addresses
    one_by_one = overview([*down, *others], text="down.example")
    assert "Failures with one cause" not in one_by_one
    assert "1 to 100 of 152" in one_by_one


def test_what_fails_says_since_when_and_when_it_is_tried_again() -> None:
    soon = (NOW + timedelta(minutes=28)).timestamp()
    retry = NextPull(time=soon, reason=PullReason.RETRY, failures=3)
    one = failing(1, failing_since=NOW - HOUR)
    one = replace(one, next=retry, notes=("why  exit 4",))
    texts = "".join(Seen(overview([one])).texts)
    assert "Failing since 2026-11-21 14:00:00Z, 3 tries, next try 15:28:00Z (retry 3).Why" in texts
    assert "exit 4" not in texts


class ManyViews:
    """The views of a service with many mirrors, of which only the list exists."""

    def __init__(self, mirrors: Sequence[MirrorSummary]) -> None:
        self.listed = mirrors

    def now(self) -> datetime:
        return NOW

    def mirrors(self) -> Sequence[MirrorSummary]:
        return self.listed


@pytest.mark.parametrize("place", ["", "style.css", "metrics", "api/status.json"])
def test_pages_and_figures_are_compressed_for_who_accepts_it(place: str) -> None:
    figure = Metric(
        name="x", kind="gauge", help_text="x", values=tuple(((), n) for n in range(999))
    )
    operations = OperationsApplication(
        look=lambda: None, counts=[lambda: [figure]], status=lambda: b"[" + b"1," * 999 + b"1]"
    )
    views = ManyViews([mirror(number) for number in range(1_000)])
    pages = mirror_pages(views, operations)  # type: ignore[arg-type]  # only the overview
    plain = ask(pages, f"/{place}")
    coded = ask(pages, f"/{place}", fields={"accept-encoding": "gzip"})

    assert "content-encoding" not in plain.fields
    assert (coded.fields["content-encoding"], coded.fields["vary"]) == ("gzip", "accept-encoding")
    assert gzip.decompress(coded.body) == plain.body
    assert len(coded.body) * 2 < len(plain.body)
