"""Workers and tables give files the names that a plain pull gives them."""

import random
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from tests.support.simulated.shared_world import SharedCampaign
from tests.support.worlds.world import BASE, World


class Unmoved(random.Random):
    """No worker dies, and what was done is folded into the table."""

    def random(self) -> float:
        return 0.5


PIECES = ["a", "b", "a+b", "a%2Bb", "index.html", "%C3%A9", "a-b"]


def some(luck: random.Random) -> str:
    names = [luck.choice(PIECES) for _ in range(luck.randint(1, 3))]
    return "/".join(names) + luck.choice(["", "", "/"])


@pytest.mark.parametrize("seed", range(6))
def test_a_mirror_with_a_table_has_the_names_of_a_plain_one(tmp_path: Path, seed: int) -> None:
    luck = random.Random(seed)
    shared = SharedCampaign(tmp_path / "shared", style=None, max_entries=1_000)
    shared.luck = Unmoved()
    plain = World(tmp_path / "plain")
    try:
        for _ in range(4):
            names = {some(luck) for _ in range(luck.randint(2, 6))}
            for world in (shared, plain):
                for name in names:
                    world.put(name, f"content of {name}")
                world.publish()
                report = world.pull(BASE, mode=luck.choice(["auto", "baseline"]))
                assert report.state is MirrorState.IN_SYNC
            assert shared.files_on_disk() == plain.files_on_disk()
    finally:
        shared.close()
