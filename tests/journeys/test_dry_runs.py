"""A dry run leaves what the mirror knows as it is, whatever it finds at the Source."""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.errors import SourceUnavailableError
from resourcesync.model.timestamps import to_microseconds
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import World

CHANGES = BASE + "resourcesync/changelist.xml"


def known(world: World[LooseSource]) -> list[str]:
    with closing(sqlite3.connect(world.folder / ".resourcesync" / "state.db")) as database:
        return list(database.iterdump())


def listed(world: World[LooseSource]) -> None:
    world.clock.advance(seconds=60)
    world.source.lists.publish(
        to_microseconds(world.clock.now()), world.source.originals.contents()
    )
    world.source.show()


def changes(world: World[LooseSource]) -> None:
    world.source.put("1.html", "changed")
    world.source.remove("2.html")
    listed(world)


def a_list_written_anew(world: World[LooseSource]) -> None:
    del world.source.lists.open_list.entries[0]
    changes(world)


def a_shorter_list_and_a_newer_one_of_resources(world: World[LooseSource]) -> None:
    world.source.lists.open_list.entries.clear()
    world.source.snapshot()


def an_old_copy_of_a_list(world: World[LooseSource]) -> None:
    world.source.lists.open_list.entries.clear()
    world.source.show()


def lists_written_again_without_news(world: World[LooseSource]) -> None:
    for name in ("resourcelist", "capabilitylist"):
        uri = f"{BASE}resourcesync/{name}.xml"
        world.network.answers[uri] = Answer(body=world.source.honest(uri).body + b"\n")


def a_new_list_of_resources(world: World[LooseSource]) -> None:
    world.source.put("only.html", "only in the Resource List")
    listed(world)
    del world.source.lists.open_list.entries[-1]
    world.source.snapshot()


def a_source_that_does_not_answer(world: World[LooseSource]) -> None:
    world.network.answers[CHANGES] = Answer(status=503)


@pytest.mark.parametrize(
    "happens",
    [
        lambda _: None,
        changes,
        a_list_written_anew,
        a_shorter_list_and_a_newer_one_of_resources,
        an_old_copy_of_a_list,
        lists_written_again_without_news,
        a_new_list_of_resources,
        a_source_that_does_not_answer,
    ],
)
@pytest.mark.parametrize(
    "chosen", [{}, {"mode": "baseline"}, {"filters": Filters(exclude=("1*",))}]
)
def test_a_dry_run_writes_nothing_down(
    tmp_path: Path, happens: Callable[[World[LooseSource]], None], chosen: dict[str, Any]
) -> None:
    world = World(tmp_path / "mirror", LooseSource())
    for number in range(6):
        world.source.put(f"{number}.html", f"content of {number}")
    world.source.publish()
    world.source.put("3.html", "changed before")
    listed(world)
    world.pull()
    world.source.put("4.html", "changed before")
    listed(world)
    # Not in a whole second, in which there may be another list of the same moment.
    world.clock.advance(seconds=0.3)
    world.source.lists.snapshot(to_microseconds(world.clock.now()))
    world.source.show()
    world.pull()
    assert world.pull().state is MirrorState.IN_SYNC
    happens(world)
    world.clock.advance(hours=25)  # so that all that is asked once a day is asked
    before, files = known(world), world.files()

    with suppress(SourceUnavailableError):
        world.pull(dry_run=True, **chosen)

    assert known(world) == before
    assert world.files() == files
