"""Whatever happens at Sources of other software: a mirror that says in sync is."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from resourcesync.destination.planner import DeletionLimit
from resourcesync.destination.reports import MirrorState
from tests.support.software.dspace import CAPABILITY_LIST, DSpace, DSpaceOfJuly, DSpaceOfMay
from tests.support.software.fastsync import ENTRY, Style, core_world, update
from tests.support.software.software_source import SoftwareSource, software_world
from tests.support.software.weko import Weko
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World

_STEPS = 12
_NAMES = "abcdef"

Life = tuple[World[SoftwareSource], str, Callable[[], None]]
"""A world, where to pull from, and what makes its Source tell what happened."""


def weko(folder: Path, _: random.Random) -> Life:
    return software_world(folder, Weko()), BASE, lambda: None


def dspace(folder: Path, chance: random.Random, software: DSpace) -> Life:
    world = software_world(folder, software)

    def work() -> None:
        world.clock.advance(seconds=chance.choice([60, 3600]))
        (software.rebase if chance.random() < 0.2 else software.update)(world.source.known)

    return world, BASE + CAPABILITY_LIST, work


def core(folder: Path, chance: random.Random) -> Life:
    world = core_world(folder, Style(intervals=chance.random() < 0.5))
    return world, ENTRY, lambda: update(world)


LIVES: dict[str, Callable[[Path, random.Random], Life]] = {
    "WEKO3": weko,
    "DSpace of May": lambda folder, chance: dspace(folder, chance, DSpaceOfMay()),
    "DSpace of July": lambda folder, chance: dspace(folder, chance, DSpaceOfJuly()),
    "CORE": core,
}


def change(world: World[SoftwareSource], chance: random.Random) -> None:
    """Write a resource or remove it; one at least stays."""
    name, contents = chance.choice(_NAMES), world.source.contents()
    is_removed = f"{BASE}{name}.html" in contents and len(contents) > 1 and chance.random() < 0.3
    world.source.change(**{name: None if is_removed else f"{chance.random()}"})


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES.keys())
def test_a_mirror_follows(
    life: Callable[[Path, random.Random], Life], seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    world, entry, work = life(tmp_path / "mirror", chance)
    world.source.begin(a="1", b="2")
    world.source.software.documents(world.source.known)
    world.pull(entry)

    for _ in range(_STEPS):
        for _ in range(chance.randrange(4)):
            change(world, chance)
        world.clock.advance(hours=chance.choice([0, 0, 1, 5, 13, 30]))
        work()
        if chance.random() < 0.7:
            world.clock.advance(seconds=chance.choice([0, 2, 100]))
            report = world.pull(entry, max_delete=DeletionLimit(percent=100))
            assert report.state is MirrorState.IN_SYNC
            assert world.in_sync()
