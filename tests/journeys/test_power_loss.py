"""The power is cut in the middle of a run: whatever the disk then holds, the next run is right.

The long run is ``python -m campaigns power``.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crashes.killed import kill_again_and_again
from tests.support.crashes.power_mutants import MUTANTS
from tests.support.crashes.power_scenes import SCENES
from tests.support.crashes.preloaded import CrashRuns, PowerCuts, has_compiler, in_memory

with_compiler = pytest.mark.skipif(not has_compiler(), reason="needs Linux and a C compiler")
STATES = 24


@pytest.fixture(scope="module")
def cuts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PowerCuts]:
    with (
        tempfile.TemporaryDirectory(dir=in_memory(tmp_path_factory.mktemp("power"))) as home,
        PowerCuts(Path(home) / "power") as started,
    ):
        yield started


@with_compiler
@pytest.mark.parametrize(
    ("scene", "seed", "twice"),
    [
        ("pull", 3, True),
        ("pull", 2038, False),  # into a folder that was not there: its name was not synced
        ("rename", 0, False),  # copies move to a folder that was not there
        ("rename", 2, True),
        ("rename", 12, False),  # where a copy was there is a folder by then
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
    assert cut.states >= cut.judged > STATES // 4


@with_compiler
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_way_of_writing_is_found(cuts: PowerCuts, mutant: str) -> None:
    scene = MUTANTS[mutant][0][0]
    seeds = range(12, 18)
    assert any(cuts.cut(scene, seed, most=2 * STATES, mutant=mutant).wrong for seed in seeds)


KILLS = 12
MANY = 24
"""Points of each scene; ``python -m campaigns crash`` tries all of them."""


@with_compiler
def test_whatever_operation_fails_nothing_is_lost_and_the_next_run_heals(tmp_path: Path) -> None:
    with (
        tempfile.TemporaryDirectory(dir=in_memory(tmp_path)) as home,
        CrashRuns(Path(home) / "runs") as runs,
    ):
        for name in SCENES:
            failed = runs.fail(name, 3, most=MANY)

            assert failed.wrong == []
            assert failed.points > 10 * failed.tried == 10 * MANY
            assert failed.hits > failed.tried + failed.compound > MANY


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_many_kills_of_pull_and_of_publish_lose_nothing_and_show_nothing_partial(
    tmp_path: Path,
) -> None:
    assert min(kill_again_and_again(tmp_path, kills=KILLS, seed=2026).values()) >= KILLS
