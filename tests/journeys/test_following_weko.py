"""WEKO3's Change Lists of days, which an ``urlset`` lists, are followed."""

from datetime import timedelta
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from tests.support.software.software_source import SoftwareSource, software_world
from tests.support.software.weko import Weko
from tests.support.worlds.world import World


@pytest.fixture(params=[0, 9], ids=["its clock is that of UTC", "its clock is that of Japan"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> World[SoftwareSource]:
    world = software_world(tmp_path / "mirror", Weko(ahead=timedelta(hours=request.param)))
    world.source.begin(one="1", two="2", three="3")
    report = world.pull()
    assert (report.mode, report.state) == (Mode.BASELINE, MirrorState.IN_SYNC)
    return world


def assert_followed(world: World[SoftwareSource], created: int, updated: int, deleted: int) -> None:
    """Its Resource List is of the moment of each request, and so is read each time."""
    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert (report.created, report.updated, report.deleted) == (created, updated, deleted)
    assert world.told("warning") == []
    assert world.in_sync()


def test_the_list_of_the_day_grows_though_its_index_says_that_it_has_ended(
    world: World[SoftwareSource],
) -> None:
    for number in range(30):  # on over the nights, by Japan's and by UTC's clock
        world.clock.advance(hours=2)
        world.source.change(one=f"1, version {number}")
        assert_followed(world, 0, 1, 0)
