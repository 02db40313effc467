"""Lists that do not go on from what was read: begun anew, cut, emptied, or without the news."""

import re
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.reports import MirrorState, Mode, RunReport
from resourcesync.model.timestamps import to_microseconds
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import Answer
from tests.support.worlds.rewriting import CHANGE_LIST, changed
from tests.support.worlds.world import World
from tests.support.worlds.written_source import WrittenList, WrittenSource, pull_at


def loose_world(folder: Path, **style: object) -> World[LooseSource]:
    world = World(folder / "mirror", LooseSource(**style))
    for number in range(6):
        world.source.put(f"{number}.html", f"content of {number}")
    world.source.publish_file("hot.html", "changes often")
    assert world.pull().state is MirrorState.IN_SYNC
    return world


def listed(world: World[LooseSource], *, after: float) -> None:
    world.clock.advance(seconds=after)
    world.source.lists.publish(
        to_microseconds(world.clock.now()), world.source.originals.contents()
    )
    world.source.show()


def begun_anew(world: World[LooseSource], *, after: float) -> None:
    world.clock.advance(seconds=after)
    now = to_microseconds(world.clock.now())
    world.source.lists.snapshot(now)
    world.source.lists.rotate(now)
    world.source.show()


def later(world: World[Any]) -> RunReport:
    world.clock.advance(seconds=3_600)
    return world.pull()


@pytest.mark.parametrize("gap", [0.02, 0.2, 0.5, 0.9, 1.5])
@pytest.mark.parametrize("lastmods", [True, False])
def test_what_changed_in_a_hole_of_less_than_a_second_arrives_though_a_hot_resource_is_listed(
    tmp_path: Path, gap: float, lastmods: bool
) -> None:
    world = loose_world(tmp_path, lastmods=lastmods)
    world.source.put("hot.html", "first")
    listed(world, after=60)
    assert world.pull().state is MirrorState.IN_SYNC
    world.source.put("1.html", "changed unseen")
    world.source.put("new.html", "created unseen")
    world.source.remove("2.html")
    listed(world, after=gap / 3)
    begun_anew(world, after=gap / 3)
    world.source.put("hot.html", "second")
    listed(world, after=gap / 3)

    assert later(world).state is MirrorState.IN_SYNC
    assert world.in_sync()


@pytest.mark.founding("0.9 §2.2.2", "A Destination stays in sync by repeated baselines", "`pull`")
def test_a_source_that_only_writes_its_resource_list_again_is_followed(tmp_path: Path) -> None:
    world = loose_world(tmp_path)
    world.source.put("3.html", "listed as usual")
    listed(world, after=60)
    world.pull()
    for round_ in range(2):
        told = len(world.source.lists.open_list.entries)
        world.source.put("1.html", f"only in the Resource List {round_}")
        world.source.put(f"new-{round_}.html", "only in the Resource List")
        world.source.remove(f"{round_ + 4}.html")
        listed(world, after=60)
        del world.source.lists.open_list.entries[told:]
        world.source.snapshot()

        assert later(world).state is MirrorState.IN_SYNC
        assert world.in_sync()

    assert later(world).mode is Mode.UNCHANGED


def test_a_newer_resource_list_is_read_once(tmp_path: Path) -> None:
    world = loose_world(tmp_path)
    world.source.snapshot()

    assert later(world).mode is Mode.BASELINE
    assert later(world).mode is Mode.UNCHANGED
    assert world.fetcher.requests <= 3


def test_each_open_list_of_an_index_is_asked_though_the_index_stays_as_it_is(
    tmp_path: Path,
) -> None:
    source = WrittenSource()
    first, second = source.written.lists = [WrittenList(f"{name}.xml", from_=0) for name in "ab"]
    world = World(tmp_path / "mirror", source)
    pull_at(world, 5)
    for at in (10, 50):
        source.change(first, "1.html", f"first list {at}", at)
        source.change(second, "2.html", f"second list {at}", at + 10)
        assert pull_at(world, at + 15).state is MirrorState.IN_SYNC
        assert world.in_sync()
        source.change(first, "3.html", f"first list alone {at}", at + 20)
        assert pull_at(world, at + 25).state is MirrorState.IN_SYNC
        assert world.in_sync()


def test_a_list_with_the_newest_change_first_hides_no_content_that_it_lists_twice(
    tmp_path: Path,
) -> None:
    """Its first change of a resource is the copy; the standard demands the other order."""
    world = World(tmp_path / "mirror")
    world.source.publish_file("a.html", "first")
    world.pull()

    def turned(_: object) -> Answer:
        body, entry = (
            world.source.honest(CHANGE_LIST).body,
            re.compile(rb"<url>.*?</url>", re.DOTALL),
        )
        entries = entry.findall(body)
        return Answer(body=entry.sub(lambda _: entries.pop(), body))

    world.network.answers[CHANGE_LIST] = turned
    for text in ("second", "third", "fourth", "third", "fifth"):
        changed(world, "a.html", "b.html", text=text)

        assert world.pull().state is MirrorState.IN_SYNC
        assert world.in_sync()
