"""The past on the pages of ``watch --admin``: it begins when a mirror began."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from resourcesync.app.mirrors import mirror_state
from resourcesync.app.watching.mirror_views import fold_repeats, read_detail
from resourcesync.cli.configured_mirrors import load
from resourcesync.cli.service.watch_pages import WatchPages
from resourcesync.cli.service.watch_reports import result_parts
from resourcesync.destination.reports import MirrorState, MirrorStatus
from resourcesync.server.dashboard.detail_pages import events_page
from resourcesync.server.dashboard.layout import (
    DEFAULT_RANGE,
    RANGES,
    interval_of,
    interval_text,
    parse_range,
)
from resourcesync.server.dashboard.mirror_page import mirror_page
from resourcesync.server.dashboard.views import EndedRun, MirrorDetail, MirrorSummary
from tests.support.dashboard_values import HOUR, NOW, Seen, detail, overview
from tests.support.worlds.world import World


@pytest.fixture
def world(tmp_path: Path) -> World[Any]:
    """Return a mirror that was pulled three times, an hour apart."""
    world = World(tmp_path / "m")
    world.source.put("a", "same")
    world.source.publish()
    for _ in range(3):
        world.pull()
        world.clock.advance(hours=1)
    return world


def pages(world: World[Any]) -> WatchPages:
    place = str(world.folder)
    configuration = load(None)
    return WatchPages(lambda: ((place,), configuration), world.clock)


def test_the_charts_of_a_young_mirror_begin_when_it_began(
    world: World[Any], tmp_path: Path
) -> None:
    brief = MirrorSummary(status=mirror_state.read_status(tmp_path / "m"))
    now = world.clock.now()
    week = read_detail(tmp_path / "m", brief, now - timedelta(days=7), now, ())
    everything = read_detail(tmp_path / "m", brief, None, now, ())
    hour = read_detail(tmp_path / "m", brief, now - timedelta(hours=1), now, ())
    assert week.since == everything.since
    assert timedelta(hours=3) <= now - week.since < timedelta(hours=3, minutes=1)
    assert hour.since == now - timedelta(hours=1)
    assert len(week.runs) == 3
    page = mirror_page(week)
    assert "Changes per 15 minutes" in page
    assert "in 3 pulls since" in "".join(Seen(page).texts)


@given(st.timedeltas(timedelta(minutes=1), timedelta(days=9_000)))
def test_a_chart_has_few_intervals_whatever_it_spans(span: timedelta) -> None:
    step = interval_of(span)
    assert span / step <= 32
    assert interval_text(step)


def test_a_range_is_chosen_by_its_name() -> None:
    assert [parse_range({"range": found.key}) for found in RANGES] == list(RANGES)
    assert parse_range({"range": "x"}) == parse_range({}) == DEFAULT_RANGE
    assert {"mirror?name=museum&range=all"} <= Seen(mirror_page(detail("museum"))).addresses


def test_a_mirror_without_a_past_shows_a_sentence_and_no_charts() -> None:
    status = MirrorStatus(folder="m", source="https://x.example/", state=MirrorState.NEW)
    new = MirrorDetail(summary=MirrorSummary(status=status), since=NOW - HOUR, until=NOW)
    assert "This mirror was never pulled." in mirror_page(new)
    failing = replace(status, state=MirrorState.FAILING, last_run=NOW)
    failed = replace(new, summary=MirrorSummary(status=failing), runs=detail("m").runs[1:])
    assert "No pull has succeeded yet." in mirror_page(failed)
    quiet = replace(detail("m"), runs=())
    assert "No pull ended in this range of time." in mirror_page(quiet)
    for page in map(mirror_page, (new, failed, quiet)):
        assert "<svg" not in page
    assert "<svg" in mirror_page(detail("m"))


def test_held_deletions_are_called_so_in_each_count() -> None:
    status = MirrorStatus(
        folder="m", source="", state=MirrorState.STOPPED, resources=500, held=400, pending=0
    )
    page = overview([MirrorSummary(status=status)])
    assert ">400 deletions held</td>" in page
    both = overview([MirrorSummary(status=replace(status, pending=3))])
    assert ">3, 400 deletions held</td>" in both
    assert list(result_parts("pull", {"state": "stopped", "held": 400})) == [
        "stopped",
        "400 deletions held",
    ]


def test_pulls_of_the_last_month_are_events_also_after_a_restart(world: World[Any]) -> None:
    events = pages(world).events()
    assert [run.word for run in events] == ["good", "good"]
    assert [run.count for run in events] == [2, 1]
    assert events[0].text.endswith("nothing new")
    assert "2 times since" in events_page(events, world.clock.now())

    world.clock.advance(hours=31 * 24)
    assert pages(world).events() == []


def run(minute: int, text: str = "in sync; nothing new", *, is_good: bool = True) -> EndedRun:
    time = NOW - timedelta(minutes=minute)
    word = "good" if is_good else "failed"
    return EndedRun(time=time, mirror="m", kind="pull", word=word, is_good=is_good, text=text)


def test_repeats_are_folded_only_in_a_row_and_problems_can_be_shown_alone() -> None:
    runs = [run(1), run(2), run(3, "in sync; 1 created"), run(4), run(5, "x", is_good=False)]
    folded = list(fold_repeats(runs))
    assert [(found.count, found.text) for found in folded] == [
        (2, "in sync; nothing new"),
        (1, "in sync; 1 created"),
        (1, "in sync; nothing new"),
        (1, "x"),
    ]
    assert folded[0].since == runs[1].time
    everything, problems = (events_page(folded, NOW, only_problems=only) for only in (False, True))
    assert everything.count("<tr>") == 1 + 4
    assert problems.count("<tr>") == 1 + 1
    assert "events?only=problems" in Seen(everything).addresses
    assert "None." in events_page([], NOW)


def test_a_failure_that_no_state_records_is_an_event(world: World[Any]) -> None:
    found = pages(world)
    place = str(world.folder)
    now = world.clock.now()
    fields = {"mirror": place, "code": "locked", "message": "locked", "exit": 9}
    found.count("pull", {**fields, "time": now})
    found.count("pull", {**fields, "time": now, "exit": 0})  # a state has it
    assert [run.text for run in found.events()][:1] == ["pull: locked: locked"]
    assert sum(run.count for run in found.events()) == 3 + 1


def test_a_page_shows_no_exit_codes_which_are_for_programs() -> None:
    failing = replace(detail("m").summary, notes=("the last pull failed: why  exit 4",))
    assert "exit 4" not in mirror_page(replace(detail("m"), summary=failing))
