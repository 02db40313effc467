"""Worlds that the journeys start from."""

from pathlib import Path

import pytest

from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World


@pytest.fixture
def world(tmp_path: Path) -> World[PublishedSource]:
    world = World(tmp_path / "mirror")
    for number in range(40):
        world.source.put(f"objects/{number:04}.html", f"content of {number}")
    world.source.put("index.html", "home")
    world.source.publish()
    return world
