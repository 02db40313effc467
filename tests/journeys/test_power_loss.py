"""The power is cut in the middle of a run: whatever the disk then holds, the next run is right.

The long run is ``python -m campaigns power``.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.power_cuts import PowerCuts, has_compiler
from tests.support.power_mutants import MUTANTS

pytestmark = pytest.mark.skipif(not has_compiler(), reason="needs Linux and a C compiler")
STATES = 24


@pytest.fixture(scope="module")
def cuts() -> Iterator[PowerCuts]:
    memory = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as home,
        PowerCuts(Path(home) / "power") as started,
    ):
        yield started


@pytest.mark.parametrize(
    ("scene", "seed", "twice"),
    [
        ("pull", 3, True),
        ("pull", 2038, False),  # into a folder that was not there: its name was not synced
        ("publish", 2033, True),
        ("publish", 2040, False),  # the same
    ],
)
def test_whatever_a_power_cut_leaves_nothing_is_wrong_and_the_next_run_is_right(
    cuts: PowerCuts, scene: str, seed: int, *, twice: bool
) -> None:
    cut = cuts.cut(scene, seed, most=STATES, twice=twice)

    assert cut.wrong == []
    assert cut.operations > 20
    assert cut.states > STATES // 2


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_way_of_writing_is_found(cuts: PowerCuts, mutant: str) -> None:
    assert cuts.cut("pull", 2, most=2 * STATES, mutant=mutant).wrong
