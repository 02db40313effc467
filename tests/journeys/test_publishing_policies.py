"""A mirror from the first day, one that begins late and one that was away follow each policy."""

import random
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.errors import StorageError
from resourcesync.model.vocabulary import Dialect
from resourcesync.source.publication_settings import ChangeLists, Policy
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

POLICIES = {
    "append": Policy(),
    "rotated": Policy(rotate=6 * 3_600),
    "rotated and dropped": Policy(rotate=3 * 3_600, keep=9 * 3_600, rebase_every=6 * 3_600),
    "rebased": Policy(rebase_up_to=4),
    "rebased and rotated": Policy(rebase_up_to=50_000, rotate=3 * 3_600, keep=6 * 3_600),
    "rebased, per run": Policy(rebase_up_to=50_000, change_lists=ChangeLists.PER_RUN),
    "per run": Policy(change_lists=ChangeLists.PER_RUN),
    "per run, dropped": Policy(
        change_lists=ChangeLists.PER_RUN, keep=12 * 3_600, rebase_every=6 * 3_600
    ),
    "archive": Policy(change_lists=ChangeLists.ARCHIVE),
    "archives of all": Policy(
        rotate=3 * 3_600, keep=6 * 3_600, rebase_every=6 * 3_600, archive=7 * 86_400
    ),
    "1.0": Policy(rotate=6 * 3_600, rebase_every=86_400, dialect=Dialect.V1_0),
    "0.9": Policy(change_lists=ChangeLists.PER_RUN, rebase_every=6 * 3_600, dialect=Dialect.V0_9),
    "0.5": Policy(change_lists=ChangeLists.ARCHIVE, dialect=Dialect.V0_5),
    "DSpace of 2013": Policy(
        change_lists=ChangeLists.ARCHIVE, rebase_every=86_400, dialect=Dialect.V0_6
    ),
}


def mirror_of(world: World[PublishedSource], folder: Path) -> World[PublishedSource]:
    other = World(folder, world.source)
    other.fetcher = world.fetcher
    return other


@pytest.mark.founding("WWW §2.1", "Any service synchronizes as often as it needs", "`pull`")
@pytest.mark.founding(
    "DSpace: Clients", "Long-term, returning and new clients all end in sync", "`pull`"
)
@pytest.mark.parametrize("name", POLICIES)
def test_every_mirror_ends_equal_whatever_the_policy(name: str, tmp_path: Path) -> None:
    luck = random.Random(name)
    world = World(tmp_path / "first", PublishedSource(max_entries=4))
    world.source.policy = POLICIES[name]
    for number in range(6):
        world.source.put(f"{number}.txt", "at first")
    world.source.publish()
    world.pull()
    away = mirror_of(world, tmp_path / "away")
    away.pull()
    for hours in range(15):
        world.clock.advance(hours=1)
        for _ in range(luck.randrange(4)):
            world.source.put(f"{luck.randrange(9)}.txt", f"{hours} {luck.random()}")
        if hours % 7 == 5:
            world.source.remove(f"{luck.randrange(9)}.txt")
        world.source.publish()
        if hours % 3 == 1:
            continue  # two runs for one pull
        world.pull()
        assert world.in_sync(), hours
        if hours % 6 == 3:
            late = mirror_of(world, tmp_path / f"late-{hours}")
            late.pull()
            assert late.in_sync(), hours
    away.pull()
    assert away.in_sync()


def test_while_a_resource_list_cannot_be_written_changes_reach_back_to_the_one_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that has room for small lists, and not for a large one."""
    world = World(tmp_path / "first")
    world.source.policy = Policy(rotate=3_600, keep=2 * 3_600, rebase_every=86_400)
    world.source.publish_file("index.txt", "at first")
    world.pull()
    write, failed = world.source.documents.write, 0

    def full(name: str, *content: Any) -> int:
        if "resourcelist" in name:
            raise StorageError("no space is left")
        return write(name, *content)

    monkeypatch.setattr(world.source.documents, "write", full)
    for hours in range(60):
        world.clock.advance(hours=1)
        if hours < 52:  # after that nothing changes: the same Resource List is tried again
            world.source.put("index.txt" if hours != 20 else "created.txt", f"{hours}")
        try:
            world.source.publish()
        except StorageError:
            failed += 1

    assert failed > 30
    assert world.pull().mode is Mode.INCREMENTAL, "a mirror that was away goes on"
    new = mirror_of(world, tmp_path / "new")
    assert new.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert new.in_sync()
    monkeypatch.undo()
    world.source.publish()
    for day in range(2):  # out of the lists, and then out of the store
        world.clock.advance(hours=25)
        world.source.publish_file("index.txt", f"at last {day}")
    assert len(list(world.source.documents.names())) < 20, "what nobody needs any more is gone"
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
