"""Change Lists that lag behind the Resource List, whose changes have times of their own, times of
their resources, or both: what the Resource List has already is never taken back."""

from itertools import repeat
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState, RunReport
from tests.support.worlds.timed_source import CAPABILITIES, TimedSource, deleted, entry, updated
from tests.support.worlds.world import World

BEGIN = "2026-02-10T00:00:00Z"
NINE, TEN, ELEVEN, NOON = (f"2026-02-20T{hour:02}:00:00Z" for hour in range(9, 13))
LATER, LATEST = "2026-02-21T00:00:00Z", "2026-02-21T00:10:00Z"
OLD = "2026-02-01T00:00:00Z"


@pytest.fixture
def world(tmp_path: Path) -> World[TimedSource]:
    """Return a Source that made x again at eleven, and wrote its Resource List at noon."""
    world = World(tmp_path / "mirror", TimedSource())
    world.source.has(x="three", y="why")
    world.source.resource_list(NOON, entry("x", "three", ELEVEN), entry("y", "why", NINE))
    return world


def pull(world: World[TimedSource]) -> RunReport:
    return world.pull(CAPABILITIES)


def assert_in_sync(world: World[TimedSource], pulls: int = 2) -> None:
    for _ in range(pulls):
        assert pull(world).state is MirrorState.IN_SYNC
        assert world.texts() == {"x": "three", "y": "why"}


def test_an_old_deletion_behind_a_change_with_the_time_of_its_resource_is_old(
    world: World[TimedSource],
) -> None:
    lagging = (updated("y", "why", NINE), deleted("x", TEN))
    world.source.change_list(*lagging, interval=BEGIN)
    assert_in_sync(world)

    world.source.change_list(*lagging, updated("x", "three", ELEVEN), interval=BEGIN)
    assert_in_sync(world)


def test_a_list_with_the_newest_first_takes_back_nothing(world: World[TimedSource]) -> None:
    world.source.change_list(
        updated("x", "three", ELEVEN), deleted("x", TEN), updated("y", "why", NINE), interval=BEGIN
    )
    assert_in_sync(world)


@pytest.mark.parametrize("late", [deleted("x", TEN), updated("x", "two", TEN, OLD)])
def test_a_late_change_in_a_window_that_moves_is_old(world: World[TimedSource], late: str) -> None:
    first = updated("y", "why", NINE)
    world.source.change_list(first, interval="2026-02-19T12:00:00Z")
    assert_in_sync(world)

    world.source.change_list(first, late, interval="2026-02-19T13:00:00Z")
    assert_in_sync(world)
    world.source.change_list(
        first, late, updated("x", "three", ELEVEN), interval="2026-02-19T14:00:00Z"
    )
    assert_in_sync(world)


@pytest.mark.parametrize(
    ("lagging", "packed"),
    [
        ((updated("y", "why", NINE), updated("x", "one", TEN, OLD)), {"y": "why", "x": "one"}),
        ((updated("y", "why", NINE), deleted("x", TEN)), {"y": "why"}),
        ((updated("x", "one", TEN),), {"x": "one"}),
    ],
    ids=["both kinds of times", "a deletion", "times of resources"],
)
def test_a_package_of_changes_that_lags_takes_back_nothing(
    world: World[TimedSource], lagging: tuple[str, ...], packed: dict[str, str]
) -> None:
    world.source.offer("resourcelist", "changedump")
    names = (change.partition("</loc>")[0].rpartition("/")[2] for change in lagging)
    places = (f'<rs:md path="/{name}" ' for name in names)
    marked = map(str.replace, lagging, repeat("<rs:md "), places)
    world.source.change_dump(*marked, since=BEGIN, packed=packed)

    assert_in_sync(world)


@pytest.mark.parametrize("late", [deleted("x", TEN), updated("x", "one", TEN)])
def test_a_list_that_grows_by_a_part_of_what_is_due_takes_back_nothing(
    world: World[TimedSource], late: str
) -> None:
    first = updated("y", "why", NINE, OLD)
    world.source.change_list(first, interval=BEGIN)
    assert_in_sync(world)

    world.source.change_list(first, late, interval=BEGIN)
    for _ in range(2):
        pull(world)
        assert world.texts() == {"x": "three", "y": "why"}
    world.source.change_list(first, late, updated("x", "three", ELEVEN), interval=BEGIN)
    assert_in_sync(world)


def test_a_late_deletion_is_done_where_the_source_no_longer_serves_the_resource(
    world: World[TimedSource],
) -> None:
    first = updated("y", "why", NINE, OLD)
    world.source.change_list(first, interval=BEGIN)
    assert_in_sync(world)
    del world.source.served["x"]

    world.source.change_list(first, deleted("x", TEN), interval=BEGIN)

    pull(world)
    assert world.texts() == {"y": "why"}


def test_bytes_that_no_list_tells_of_replace_no_copy(world: World[TimedSource]) -> None:
    first = updated("y", "why", NINE)
    world.source.change_list(first, interval=BEGIN)
    assert_in_sync(world)
    world.source.has(x="page not found")

    world.source.change_list(first, deleted("x", TEN), interval=BEGIN)

    assert pull(world).state is MirrorState.BEHIND
    assert world.texts() == {"x": "three", "y": "why"}


def test_a_resource_that_is_dated_ahead_goes_when_a_newer_list_lacks_it(
    world: World[TimedSource],
) -> None:
    world.source.has(z="photo")
    change = entry("z", "photo", "2026-03-04T00:00:00Z", f' change="created" datetime="{LATER}"')
    world.source.change_list(change, interval=f"{BEGIN} {LATEST}")
    pull(world)
    del world.source.served["z"]

    world.source.clock.advance(hours=1)
    now = ["2026-03-01T00:30:00Z", "2026-03-01T00:31:00Z"]
    world.source.resource_list(now[0], entry("x", "three", ELEVEN), entry("y", "why", NINE))
    world.source.change_list(interval=" ".join(now))

    assert_in_sync(world)


@pytest.fixture
def daily(tmp_path: Path) -> World[TimedSource]:
    world = World(tmp_path / "mirror", TimedSource())
    world.source.has(x="one")
    world.source.resource_list("2026-02-20T00:10:00Z", entry("x", "one", OLD))
    world.source.change_list(interval="2026-02-20T00:00:00Z", name="a")
    world.source.change_index(a="2026-02-20T00:00:00Z")
    assert pull(world).state is MirrorState.IN_SYNC
    return world


@pytest.mark.parametrize(
    "change",
    [
        entry("x", "two", "2026-02-21T01:20:00Z", ' change="updated"'),
        updated("x", "two", "2026-02-21T05:00:00Z", "2026-02-20T22:00:00Z"),
    ],
    ids=["of the resource", "of its own"],
)
def test_a_time_behind_the_end_of_its_list_makes_no_later_resource_list_stale(
    daily: World[TimedSource], change: str
) -> None:
    daily.source.has(x="two")
    daily.source.change_list(change, interval=f"2026-02-20T00:00:00Z {LATER}", name="a")
    daily.source.change_list(interval=LATER, name="b")
    daily.source.change_index(a=f"2026-02-20T00:00:00Z {LATER}", b=LATER)
    assert pull(daily).state is MirrorState.IN_SYNC

    daily.source.resource_list(LATEST, entry("x", "two", "2026-02-20T22:00:00Z"))

    for _ in range(2):
        assert pull(daily).state is MirrorState.IN_SYNC
        assert daily.texts() == {"x": "two"}


def test_a_list_that_its_index_calls_open_is_read_again_though_it_has_an_end(
    daily: World[TimedSource],
) -> None:
    changes = [updated("x", "one", "2026-02-20T10:00:00Z", OLD)]
    for hour, text in ((13, "one"), (14, "two"), (15, "two"), (16, "three")):
        daily.source.has(x=text)
        changes.append(updated("x", text, f"2026-02-20T{hour}:00:00Z", OLD))
        until = f"2026-02-20T{hour}:30:00Z"  # the moment at which the list was made
        daily.source.change_list(*changes, interval=f"2026-02-20T00:00:00Z {until}", name="a")

        assert pull(daily).state is MirrorState.IN_SYNC
        assert daily.texts() == {"x": text}
