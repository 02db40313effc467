"""Old copies of a Source's lists, from a replica or a cache, end no copy that came later."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import RollbackError
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.moving import Moving
from tests.support.worlds.network import BASE, Network
from tests.support.worlds.world import World


def world_that_moves(tmp_path: Path, source: LooseSource) -> tuple[World[LooseSource], Moving]:
    moving = Moving(source.entry.removeprefix(BASE))
    return World(tmp_path, source, network=Network(moving.route)), moving


def made_again(source: LooseSource, *, gap: bool = False) -> LooseSource:
    """Delete a.txt and make it again; return the Source as it was between."""
    for name in ("a.txt", "b.txt", "c.txt"):
        source.put(name, "at first")
    source.publish()
    if gap:
        source.rotate()
    source.publish_deletion("a.txt")
    older = source.saved()
    source.publish_file("a.txt", "made again")
    return older


@pytest.mark.parametrize("times", [True, False])
def test_a_deletion_of_an_old_replica_at_the_new_address_takes_no_copy_away(
    tmp_path: Path, times: bool
) -> None:
    """The resource was made again since, and the replica answers for it, too."""
    source = LooseSource(times=times)
    world, moving = world_that_moves(tmp_path, source)
    older = made_again(source)
    source.snapshot()
    moving.pull(world)
    assert world.in_sync()
    moving.move("http://moved.example/")
    world.network.origin = older.serve

    report = moving.pull(world)

    assert world.texts().get("a.txt") == "made again"
    assert report.state is not MirrorState.IN_SYNC


@pytest.mark.parametrize("times", [True, False])
def test_an_old_reading_that_does_not_reach_back_takes_no_copy_away(
    tmp_path: Path, times: bool
) -> None:
    """The replica has the lists and the 404 of before a resource was made again."""
    source = LooseSource(times=times)
    world = World(tmp_path, source)
    older = made_again(source, gap=True)
    world.pull()
    assert world.texts()["a.txt"] == "made again"
    world.network.origin = older.serve

    report = world.pull()

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

    report = moving.pull(world)

    assert report.state is not MirrorState.IN_SYNC
    with pytest.raises(RollbackError):  # nor does it count as what was processed
        moving.pull(world)
    world.network.origin = source.serve
    assert moving.pull(world).state is MirrorState.IN_SYNC
