"""Worlds that the journeys start from."""

from pathlib import Path

import pytest

from tests.support.worlds.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "mirror")
    for number in range(40):
        world.put(f"objects/{number:04}.html", f"content of {number}")
    world.put("index.html", "home")
    world.publish()
    return world
