"""What lives of simulated Sources that move found, each in the smallest form that shows it."""

from email.utils import format_datetime
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import RollbackError
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.moving import Moving
from tests.support.worlds.network import BASE, Answer, Network
from tests.support.worlds.world import World

RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"


def world_that_moves(tmp_path: Path, source: LooseSource) -> tuple[World[LooseSource], Moving]:
    moving = Moving(source.entry.removeprefix(BASE))
    return World(tmp_path, source, network=Network(moving.route)), moving


def made_again(source: LooseSource, *, gap: bool = False) -> LooseSource:
    for name in ("a.txt", "b.txt", "c.txt"):
        source.put(name, "at first")
    source.publish()
    if gap:
        source.rotate()
    source.publish_deletion("a.txt")
    older = source.saved()
    source.publish_file("a.txt", "made again")
    return older


@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize("times", [True, False])
def test_an_old_replica_that_lacks_what_was_made_again_takes_no_copy_away(
    tmp_path: Path, times: bool, moves: bool
) -> None:
    """It has the lists and the 404 of before: at a new address, or its lists do not reach back."""
    source = LooseSource(times=times)
    world, moving = world_that_moves(tmp_path, source)
    older = made_again(source, gap=not moves)
    if moves:
        source.snapshot()
    moving.pull(world)
    assert world.in_sync()
    if moves:
        moving.move("http://moved.example/")
    world.network.origin = older.serve

    report = moving.pull(world)

    assert world.texts().get("a.txt") == "made again"
    assert report.state is not MirrorState.IN_SYNC


def test_an_old_replica_at_the_new_address_is_not_in_sync(tmp_path: Path) -> None:
    source = LooseSource()
    world, moving = world_that_moves(tmp_path, source)
    source.publish_file("a.txt", "at first")
    source.snapshot()
    older = source.saved()
    source.publish_file("a.txt", "changed")
    source.snapshot()
    moving.pull(world)
    assert world.in_sync()
    moving.move("http://moved.example/")
    world.network.origin = older.serve

    assert moving.pull(world).state is not MirrorState.IN_SYNC
    with pytest.raises(RollbackError):  # nor does it count as what was processed
        moving.pull(world)
    world.network.origin = source.serve
    assert moving.pull(world).state is MirrorState.IN_SYNC


def test_a_replica_without_the_last_change_ends_no_copy_by_a_requested_baseline(
    tmp_path: Path,
) -> None:
    world, moving = world_that_moves(tmp_path, LooseSource())
    world.source.publish_file("a.txt", "at first")
    world.source.snapshot()
    older = world.source.saved()
    world.source.publish_file("new.txt", "new")
    moving.pull(world)
    moving.move("http://moved.example/")
    world.network.origin = older.serve

    report = moving.pull(world, mode="baseline")

    assert (report.state, report.retained.open) == (MirrorState.BEHIND, 1)
    assert world.texts()["new.txt"] == "new"


@pytest.mark.parametrize("came", ["before", "between"])
def test_an_older_resource_list_at_a_new_address_takes_no_copy_away(
    tmp_path: Path, *, came: str
) -> None:
    """A replica has it, and the Change List, which got shorter, goes back to it, as it says."""
    world, moving = world_that_moves(tmp_path, LooseSource(lastmods=False))
    source = world.source
    made_again(source)
    older = source.honest(RESOURCE_LIST)
    moving.pull(world)
    if came == "between":
        source.publish_file("b.txt", "changed")
        world.network.answers[f"{BASE}b.txt"] = Answer(status=503)
        moving.move("http://moved.example/")
        assert moving.pull(world).state is MirrorState.BEHIND
        world.clock.advance(hours=1)
    source.publish_file("new.txt", "new")
    source.lists.open_list.entries.clear()
    source.snapshot()
    moving.pull(world)
    assert world.texts()["new.txt"] == "new"
    world.network.answers = {RESOURCE_LIST: older}

    for number, delete in enumerate(("auto", "never", "auto")):
        moving.move(f"http://moved{number}.example/")
        for _ in range(2):
            source.publish_file("c.txt", f"{source.moment()}")
            world.clock.advance(hours=1)
            report = moving.pull(world, delete=delete)
            assert world.texts()["new.txt"] == "new"
            assert report.state is MirrorState.BEHIND or delete == "never"
    world.network.answers.clear()
    source.snapshot()
    assert moving.pull(world).state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_what_the_first_source_served_stays_a_question_after_a_second_move(tmp_path: Path) -> None:
    """Its `Date` is ahead of its lists, which so do not prove that the resource is gone."""
    world, moving = world_that_moves(tmp_path, LooseSource(ahead=-7_200))
    source = world.source
    made_again(source)
    date = format_datetime(world.clock.now(), usegmt=True)
    world.network.answers[f"{BASE}a.txt"] = Answer(body=b"made again", headers={"date": date})
    moving.pull(world)
    world.network.answers.clear()
    source.remove("a.txt")
    source.publish()
    source.lists.open_list.entries.clear()
    source.snapshot()
    for home in ("http://moved1.example/", "http://moved2.example/"):
        world.clock.advance(seconds=60)
        moving.move(home)
        assert moving.pull(world).state is MirrorState.BEHIND

    world.clock.advance(hours=3)
    source.snapshot()
    assert moving.pull(world).state is MirrorState.IN_SYNC
    assert world.in_sync()
