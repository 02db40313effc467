"""CORE's Change List of packages and WEKO3's lists of days, which an ``urlset`` lists."""

from datetime import timedelta
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from tests.support.software.fastsync import ENTRY, Style, core_world, update
from tests.support.software.software_source import software_world
from tests.support.software.weko import Weko
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


@pytest.mark.parametrize("ahead", [0, 9], ids=["clock of UTC", "clock of Japan"])
def test_the_list_of_the_day_grows_though_its_index_says_that_it_has_ended(
    tmp_path: Path, ahead: int
) -> None:
    """Its Resource List is of the moment of each request, and so is read each time."""
    world = software_world(tmp_path / "mirror", Weko(ahead=timedelta(hours=ahead)))
    world.source.begin(one="1", two="2", three="3")
    assert world.pull().mode is Mode.BASELINE
    for number in range(30):  # on over the nights, by Japan's and by UTC's clock
        world.clock.advance(hours=2)
        world.source.change(one=f"1, version {number}")

        report = world.pull()

        assert report.state is MirrorState.IN_SYNC
        assert (report.created, report.updated, report.deleted) == (0, 1, 0)
        assert world.told("warning") == []
        assert world.in_sync()
