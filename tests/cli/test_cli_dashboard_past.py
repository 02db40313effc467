"""The past on the pages of ``watch --admin``: it begins when a mirror began."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from resourcesync.cli.configured_mirrors import load
from resourcesync.cli.service.watch_pages import WatchPages
from resourcesync.cli.service.watch_reports import result_parts
from resourcesync.destination.reports import MirrorState, MirrorStatus
from resourcesync.server.dashboard.detail_pages import events_page
from resourcesync.server.dashboard.views import EndedRun, MirrorSummary
from tests.support.dashboard_values import NOW, overview
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


def test_a_failure_that_no_state_records_is_an_event(world: World[Any]) -> None:
    found = pages(world)
    place = str(world.folder)
    now = world.clock.now()
    fields = {"mirror": place, "code": "locked", "message": "locked", "exit": 9}
    found.count("pull", {**fields, "time": now})
    found.count("pull", {**fields, "time": now, "exit": 0})  # a state has it
    assert [run.text for run in found.events()][:1] == ["pull: locked: locked"]
    assert sum(run.count for run in found.events()) == 3 + 1
