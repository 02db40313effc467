"""Lists that look as if they continued what was processed, and do not."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.destination.sync_state import SyncState
from resourcesync.errors import RollbackError, SourceUnavailableError
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.rewriting import killed
from tests.support.worlds.world import World
from tests.support.worlds.written_source import WrittenList, WrittenSource, pull_at, repair_at


@pytest.fixture
def written(tmp_path: Path) -> World[WrittenSource]:
    return World(tmp_path / "mirror", WrittenSource())


def test_a_new_list_that_begins_when_another_one_did_is_read_though_the_last_change_is_listed(
    written: World[WrittenSource],
) -> None:
    first, second, third = (WrittenList(f"{number}.xml", from_=0) for number in range(3))
    written.source.written.lists = [first, second]
    written.source.change(first, "1.html", "new", 10)
    pull_at(written, 20)
    written.source.change(second, "2.html", "new", 30)
    pull_at(written, 40)
    written.source.written.lists.append(third)
    written.source.change(third, "3.html", "new", 50)

    assert pull_at(written, 60).state is MirrorState.IN_SYNC
    assert written.in_sync()


def test_an_older_resource_list_is_noticed_where_no_change_was_processed_since_the_last_one(
    written: World[WrittenSource],
) -> None:
    told = WrittenList("changelist.xml")  # it does not tell when it begins
    written.source.written.lists, written.source.written.is_index = [told], False
    written.source.change(told, "1.html", "new", 10)
    pull_at(written, 15)
    before = written.source.saved()
    written.source.change(told, "2.html", "withdrawn", 20)
    written.source.snapshot(25)
    told.changes.clear()
    pull_at(written, 30)
    written.source.written = before

    with pytest.raises(RollbackError):
        pull_at(written, 40)


def test_an_older_resource_list_is_noticed_behind_lists_that_were_over_before_it(
    written: World[WrittenSource],
) -> None:
    first = WrittenList("1.xml", from_=0, until=10)
    written.source.written.lists = [first]
    before = written.source.saved()
    second = WrittenList("2.xml", from_=10, until=100)
    written.source.written.lists.append(second)
    written.source.change(second, "2.html", "withdrawn", 90)
    written.source.snapshot(200)
    pull_at(written, 210)
    written.source.written = before
    third = WrittenList("3.xml", from_=10, until=300)
    written.source.written.lists.append(third)
    written.source.change(third, "3.html", "new", 290)

    with pytest.raises(RollbackError):
        pull_at(written, 310)


def test_a_list_that_was_followed_long_ago_is_read_though_it_is_the_same_as_then(
    written: World[WrittenSource],
) -> None:
    told = WrittenList("single.xml", from_=0)
    written.source.written.lists, written.source.written.head = [told], told.name
    written.source.written.is_index = False
    pull_at(written, 5)
    written.source.change(told, "1.html", "new", 10)
    pull_at(written, 15)
    before = written.source.saved()
    told.name, told.until = "1.xml", 30
    later = WrittenList("2.xml", from_=30, until=40)
    written.source.written.lists.append(later)
    written.source.written.head, written.source.written.is_index = "index.xml", True
    written.source.change(later, "2.html", "withdrawn", 35)
    assert pull_at(written, 50).mode is Mode.INCREMENTAL
    written.source.written = before

    with pytest.raises(SourceUnavailableError, match="fewer changes"):
        pull_at(written, 90)


@pytest.mark.parametrize("writes", range(6))
def test_filters_that_a_killed_pull_stored_are_obeyed_by_the_next_one(
    world: World[PublishedSource], writes: int
) -> None:
    world.pull(filters=Filters(exclude=("*0003.html",)))
    killed(world, writes, filters=Filters())

    world.pull()

    with world.state() as state:
        excluded = SyncState(state).filters
    assert excluded is not None
    assert world.in_sync() is not bool(excluded.exclude)


def test_what_a_repair_took_from_a_newer_resource_list_goes_when_that_is_withdrawn(
    written: World[WrittenSource],
) -> None:
    written.source.written.lists = [WrittenList("1.xml", from_=0)]
    pull_at(written, 5)
    before = written.source.saved()
    written.source.written.contents["1.html"] = "only in the Resource List"
    written.source.snapshot(20)
    assert repair_at(written, 30).state is MirrorState.IN_SYNC
    written.source.written = before

    assert pull_at(written, 40).state is MirrorState.IN_SYNC
    assert written.in_sync()


DAY = 86_400


def plain_list(source: WrittenSource) -> WrittenList:
    told = WrittenList(name="changes.xml", from_=None)
    source.written.lists = [told]
    source.written.head, source.written.is_index = told.name, False
    return told


def followed_window(folder: Path) -> tuple[WrittenSource, WrittenList, World[WrittenSource]]:
    source = WrittenSource()
    told = plain_list(source)
    source.change(told, "0.html", "before the list", -60)
    source.snapshot(0)
    world = World(folder, source)
    pull_at(world, 60)
    return source, told, world


def test_a_change_that_is_inserted_late_into_a_window_is_applied(tmp_path: Path) -> None:
    """The list is `ORDER BY time`; a transaction commits after a later one."""
    source, told, world = followed_window(tmp_path)
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
    source, told, world = followed_window(tmp_path)
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
