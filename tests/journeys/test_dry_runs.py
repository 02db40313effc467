"""A dry run leaves what the mirror knows as it is, whatever it finds at the Source."""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.options import Filters
from resourcesync.destination.reports import MirrorState
from resourcesync.errors import SourceUnavailableError
from resourcesync.model.timestamps import to_microseconds
from tests.support.worlds.loose_world import LooseWorld
from tests.support.worlds.memory_fetcher import Answer
from tests.support.worlds.world import BASE

CHANGES = BASE + "resourcesync/changelist.xml"


def known(world: LooseWorld) -> list[str]:
    """All that the mirror's state holds."""
    with closing(sqlite3.connect(world.folder / ".resourcesync" / "state.db")) as database:
        return list(database.iterdump())


def listed(world: LooseWorld) -> None:
    world.clock.advance(seconds=60)
    world.source.publish(to_microseconds(world.clock.now()), world.originals.contents())
    world.show()


def nothing_new(world: LooseWorld) -> None:
    del world


def changes(world: LooseWorld) -> None:
    world.put("1.html", "changed")
    world.remove("2.html")
    listed(world)


def a_list_written_anew(world: LooseWorld) -> None:
    del world.source.open_list.entries[0]
    changes(world)


def a_shorter_list_and_a_newer_one_of_resources(world: LooseWorld) -> None:
    world.source.open_list.entries.clear()
    world.snapshot()


def an_old_copy_of_a_list(world: LooseWorld) -> None:
    world.source.open_list.entries.clear()
    world.show()


def a_list_written_again_without_news(world: LooseWorld) -> None:
    body = world.honest(BASE + "resourcesync/resourcelist.xml").body
    world.answers[BASE + "resourcesync/resourcelist.xml"] = Answer(body=body + b"\n")


def a_new_list_of_resources(world: LooseWorld) -> None:
    world.put("only.html", "only in the Resource List")
    listed(world)
    del world.source.open_list.entries[-1]
    world.snapshot()


def a_capability_list_written_again(world: LooseWorld) -> None:
    body = world.honest(BASE + "resourcesync/capabilitylist.xml").body
    world.answers[BASE + "resourcesync/capabilitylist.xml"] = Answer(body=body + b"\n")


def a_source_that_does_not_answer(world: LooseWorld) -> None:
    world.answers[CHANGES] = Answer(status=503)


@pytest.mark.parametrize(
    "happens",
    [
        nothing_new,
        changes,
        a_list_written_anew,
        a_shorter_list_and_a_newer_one_of_resources,
        an_old_copy_of_a_list,
        a_list_written_again_without_news,
        a_new_list_of_resources,
        a_capability_list_written_again,
        a_source_that_does_not_answer,
    ],
)
@pytest.mark.parametrize(
    "chosen", [{}, {"mode": "baseline"}, {"filters": Filters(exclude=("1*",))}]
)
def test_a_dry_run_writes_nothing_down(
    tmp_path: Path, happens: Callable[[LooseWorld], None], chosen: dict[str, Any]
) -> None:
    world = LooseWorld(tmp_path / "mirror")
    for number in range(6):
        world.put(f"{number}.html", f"content of {number}")
    world.publish()
    world.put("3.html", "changed before")
    listed(world)
    world.pull()
    world.put("4.html", "changed before")
    listed(world)
    # Not in a whole second, in which there may be another list of the same moment.
    world.clock.advance(seconds=0.3)
    world.source.snapshot(to_microseconds(world.clock.now()))
    world.show()
    world.pull()
    assert world.pull().state is MirrorState.IN_SYNC
    happens(world)
    world.clock.advance(hours=25)  # so that all that is asked once a day is asked
    before, files = known(world), world.files()

    with suppress(SourceUnavailableError):
        world.pull(dry_run=True, **chosen)

    assert known(world) == before
    assert world.files() == files
