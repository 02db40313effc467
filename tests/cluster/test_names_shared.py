"""Workers and tables give files the names that a plain pull gives them."""

import random
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from tests.support.worlds.folder_home import FolderHome
from tests.support.worlds.network import BASE
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.table_workers import Steady, TableWorkers
from tests.support.worlds.world import World

PIECES = ["a", "b", "a+b", "a%2Bb", "index.html", "%C3%A9", "a-b"]


def some(luck: random.Random) -> str:
    names = [luck.choice(PIECES) for _ in range(luck.randint(1, 3))]
    return "/".join(names) + luck.choice(["", "", "/"])


@pytest.mark.parametrize("seed", range(6))
def test_a_mirror_with_a_table_has_the_names_of_a_plain_one(tmp_path: Path, seed: int) -> None:
    luck = random.Random(seed)
    plain = World(tmp_path / "plain")
    with TableWorkers(Steady()) as workers:
        shared = World(FolderHome(tmp_path / "shared", workers), PublishedSource())
        for _ in range(4):
            names = {some(luck) for _ in range(luck.randint(2, 6))}
            for world in (shared, plain):
                for name in names:
                    world.source.put(name, f"content of {name}")
                world.source.publish()
                report = world.pull(BASE, mode=luck.choice(["auto", "baseline"]))
                assert report.state is MirrorState.IN_SYNC
            assert shared.home.files_on_disk() == plain.home.files_on_disk()
