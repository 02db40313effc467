"""Windows without interval: a late change, weekly resets, a date of the far future."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from tests.support.worlds.world import World
from tests.support.worlds.written_source import WrittenList, WrittenSource, pull_at

DAY = 86_400


def plain_list(source: WrittenSource) -> WrittenList:
    told = WrittenList(name="changes.xml", from_=None)
    source.written.lists = [told]
    source.written.head, source.written.is_index = told.name, False
    return told


def test_a_change_that_is_inserted_late_into_a_window_is_applied(tmp_path: Path) -> None:
    """The list is `ORDER BY time`; a transaction commits after a later one."""
    source = WrittenSource()
    told = plain_list(source)
    source.change(told, "0.html", "before the list", -60)
    source.snapshot(0)
    world = World(tmp_path, source)
    pull_at(world, 60)
    source.change(told, "1.html", "first", 100)
    source.change(told, "2.html", "third", 300)
    assert pull_at(world, 400).state is MirrorState.IN_SYNC
    source.change(told, "3.html", "second, late", 200)
    told.changes.sort(key=lambda change: change[3] or 0)
    report = pull_at(world, 500)
    assert (report.state is MirrorState.IN_SYNC) <= world.in_sync()
    source.change(told, "4.html", "fourth", 600)
    report = pull_at(world, 700)
    assert (report.state is MirrorState.IN_SYNC) <= world.in_sync()


@pytest.mark.parametrize("own", [True, False])
def test_a_list_that_begins_anew_with_each_resource_list_is_in_sync_sometime(
    tmp_path: Path, own: bool
) -> None:
    source = WrittenSource()
    told = plain_list(source)
    world = World(tmp_path, source)
    states = [pull_at(world, 60).state]
    for week in range(6):
        for day in range(1, 7):
            now = week * 7 * DAY + day * DAY
            source.change(told, f"{day}.html", f"{week} {day}", now if own else None)
            states.append(pull_at(world, now + 60).state)
            assert world.in_sync()
        at = (week + 1) * 7 * DAY
        source.snapshot(at)
        told.changes.clear()
        states.append(pull_at(world, at + 60).state)
        assert world.in_sync()
    assert MirrorState.IN_SYNC in states[7:]


def test_a_window_that_lacks_a_processed_change_before_one_of_the_same_time_was_rewritten(
    tmp_path: Path,
) -> None:
    source = WrittenSource()
    told = plain_list(source)
    source.change(told, "0.html", "before the list", -60)
    source.snapshot(0)
    world = World(tmp_path, source)
    pull_at(world, 60)
    before = source.written.contents["2.html"]
    source.change(told, "1.html", "first", 100)
    source.change(told, "2.html", "withdrawn", 100)
    assert pull_at(world, 200).state is MirrorState.IN_SYNC
    del told.changes[-1]
    source.written.contents["2.html"] = before
    source.change(told, "3.html", "after the restoration", 300)

    report = pull_at(world, 400)

    assert not world.in_sync()
    assert report.state is MirrorState.BEHIND
