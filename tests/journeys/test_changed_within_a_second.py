"""What changes twice within the second of a server's dates is seen both times."""

from pathlib import Path

import pytest

from tests.support.worlds.dated_world import DatedWorld
from tests.support.worlds.world import BASE


@pytest.fixture
def world(tmp_path: Path) -> DatedWorld:
    return DatedWorld(tmp_path / "mirror")


def test_a_change_list_that_is_written_twice_within_a_second_is_read_both_times(
    world: DatedWorld,
) -> None:
    world.put("a", "1")
    world.put("b", "1")
    world.publish()
    world.pull()
    world.put("a", "2")
    world.publish()
    world.pull()
    assert world.in_sync()
    world.put("b", "2")
    world.publish(after=0.2)
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
    world: DatedWorld, tag: str, date: str | None
) -> None:
    world.tag, world.date = tag, date
    world.sitemap = {"page": ""}
    world.edit("page", "1")
    world.pull()
    world.clock.advance(seconds=0.2)
    world.edit("page", "2")
    world.clock.advance(hours=1)

    assert world.pages_asked() == [("page", 200)]
    assert world.files() == {BASE + "page": b"2"}


@pytest.mark.parametrize("tag", ["", 'W/"{}"', '"{:x}-1"'])
def test_a_page_of_which_the_date_is_a_second_old_is_asked_for_with_a_condition(
    world: DatedWorld, tag: str
) -> None:
    world.tag = tag
    world.sitemap = {"page": ""}
    world.edit("page", "1")
    world.pull()
    assert world.pages_asked() == [("page", 200)], "it may have changed in its second"
    world.clock.advance(seconds=1)
    assert world.pages_asked() == [("page", 200)]
    assert world.pages_asked() == [("page", 304)]
    assert world.pages_asked() == [("page", 304)]


def test_a_page_with_a_tag_that_is_no_date_is_asked_for_with_a_condition_at_once(
    world: DatedWorld,
) -> None:
    world.tag, world.date = '"of the content"', ""
    world.sitemap = {"page": ""}
    world.edit("page", "1")
    world.pull()
    assert world.pages_asked() == [("page", 304)]
