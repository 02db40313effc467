"""The nth operation on the disk fails, once or from then on: every end is told, and healed."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.failing import KINDS, SCENES, Point, Scenes, has_compiler, scenes

pytestmark = pytest.mark.skipif(not has_compiler(), reason="needs Linux and a C compiler")
TRIALS = 3
"""Points of each kind in a run of the tests; ``python -m campaigns crash`` tries all of them."""


@pytest.fixture(scope="module")
def prepared() -> Iterator[Scenes]:
    """Work in memory where there is such a disk: each of hundreds of runs syncs its files."""
    memory = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as home,
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
