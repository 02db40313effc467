"""Pages whose dates do not move are requested again within a period, a few in each pull."""

from pathlib import Path

import pytest

from resourcesync.ports import FetchRequest
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.plain_site import DAY, HOUR, FrozenSite
from tests.support.worlds.world import World

SIX_HOURS = 6 * HOUR


def mirrored(home: Path, site: FrozenSite) -> World[FrozenSite]:
    world = World(home, site)
    assert world.pull().state == "in sync"
    site.answers.clear()
    return world


def pulls(world: World[FrozenSite], days: float, every: int = SIX_HOURS) -> list[list[str]]:
    asked = []
    for _ in range(round(days * DAY) // every):
        world.clock.advance(seconds=every)
        world.pull()
        asked.append(world.source.asked())
    return asked


@pytest.mark.parametrize("day", [0, 1, 3, 6])
def test_a_page_edited_at_any_time_is_seen_within_the_period(tmp_path: Path, day: int) -> None:
    world = mirrored(tmp_path, FrozenSite(200))
    pulls(world, day)
    world.source.edit("0000.html", "0100.html", "0199.html")
    pulls(world, 7)
    assert world.in_sync()


def test_rechecks_of_an_unchanged_site_are_spread_and_transfer_no_page(tmp_path: Path) -> None:
    world = mirrored(tmp_path, FrozenSite(200))
    site = world.source
    world.clock.advance(seconds=SIX_HOURS)
    report = world.pull()
    assert 0 < len(site.answers) <= 10
    assert {status for _, status in site.answers} == {304}
    assert report.state == "in sync"
    assert report.updated == 0
    site.asked()
    rest = pulls(world, 6.75)
    assert len({name for asked in rest for name in asked}) >= 190
    assert all(len(asked) <= 10 for asked in rest)


def test_one_stale_page_is_told_and_sets_the_period_back(tmp_path: Path) -> None:
    world = mirrored(tmp_path, FrozenSite(200))
    pulls(world, 8)  # all were asked: the period has doubled
    with world.state() as state:
        assert '"period":1209600000000' in (state.note("rechecks") or "")
    world.source.edit("0150.html")
    pulls(world, 14)
    assert world.in_sync()
    with world.state() as state:
        assert '"period":604800000000' in (state.note("rechecks") or "")


def test_without_validators_a_sample_of_one_in_a_hundred_is_requested(tmp_path: Path) -> None:
    world = mirrored(tmp_path, FrozenSite(200, has_validators=False))
    first, second = ([name for asked in pulls(world, 7) for name in asked] for _ in range(2))
    assert 1 <= len(first) <= 3
    assert 1 <= len(second) <= 3
    assert not {*first} & {*second}, "another sample in each round"


def test_rechecks_end_after_a_tenth_of_the_time_for_a_pull(tmp_path: Path) -> None:
    world = mirrored(tmp_path, FrozenSite(400))

    def slow(request: FetchRequest) -> Answer | Exception:
        world.clock.advance(seconds=300)
        return world.source.serve(request)

    for name in world.source.pages:
        world.network.answers[BASE + name] = slow
    world.clock.advance(seconds=10_000)
    world.pull()
    assert len(world.source.asked()) == 4, "1,000 seconds of 10,000"


def test_a_page_that_is_gone_stays_known_as_gone(tmp_path: Path) -> None:
    world = mirrored(tmp_path, FrozenSite(20))
    site = world.source
    world.network.answers[f"{BASE}0000.html"] = Answer(status=404)
    world.clock.advance(seconds=DAY)
    assert (world.pull().listed.absent, world.pull().listed.absent) == (1, 1)
    site.dates["0019.html"] = "2024-02-01"  # the sitemap changes
    assert world.pull().listed.absent == 1


def test_a_change_that_lists_without_hashes_never_tell_is_seen_within_thirty_days(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, LooseSource(hashes=False))
    source = world.source
    for number in range(20):
        source.put(f"{number}.txt", "as listed")
    source.publish()
    world.pull()
    source.put("13.txt", "changed, and never listed as such")
    days = 0
    while not world.in_sync() and days < 40:
        world.clock.advance(seconds=DAY)
        days += 1
        assert world.pull().state == "in sync"
        assert len(world.asked_resources()) <= 1
    assert days <= 30
