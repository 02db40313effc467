"""Lists with holes, without times, from the past or the future, each as the shortest life that
strayed because of them."""

import re
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.model.timestamps import to_microseconds
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import World

RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"


@pytest.fixture
def holed(tmp_path: Path) -> World[LooseSource]:
    """A Source whose Change List begins after its Resource List, with a change in between."""
    world = World(tmp_path / "mirror", LooseSource())
    world.source.publish_file("a.txt", "a")
    world.source.publish_file("b.txt", "b")
    world.source.rotate()
    return world


def test_a_first_pull_over_a_hole_is_not_called_in_sync_and_is_mended_by_the_next_resource_list(
    holed: World[LooseSource],
) -> None:
    first = holed.pull()
    holed.source.publish_file("c.txt", "c")
    second = holed.pull()
    holed.source.snapshot()
    third = holed.pull()

    assert (first.state, first.created) == (MirrorState.BEHIND, 1)
    assert (second.state, second.mode, second.created) == (MirrorState.BEHIND, Mode.INCREMENTAL, 1)
    assert (third.state, third.created) == (MirrorState.IN_SYNC, 1)
    assert holed.in_sync()


def test_a_baseline_over_a_hole_deletes_nothing_for_being_absent(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror", LooseSource())
    world.source.publish_file("a.txt", "a")
    world.source.publish_file("b.txt", "b")
    world.pull()
    world.source.rotate()

    report = world.pull(mode="baseline")

    assert (report.deleted, report.state) == (0, MirrorState.BEHIND)
    assert world.in_sync()


def test_a_gap_behind_an_index_that_tells_no_intervals_is_found(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror", LooseSource(index=True, announces=False, keep=0))
    world.source.publish_file("a.txt", "a")
    world.pull()
    world.source.publish_file("b.txt", "b")
    world.source.rotate()
    world.source.snapshot()

    report = world.pull()

    assert [fields["code"] for fields in world.told("warning")] == ["change-gap"]
    assert (report.mode, report.state) == (Mode.BASELINE, MirrorState.IN_SYNC)
    assert world.in_sync()


@pytest.mark.parametrize("hashes", [True, False])
def test_changes_without_a_time_are_fetched_once_and_none_is_lost(
    tmp_path: Path, *, hashes: bool
) -> None:
    world = World(tmp_path / "mirror", LooseSource(times=False, hashes=hashes, lastmods=not hashes))
    world.source.publish_file("a.txt", "a")
    world.pull()
    world.source.publish_file("a.txt", "b")

    assert world.pull().updated == 1
    assert world.pull().mode is Mode.UNCHANGED
    assert world.asked_resources() == []
    world.source.publish_deletion("a.txt")
    assert world.pull().deleted == 1
    assert world.in_sync()


@pytest.mark.parametrize("lists", [1, 2])
def test_an_old_deletion_without_a_time_is_not_obeyed_against_a_newer_creation(
    tmp_path: Path, lists: int
) -> None:
    world = World(tmp_path / "mirror", LooseSource(times=False, index=True, announces=False))
    world.source.publish_file("a.txt", "a")
    world.source.publish_deletion("a.txt")
    if lists == 2:
        world.source.rotate()
    world.source.publish_file("a.txt", "again")
    world.source.snapshot()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_change_in_the_second_of_the_last_one_is_not_taken_for_it_without_a_hash(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "mirror", LooseSource(hashes=False, whole_seconds=True))
    world.source.publish_file("a.txt", "one")
    world.pull()
    world.source.publish_file("a.txt", "two")
    world.pull()
    world.source.put("a.txt", "six")
    world.clock.advance(seconds=0.1)
    world.source.lists.publish(
        to_microseconds(world.clock.now()), world.source.originals.contents()
    )
    world.source.show()

    world.pull()

    assert world.in_sync()


def test_a_change_from_the_far_future_hides_none_of_those_that_come_after_it(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "mirror", LooseSource(index=True))
    world.source.publish_file("a.txt", "a")
    bogus = f'<url><loc>{BASE}gone.txt</loc><rs:md change="deleted" datetime="9999-01-01"/></url>'
    world.source.lists.open_list.entries.append(bogus)
    world.source.show()
    world.pull()
    assert [fields["code"] for fields in world.told("warning")] == ["clock-skew"]
    world.source.publish_file("b.txt", "b")
    world.source.rotate()
    world.source.publish_file("c.txt", "c")
    world.source.rotate()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


@pytest.mark.parametrize("times", [True, False])
def test_an_old_copy_of_a_list_beside_a_newer_resource_list_undoes_nothing(
    tmp_path: Path, *, times: bool
) -> None:
    world = World(tmp_path / "mirror", LooseSource(times=times))
    world.source.publish_file("a.txt", "a")
    world.pull()
    world.source.publish_deletion("a.txt")
    old = world.source.honest(f"{BASE}resourcesync/changelist.xml")
    world.source.publish_file("a.txt", "a")
    world.source.rotate()
    world.source.snapshot()
    assert world.pull().mode is Mode.BASELINE
    world.network.answers[f"{BASE}resourcesync/changelist.xml"] = old

    world.pull()
    assert world.in_sync()
    world.network.answers.clear()
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_resource_list_from_the_far_future_does_not_hide_later_changes(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror", LooseSource())
    world.source.publish_file("a.txt", "a")
    text = world.source.lists.documents()["resourcelist.xml"]
    future = re.sub(r'at="[^"]*"', 'at="9999-01-01T00:00:00Z"', text)
    world.network.answers[RESOURCE_LIST] = Answer(body=future.encode())

    report = world.pull()

    assert "clock-skew" in [fields["code"] for fields in world.told("warning")]
    assert report.as_of is None
    world.network.answers.clear()
    world.source.publish_file("a.txt", "b")
    world.source.snapshot()
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_resource_list_of_a_day_ahead_is_believed(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror", LooseSource())
    world.source.publish_file("a.txt", "a")
    world.clock.advance(hours=-23)

    assert world.pull().as_of is not None
    assert world.told("warning") == []


def test_a_list_that_does_not_say_of_when_it_is_is_told_once(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror", LooseSource())
    world.source.publish_file("a.txt", "a")
    text = re.sub(r' at="[^"]*"', "", world.source.lists.documents()["resourcelist.xml"])
    world.network.answers[RESOURCE_LIST] = Answer(body=text.encode())

    told = []
    for _ in range(3):
        world.pull()
        told += [fields["code"] for fields in world.told("warning")]

    assert told.count("no-time") == 1
    world.network.answers.clear()
    world.pull(mode="baseline")
    world.network.answers[RESOURCE_LIST] = Answer(body=text.encode())
    world.pull(mode="baseline")
    assert "no-time" in [fields["code"] for fields in world.told("warning")]
