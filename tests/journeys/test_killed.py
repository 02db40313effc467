"""SIGKILL at random moments of ``pull`` and of ``publish``: real processes, HTTP and disk."""

from pathlib import Path

import pytest

from tests.support.crashes.killed import kill_again_and_again

KILLS = 12


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_many_kills_of_pull_and_of_publish_lose_nothing_and_show_nothing_partial(
    tmp_path: Path,
) -> None:
    killed = kill_again_and_again(tmp_path, kills=KILLS, seed=2026)

    assert min(killed.values()) >= KILLS
