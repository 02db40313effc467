"""The nth operation on the disk fails, once or from then on: every end is told, and healed."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crashes.failing import KINDS, SCENES, Point, Scenes, scenes
from tests.support.crashes.power_scenes import SCENES as RUNS
from tests.support.crashes.preloaded import CrashRuns, has_compiler, in_memory

pytestmark = pytest.mark.skipif(not has_compiler(), reason="needs Linux and a C compiler")
TRIALS = 1
"""Points of each kind at which our command is let fail, as a process of its own."""
MANY = 16
"""Points of all kinds in one process; ``python -m campaigns crash`` tries all of them."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenes]:
    """Work in memory where there is such a disk: each of hundreds of runs syncs its files."""
    with (
        tempfile.TemporaryDirectory(dir=in_memory(tmp_path_factory.mktemp("disk"))) as home,
        scenes(Path(home)) as made,
    ):
        yield made


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scene", SCENES)
def test_whatever_operation_fails_nothing_is_lost_and_the_next_run_heals(
    prepared: Scenes, scene: str
) -> None:
    wrong = {}
    for number, error in enumerate(KINDS):
        count = prepared.operations(scene, error)
        assert count > 20, "hardly anything could fail: nothing is proven"
        step = count // TRIALS
        for nth in range(number * 7 % step, count, step):
            point = Point(scene, nth, error, persistent=nth % 2 == 0)
            wrong[str(point)] = prepared.trial(point)

    assert {point: found for point, found in wrong.items() if found} == {}


def test_a_failure_is_really_met(prepared: Scenes) -> None:
    mirror, words = prepared.prepare("baseline")
    error = next(iter(KINDS))

    ended = prepared.host.run(*words, root=mirror, point=Point("baseline", 5, error, True))

    assert ended.hits > 0
    assert ended.code == 8
    assert "No space left" in prepared.host.said.read_text()


def test_whatever_fails_in_the_run_and_in_the_next_one_no_harm_is_left(tmp_path: Path) -> None:
    with (
        tempfile.TemporaryDirectory(dir=in_memory(tmp_path)) as home,
        CrashRuns(Path(home) / "runs") as runs,
    ):
        for name in RUNS:
            failed = runs.fail(name, 3, most=MANY)

            assert failed.wrong == []
            assert failed.points > 10 * failed.tried == 10 * MANY
            assert failed.hits > failed.tried + failed.compound > MANY
