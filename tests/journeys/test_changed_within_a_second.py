"""What changes twice within the second of a server's dates is seen both times."""

from pathlib import Path

import pytest

from tests.support.worlds.dated_server import DatedServer, pages_asked
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World


@pytest.fixture
def world(tmp_path: Path) -> World[DatedServer]:
    return World(tmp_path / "mirror", DatedServer())


def test_a_change_list_that_is_written_twice_within_a_second_is_read_both_times(
    world: World[DatedServer],
) -> None:
    world.source.put("a", "1")
    world.source.put("b", "1")
    world.source.published.publish()
    world.pull()
    world.source.put("a", "2")
    world.source.published.publish()
    world.pull()
    assert world.in_sync()
    world.source.put("b", "2")
    world.source.published.publish(after=0.2)
    world.pull()
    assert world.in_sync()
    world.clock.advance(hours=1)
    world.pull()
    assert world.in_sync()


@pytest.mark.parametrize(
    ("tag", "date"),
    [
        ("", None),
        ("", ""),
        ("", "yesterday"),
        ('W/"{}"', None),
        ('"{:x}-1"', None),
        ('W/"{}"', ""),
    ],
)
def test_a_page_that_changes_twice_within_a_second_is_fetched_both_times(
    world: World[DatedServer], tag: str, date: str | None
) -> None:
    world.source.tag, world.source.date = tag, date
    world.source.sitemap = {"page": ""}
    world.source.edit("page", "1")
    world.pull()
    world.clock.advance(seconds=0.2)
    world.source.edit("page", "2")
    world.clock.advance(hours=1)

    assert pages_asked(world) == [("page", 200)]
    assert world.files() == {BASE + "page": b"2"}


@pytest.mark.parametrize("tag", ["", 'W/"{}"', '"{:x}-1"'])
def test_a_page_of_which_the_date_is_a_second_old_is_asked_for_with_a_condition(
    world: World[DatedServer], tag: str
) -> None:
    world.source.tag = tag
    world.source.sitemap = {"page": ""}
    world.source.edit("page", "1")
    world.pull()
    assert pages_asked(world) == [("page", 200)], "it may have changed in its second"
    world.clock.advance(seconds=1)
    assert pages_asked(world) == [("page", 200)]
    assert pages_asked(world) == [("page", 304)]
    assert pages_asked(world) == [("page", 304)]


def test_a_page_with_a_tag_that_is_no_date_is_asked_for_with_a_condition_at_once(
    world: World[DatedServer],
) -> None:
    world.source.tag, world.source.date = '"of the content"', ""
    world.source.sitemap = {"page": ""}
    world.source.edit("page", "1")
    world.pull()
    assert pages_asked(world) == [("page", 304)]
