"""The page of many mirrors: search, filter, order, pages, and failures with one cause."""

import gzip
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from urllib.request import Request, urlopen

import pytest
from msgspec.structs import replace

from resourcesync.destination.reports import FailedRun, MirrorState, MirrorStatus
from resourcesync.server.admin import AdminApplication, OperationsApplication
from resourcesync.server.dashboard.app import Dashboard
from resourcesync.server.dashboard.mirror_selection import (
    PAGE_SIZE,
    MirrorQuery,
    select_mirrors,
)
from resourcesync.server.dashboard.views import MirrorActivity, MirrorSummary, RunningJob
from resourcesync.server.metrics import Metric
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.dashboard_values import NOW, Seen, overview


def mirror(number: int, **fields: object) -> MirrorSummary:
    """Return a mirror of one of ten hosts that is in sync, but for some fields of its status."""
    status = MirrorStatus(
        folder=f"m{number:04}",
        source=f"https://host{number % 10}.example/{number}",
        state=MirrorState.IN_SYNC,
        resources=number,
    )
    return MirrorSummary(status=replace(status, **fields), lag=float(number))


def failing(number: int, code: str = "connect", host: str = "down.example") -> MirrorSummary:
    failed = FailedRun(code=code, kind="SourceUnavailableError", message=f"{code} failed")
    source = f"https://{host}/{number}"
    return mirror(number, state=MirrorState.FAILING, source=source, failed=failed)


MANY = [mirror(number) for number in range(250)]


def names(mirrors: Sequence[MirrorSummary], **query: object) -> list[str]:
    return [found.name for found in select_mirrors(mirrors, MirrorQuery(**query)).shown]  # type: ignore[arg-type]  # its fields


def test_a_page_has_a_hundred_mirrors_and_the_last_one_the_rest() -> None:
    pages = [names(MANY, sort="name", page=number) for number in (1, 2, 3, 99)]
    assert [len(page) for page in pages] == [PAGE_SIZE, PAGE_SIZE, 50, 50]
    assert [name for page in pages[:3] for name in page] == [one.name for one in MANY]
    assert pages[3] == pages[2]

    second = overview(MANY, page=2, text="m0", sort="-lag")
    assert "101 to 200 of " in second
    links = {place for place in Seen(second).addresses if "page=" in place}
    assert links == {"./?q=m0&sort=-lag&page=3"}  # the first page needs no number
    assert "./?q=m0&sort=-lag" in Seen(second).addresses


def test_a_filter_shows_one_state_and_each_has_its_number() -> None:
    late = replace(mirror(300), max_lag=1.0)
    mirrors = [*MANY, failing(301), late, replace(mirror(302), error="lost", is_paused=True)]
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
    "fields", [{"page": "x"}, {"page": "-1"}, {"page": "9" * 30}, {"sort": "x"}, {"state": "x"}]
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
    assert "and 50 more" in page
    assert page.count("<tr>") < 10
    assert "./?fold=no" in Seen(page).addresses
    assert "Failures with one cause" not in overview([*down, *others], is_folded=False)


def test_what_fails_says_since_when_and_when_it_is_tried_again() -> None:
    one = replace(
        failing(1), tries=3, next_pull="15:28:00Z (retry 3)", next_at=NOW, notes=("why  exit 4",)
    )
    texts = "".join(Seen(overview([one])).texts)
    assert "Failing since 2026-11-21 14:00:00Z, 3 tries, next try 15:28:00Z (retry 3).Why" in texts
    assert "exit 4" not in texts


class ManyViews:
    """The views of a service with many mirrors, of which only the list exists."""

    def __init__(self, mirrors: Sequence[MirrorSummary]) -> None:
        self.listed, self.requested = mirrors, list[str]()

    def now(self) -> datetime:
        return NOW

    def mirrors(self) -> Sequence[MirrorSummary]:
        return self.listed

    def activity(self, names: Sequence[str]) -> Mapping[str, MirrorActivity]:
        self.requested += names
        return {}

    def running(self) -> Sequence[RunningJob]:
        return []


@pytest.fixture
def views() -> ManyViews:
    return ManyViews([mirror(number) for number in range(1_000)])


@pytest.fixture
def address(views: ManyViews) -> Iterator[str]:
    figure = Metric(
        name="x", kind="gauge", help_text="x", values=tuple(((), n) for n in range(999))
    )
    operations = OperationsApplication(look=lambda: None, counts=[lambda: [figure]])
    dashboard = Dashboard(views, operations)  # type: ignore[arg-type]  # only these pages
    with ServerThread(AdminApplication(lambda: b"[" + b"1," * 999 + b"1]", dashboard)) as server:
        yield server.uri


def test_a_page_of_a_thousand_mirrors_reads_only_the_past_of_its_own(
    views: ManyViews, address: str
) -> None:
    with urlopen(f"{address}?sort=name&page=10") as answer:
        page = answer.read().decode()
    assert views.requested == [f"m{number:04}" for number in range(900, 1_000)]
    assert page.count("mirror?name=") == PAGE_SIZE


@pytest.mark.parametrize("place", ["", "style.css", "live.js", "metrics", "api/status.json"])
def test_pages_and_figures_are_compressed_for_who_accepts_it(address: str, place: str) -> None:
    with urlopen(address + place) as answer:
        plain = answer.read()
        assert answer.headers["content-encoding"] is None
    with urlopen(Request(address + place, headers={"accept-encoding": "gzip"})) as answer:
        coded = answer.read()
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["vary"] == "accept-encoding"
    assert gzip.decompress(coded) == plain
    assert len(coded) * 2 < len(plain)
