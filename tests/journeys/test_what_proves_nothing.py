"""Lists that look as if they continued what was processed, and do not."""

from pathlib import Path

import pytest

from resourcesync.destination.options import Filters
from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.destination.sync_state import SyncState
from resourcesync.errors import RollbackError, SourceUnavailableError
from tests.support.worlds.rewriting import killed
from tests.support.worlds.world import World
from tests.support.worlds.written_lists import WrittenList, WrittenWorld


@pytest.fixture
def written(tmp_path: Path) -> WrittenWorld:
    return WrittenWorld(tmp_path / "mirror")


def test_a_new_list_that_begins_when_another_one_did_is_read_though_the_last_change_is_listed(
    written: WrittenWorld,
) -> None:
    first, second, third = (WrittenList(f"{number}.xml", from_=0) for number in range(3))
    written.source.lists = [first, second]
    written.change(first, "1.html", "new", 10)
    written.pull_at(20)
    written.change(second, "2.html", "new", 30)
    written.pull_at(40)
    written.source.lists.append(third)
    written.change(third, "3.html", "new", 50)

    assert written.pull_at(60).state is MirrorState.IN_SYNC
    assert written.in_sync()


def test_a_list_that_moved_and_was_merged_is_read_though_the_last_change_is_listed(
    written: WrittenWorld,
) -> None:
    told = WrittenList("changelist.xml", from_=0)
    written.source.lists, written.source.is_index = [told], False
    for number, text in enumerate(("first", "second")):
        written.change(told, "1.html", text, 10 + number)
    written.change(told, "2.html", "new", 20)
    written.pull_at(30)
    del told.changes[0]
    told.name = written.source.head = "moved.xml"
    written.change(told, "3.html", "new", 50)

    assert written.pull_at(60).state is MirrorState.IN_SYNC
    assert written.in_sync()


def test_an_older_resource_list_is_noticed_where_no_change_was_processed_since_the_last_one(
    written: WrittenWorld,
) -> None:
    told = WrittenList("changelist.xml")  # it does not tell when it begins
    written.source.lists, written.source.is_index = [told], False
    written.change(told, "1.html", "new", 10)
    written.pull_at(15)
    before = written.saved()
    written.change(told, "2.html", "withdrawn", 20)
    written.snapshot(25)
    told.changes.clear()
    written.pull_at(30)
    written.source = before

    with pytest.raises(RollbackError):
        written.pull_at(40)


def test_an_older_resource_list_is_noticed_behind_lists_that_were_over_before_it(
    written: WrittenWorld,
) -> None:
    first = WrittenList("1.xml", from_=0, until=10)
    written.source.lists = [first]
    before = written.saved()
    second = WrittenList("2.xml", from_=10, until=100)
    written.source.lists.append(second)
    written.change(second, "2.html", "withdrawn", 90)
    written.snapshot(200)
    written.pull_at(210)
    written.source = before
    third = WrittenList("3.xml", from_=10, until=300)
    written.source.lists.append(third)
    written.change(third, "3.html", "new", 290)

    with pytest.raises(RollbackError):
        written.pull_at(310)


def test_a_list_that_was_followed_long_ago_is_read_though_it_is_the_same_as_then(
    written: WrittenWorld,
) -> None:
    told = WrittenList("single.xml", from_=0)
    written.source.lists, written.source.head = [told], told.name
    written.source.is_index = False
    written.pull_at(5)
    written.change(told, "1.html", "new", 10)
    written.pull_at(15)
    before = written.saved()
    told.name, told.until = "1.xml", 30
    later = WrittenList("2.xml", from_=30, until=40)
    written.source.lists.append(later)
    written.source.head, written.source.is_index = "index.xml", True
    written.change(later, "2.html", "withdrawn", 35)
    assert written.pull_at(50).mode is Mode.INCREMENTAL
    written.source = before

    with pytest.raises(SourceUnavailableError, match="fewer changes"):
        written.pull_at(90)


@pytest.mark.parametrize("writes", range(6))
def test_filters_that_a_killed_pull_stored_are_obeyed_by_the_next_one(
    world: World, writes: int
) -> None:
    world.pull(filters=Filters(exclude=("*0003.html",)))
    killed(world, writes, filters=Filters())

    world.pull()

    with world.state() as state:
        excluded = SyncState(state).filters
    assert excluded is not None
    assert world.in_sync() is not bool(excluded.exclude)


def test_what_a_repair_took_from_a_newer_resource_list_goes_when_that_is_withdrawn(
    written: WrittenWorld,
) -> None:
    written.source.lists = [WrittenList("1.xml", from_=0)]
    written.pull_at(5)
    before = written.saved()
    written.source.contents["1.html"] = "only in the Resource List"
    written.snapshot(20)
    assert written.repair_at(30).state is MirrorState.IN_SYNC
    written.source = before

    assert written.pull_at(40).state is MirrorState.IN_SYNC
    assert written.in_sync()


def test_what_a_repair_took_from_an_old_copy_of_a_list_goes_as_well(written: WrittenWorld) -> None:
    told = WrittenList("changelist.xml", from_=0)
    written.source.lists, written.source.is_index = [told], False
    written.pull_at(5)
    old = written.saved()
    written.change(told, "1.html", "new", None)
    written.pull_at(15)
    new, written.source = written.source, old
    written.repair_at(20)
    written.source = new

    assert written.pull_at(40).state is MirrorState.IN_SYNC
    assert written.in_sync()
