"""The nth operation on the disk fails, once or from then on: every end is told, and healed."""

import tempfile
from pathlib import Path

import pytest

from tests.support.crashes.power_scenes import SCENES
from tests.support.crashes.preloaded import CrashRuns, has_compiler, in_memory

pytestmark = pytest.mark.skipif(not has_compiler(), reason="needs Linux and a C compiler")
MANY = 24
"""Points of each scene; ``python -m campaigns crash`` tries all of them."""


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
