"""A ``lastmod`` proves nothing about what may still happen within it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from resourcesync.errors import SourceUnavailableError
from tests.support.worlds.dated_server import SITEMAP, DatedServer, pages_asked
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


def test_a_page_is_asked_for_with_a_condition_until_its_day_is_over_and_once_more(
    world: World[DatedServer],
) -> None:
    world.source.sitemap = {"page": "2026-11-22"}
    assert pages_asked(world) == OK
    assert pages_asked(world) == SAME
    world.clock.set(AFTERNOON)
    assert pages_asked(world) == SAME
    world.clock.set(NOON_AFTER)
    assert pages_asked(world) == SAME
    assert pages_asked(world) == []
    assert pages_asked(world) == []
    assert world.fetcher.asked == [SITEMAP], "and that with a condition"


@pytest.mark.parametrize("month", ["2026-11", "2026", "2020-01"])
def test_a_month_proves_nothing(world: World[DatedServer], month: str) -> None:
    world.source.sitemap = {"page": month}
    assert pages_asked(world) == OK
    world.clock.set(AFTERNOON)
    world.source.edit("page", "of the afternoon")
    world.clock.set(datetime(2027, 12, 22, tzinfo=UTC))
    assert pages_asked(world) == OK
    assert pages_asked(world) == SAME


def test_a_month_beside_its_first_day_is_not_taken_for_it(world: World[DatedServer]) -> None:
    names = [f"{number:04}" for number in range(1_200)]
    for name in names:
        world.source.edit(name, "x")
    world.clock.advance(hours=1)
    world.source.sitemap = {
        name: "2026-01-01" if n % 2 else "2026-01" for n, name in enumerate(names)
    }
    world.pull()
    assert pages_asked(world) == [(name, 304) for name in names[::2]]


def test_a_page_whose_day_was_over_is_asked_for_once(world: World[DatedServer]) -> None:
    world.source.sitemap = {"page": "2026-11-20"}
    assert pages_asked(world) == OK
    assert pages_asked(world) == []


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [
        ("2026-11-22T08:00Z", 60),
        ("2026-11-22T08:00:00Z", 60),
        ("2026-11-22T08:00:01Z", 1),
        ("2026-11-22T08:00:01.25Z", 1),
    ],
)
def test_the_minute_and_the_second_of_a_page_must_be_over_too(
    world: World[DatedServer], moment: str, seconds: int
) -> None:
    world.clock.set(datetime(2026, 11, 22, 8, 0, 1, tzinfo=UTC))
    world.source.sitemap, world.source.tag = {"page": moment}, '"of the content"'
    assert pages_asked(world) == OK
    assert pages_asked(world) == SAME
    world.clock.advance(seconds=seconds)
    assert pages_asked(world) == SAME
    assert pages_asked(world) == []


def test_a_server_says_by_its_own_clock_of_when_its_answer_is(world: World[DatedServer]) -> None:
    world.source.sitemap, world.source.tag = {"page": "2026-11-22"}, '"{}"'
    world.source.date = "Sun, 22 Nov 2026 08:00:00 GMT"
    world.clock.set(NOON_AFTER)
    assert pages_asked(world) == OK, "a cache answers, with what it was given in the morning"
    assert pages_asked(world) == SAME
    world.clock.set(AFTERNOON)
    world.source.edit("page", "of the afternoon")
    world.clock.set(NOON_AFTER)
    world.source.date = None
    assert pages_asked(world) == OK
    assert pages_asked(world) == []


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
