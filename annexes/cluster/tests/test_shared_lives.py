"""Hard lives of mirrors for which workers fetch: the same promises as those of all others."""

import random
from pathlib import Path

import pytest

from tests.support.simulated.campaign import Campaign
from tests.support.simulated.lives import born
from tests.support.worlds.shared_workers import SharedWorkers

pytestmark = pytest.mark.usefixtures("without_fsync")

STEPS = 30


def live(folder: Path, seed: int) -> SharedWorkers:
    style, max_entries, moves = born(seed, STEPS)
    folder.mkdir()
    workers = SharedWorkers(random.Random(f"{style} {max_entries}"))
    campaign = Campaign(folder / "mirror", style=style, max_entries=max_entries, workers=workers)
    try:
        for move in moves:
            campaign.do(move)
        campaign.heal()
    except Exception as error:
        error.add_note(f"the life of seed {seed}: {style}, {max_entries} entries, {moves}")
        raise
    return workers


def test_a_mirror_with_workers_ends_in_step_whatever_happens_and_never_lies(
    tmp_path: Path,
) -> None:
    workers = [live(tmp_path / str(seed), seed) for seed in (21, 22, 97, 216, 311)]

    assert sum(each.brought for each in workers) > 20, "workers had work"
    assert sum(each.lost for each in workers) > 3, "workers died"
