"""CORE's Change List of packages is followed, and the bytes come from the packages."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from tests.support.software.fastsync import ENTRY, Style, core_world, update
from tests.support.software.software_source import SoftwareSource
from tests.support.worlds.rewriting import killed
from tests.support.worlds.world import World

STYLES = {
    "with intervals": Style(),
    "without intervals": Style(intervals=False),
    "with a time zone": Style(zone="Z"),
    "with a blank": Style(between=" "),
}


@pytest.fixture(params=list(STYLES.values()), ids=list(STYLES))
def world(tmp_path: Path, request: pytest.FixtureRequest) -> World[SoftwareSource]:
    world = core_world(tmp_path / "mirror", request.param)
    world.source.begin(one="1", two="2", three="3")
    world.source.software.documents(world.source.known)
    world.source.change(three="3, again", five="5")
    update(world)
    report = world.pull(ENTRY)
    assert (report.mode, report.state) == (Mode.BASELINE, MirrorState.IN_SYNC)
    assert world.in_sync()
    return world


def follow(world: World[SoftwareSource], created: int, updated: int, deleted: int) -> None:
    report = world.pull(ENTRY)

    assert (report.mode, report.state) == (Mode.INCREMENTAL, MirrorState.IN_SYNC)
    assert (report.created, report.updated, report.deleted) == (created, updated, deleted)
    assert world.told("warning") == []
    assert world.in_sync()
    assert not any(uri.endswith(".html") for uri in world.fetcher.asked)


def test_several_packages_are_read_in_their_turn(world: World[SoftwareSource]) -> None:
    for number in range(3):
        world.source.change(two=f"2, version {number}", **{f"new{number}": f"new {number}"})
        update(world)
    world.source.change(new1=None)
    update(world)

    follow(world, 2, 1, 0)
    world.source.change(two=None, new2="new, again")
    update(world)
    follow(world, 0, 1, 1)


def test_what_is_still_to_be_fetched_comes_from_a_package_later(
    world: World[SoftwareSource],
) -> None:
    world.source.change(one="1, again")
    update(world)
    world.pull(ENTRY, lists_only=True)
    assert not world.in_sync()

    world.pull(ENTRY)  # the Change List is as it was, and one request seems to cost less
    world.clock.advance(hours=1)

    report = world.pull(ENTRY)

    assert (report.state, report.updated) == (MirrorState.IN_SYNC, 1)
    assert world.in_sync()


def test_a_change_list_that_began_empty_is_followed(tmp_path: Path) -> None:
    world = core_world(tmp_path / "mirror", Style())
    world.source.begin(one="1", two="2")
    world.pull(ENTRY)
    world.source.change(one="1, again", two=None)
    update(world)

    report = world.pull(ENTRY)  # nobody could know that its entries are packages: all is read

    assert (report.mode, report.state) == (Mode.BASELINE, MirrorState.IN_SYNC)
    assert world.in_sync()
    world.source.change(one="1, once more")
    update(world)
    follow(world, 0, 1, 0)


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
