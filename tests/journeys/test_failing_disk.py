"""Operations on the disk that fail, and SIGKILL at random moments: every end is healed."""

import tempfile
from pathlib import Path

import pytest

from tests.support.crashes.killed import kill_again_and_again
from tests.support.crashes.power_scenes import SCENES
from tests.support.crashes.preloaded import CrashRuns, has_compiler, in_memory

KILLS = 12
MANY = 24
"""Points of each scene; ``python -m campaigns crash`` tries all of them."""


@pytest.mark.skipif(not has_compiler(), reason="needs Linux and a C compiler")
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
    killed = kill_again_and_again(tmp_path, kills=KILLS, seed=2026)

    assert min(killed.values()) >= KILLS
