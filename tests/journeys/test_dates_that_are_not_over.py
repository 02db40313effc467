"""A ``lastmod`` proves nothing about what may still happen within it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from resourcesync.errors import SourceUnavailableError
from tests.support.worlds.dated_server import DatedServer, pages_asked
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World

MORNING = datetime(2026, 11, 22, 8, tzinfo=UTC)
AFTERNOON = datetime(2026, 11, 22, 15, tzinfo=UTC)
NOON_AFTER = datetime(2026, 11, 23, 12, tzinfo=UTC)
"""The day is over in the last time zone."""
OK = [("page", 200)]
SAME = [("page", 304)]


@pytest.fixture
def world(tmp_path: Path) -> World[DatedServer]:
    world = World(tmp_path / "mirror", DatedServer())
    world.clock.set(datetime(2026, 11, 22, 7, tzinfo=UTC))
    world.source.edit("page", "of the morning")
    world.clock.set(MORNING)
    return world


@pytest.mark.parametrize("day", ["2026-11-22", "2026-11-22T00:00:00Z"])
@pytest.mark.parametrize("tag", ["", '"{}"'])
def test_a_page_that_changes_on_the_day_that_its_sitemap_says_is_fetched_again(
    world: World[DatedServer], day: str, tag: str
) -> None:
    world.source.sitemap, world.source.tag = {"page": day}, tag
    assert pages_asked(world) == OK
    world.clock.set(AFTERNOON)
    world.source.edit("page", "of the afternoon")
    world.clock.set(datetime(2026, 12, 22, tzinfo=UTC))
    assert pages_asked(world) == OK
    assert world.files() == {BASE + "page": b"of the afternoon"}


@pytest.mark.parametrize("month", ["2026-11", "2026", "2020-01"])
def test_a_month_proves_nothing(world: World[DatedServer], month: str) -> None:
    world.source.sitemap = {"page": month}
    assert pages_asked(world) == OK
    world.clock.set(AFTERNOON)
    world.source.edit("page", "of the afternoon")
    world.clock.set(datetime(2027, 12, 22, tzinfo=UTC))
    assert pages_asked(world) == OK
    assert pages_asked(world) == SAME


def test_where_a_server_says_no_time_what_a_run_fetches_is_of_its_beginning(
    world: World[DatedServer],
) -> None:
    world.source.date, world.source.tag = "", '"of the content"'
    world.source.sitemap = {"page": "2026-11-22"}
    assert pages_asked(world) == OK
    world.clock.set(NOON_AFTER)
    assert pages_asked(world) == SAME
    assert pages_asked(world) == []


def test_a_date_of_a_page_that_failed_first_proves_nothing_either(
    world: World[DatedServer],
) -> None:
    world.source.sitemap = {"page": "2026-11-22"}
    page = BASE + "page"
    world.network.answers[page] = SourceUnavailableError("busy", uri=page)
    world.pull()
    del world.network.answers[page]
    assert pages_asked(world) == OK
    world.clock.set(AFTERNOON)
    world.source.edit("page", "of the afternoon")
    world.clock.set(NOON_AFTER)
    assert pages_asked(world) == OK
