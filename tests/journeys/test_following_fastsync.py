"""CORE's Change List of packages is followed, and the bytes come from the packages."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from tests.support.software.fastsync import ENTRY, Style, core_world, update
from tests.support.worlds.rewriting import killed


@pytest.mark.parametrize("writes", range(12))
def test_a_kill_between_a_file_and_what_is_known_of_it_is_got_over(
    tmp_path: Path, writes: int
) -> None:
    """Nothing but a package has the bytes; that a file is in place must not keep them away."""
    world = core_world(tmp_path / "mirror", Style())
    world.source.begin(one="1", two="2", three="3")
    world.pull(ENTRY)
    update(world)
    world.pull(ENTRY)
    world.source.change(two="2, again")
    update(world)
    killed(world, writes, source=ENTRY)
    world.source.change(one="1, again", two="2, once more")
    update(world)

    reports = [world.pull(ENTRY) for _ in range(3)]

    assert reports[-1].state is MirrorState.IN_SYNC
    assert world.in_sync()
