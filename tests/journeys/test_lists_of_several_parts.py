"""Parts of several moments: what is gone, and what is only being written."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.destination.sync_state import SyncState
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World
from tests.support.worlds.written_source import WrittenSource, dated_world, serve_parts

DAY = 86_400
RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"


def day(number: int, time: str = "03:00:00") -> str:
    return f"2026-03-{number:02}T{time}Z"


def pull_days(world: World[WrittenSource], days: int) -> list[str]:
    states = []
    for _ in range(days):
        world.clock.advance(seconds=DAY)
        report = world.pull(RESOURCE_LIST)
        states.append(str(report.state))
    return states


@pytest.mark.parametrize("with_date", [True, False])
@pytest.mark.parametrize("states_at", [True, False])
def test_a_list_whose_parts_are_being_written_takes_no_copy_away(
    tmp_path: Path, with_date: bool, states_at: bool
) -> None:
    """Cron writes part 1, then part 2, then the index; the pull comes in between."""
    world = dated_world(tmp_path) if with_date else World(tmp_path, WrittenSource())
    names = sorted(world.source.written.contents)
    at = day(7) if states_at else ""
    old = [("1.xml", day(7, "03:00:00"), names[:15]), ("2.xml", day(7, "03:05:00"), names[15:])]
    serve_parts(world, at, old, announces=False)
    world.source.wait_until(6 * DAY + 12 * 3600)
    assert world.pull(RESOURCE_LIST).state is MirrorState.IN_SYNC
    world.source.written.contents["!new.html"] = "new"
    shifted = ["!new.html", *names]
    first = ("1.xml", day(8, "03:00:00"), shifted[:15])
    serve_parts(world, at, [first, old[1]], announces=False)
    world.source.wait_until(7 * DAY + 3 * 3600 + 120)

    report = world.pull(RESOURCE_LIST)

    assert report.deleted == 0
    assert world.in_sync()


def test_an_old_index_twice_takes_no_copy_away(tmp_path: Path) -> None:
    """Each version of a part has a name; a replica serves the index of day 3 for two pulls."""
    world = World(tmp_path, WrittenSource())
    names = sorted(world.source.written.contents)
    world.source.wait_until(8 * DAY)
    old = ("old.xml", day(2), names[:10])
    third, fifth = ("new-3.xml", day(3), names[10:29]), ("new-5.xml", day(5), names[10:])
    serve_parts(world, "", [old, third])
    stale = world.network.answers[RESOURCE_LIST]
    serve_parts(world, "", [old, fifth])
    fresh = world.network.answers[RESOURCE_LIST]
    assert world.pull(RESOURCE_LIST).state is MirrorState.IN_SYNC
    assert world.in_sync()
    world.network.answers[RESOURCE_LIST] = stale
    for _ in range(3):
        world.clock.advance(seconds=3_600)
        report = world.pull(RESOURCE_LIST)
        assert report.deleted == 0
    world.network.answers[RESOURCE_LIST] = fresh


def test_a_part_that_joins_with_an_older_moment_hides_no_deletion_of_another(
    tmp_path: Path,
) -> None:
    world = dated_world(tmp_path)
    names = sorted(world.source.written.contents)
    world.source.wait_until(7 * DAY)
    new = {name: world.source.written.contents.pop(name) for name in names[20:]}
    one, two = ("1.xml", day(5), names[:10]), ("2.xml", day(6), names[10:20])
    serve_parts(world, "", [one, two])
    world.pull(RESOURCE_LIST)
    world.source.written.contents |= new
    del world.source.written.contents[names[0]]
    world.source.wait_until(9 * DAY)
    parts = [("1.xml", day(9), names[1:10]), two, ("3.xml", day(3), names[20:])]
    serve_parts(world, "", parts)

    states = pull_days(world, 2)

    assert states[-1] == str(MirrorState.IN_SYNC)
    assert world.in_sync()


def test_by_a_part_that_is_older_than_its_index_says_no_mirror_is_in_sync(tmp_path: Path) -> None:
    world = World(tmp_path, WrittenSource())
    names = sorted(world.source.written.contents)
    one, two = ("1.xml", day(5), names[:15]), ("2.xml", day(5), names[15:])
    second = f"{BASE}resourcesync/2.xml"
    world.source.wait_until(7 * DAY)
    serve_parts(world, day(5), [one, two])
    assert world.pull(RESOURCE_LIST).state is MirrorState.IN_SYNC
    old = world.network.answers[second]
    world.source.written.contents["new.html"] = "new"
    serve_parts(world, day(6), [one, ("2.xml", day(6), [*names[15:], "new.html"])])
    fresh, world.network.answers[second] = world.network.answers[second], old

    for _ in range(2):
        world.clock.advance(hours=1)
        report = world.pull(RESOURCE_LIST)
        assert (report.state, report.deleted) == (MirrorState.BEHIND, 0)
        assert world.warned()[-1] == "old-part"
        assert not world.audit().in_sync
        with world.state() as state:
            assert SyncState(state).cursor.is_baseline_due
    world.network.answers[second] = fresh

    report = world.pull(RESOURCE_LIST)
    assert (report.state, report.mode, report.created) == (MirrorState.IN_SYNC, Mode.BASELINE, 1)
    assert world.in_sync()
