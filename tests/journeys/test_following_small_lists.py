"""A Source writes its small Resource List again with each change: mirrors follow the changes."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.source import naming
from resourcesync.source.plan import PublicationStep
from resourcesync.source.publication_settings import Policy
from tests.support.worlds.network import BASE
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

LIST = BASE + naming.RESOURCE_LIST
SMALL = Policy(rebase_up_to=50)


@pytest.fixture
def world(tmp_path: Path) -> World[PublishedSource]:
    """A mirror of a small Source, in sync."""
    world = World(tmp_path / "mirror")
    world.source.policy = SMALL
    for name in "abcdefghijklmnopqrst":
        world.source.put(name, "at first")
    world.source.publish()
    assert world.pull().state is MirrorState.IN_SYNC
    return world


def asked(world: World[PublishedSource]) -> list[str]:
    return list(world.fetcher.asked)


def test_a_list_that_is_written_for_another_reason_is_read_once(
    world: World[PublishedSource],
) -> None:
    world.source.publish_file("a", "two")
    world.pull()
    world.clock.advance(hours=1)
    world.source.publish(PublicationStep.REBASE)

    report = world.pull()

    assert (report.state, report.mode) == (MirrorState.IN_SYNC, Mode.BASELINE)
    assert LIST in asked(world)
    world.source.publish_file("a", "three")
    assert world.pull().mode is Mode.INCREMENTAL
    assert LIST not in asked(world)
    assert world.in_sync()


def test_a_lost_catalogue_is_noticed(world: World[PublishedSource]) -> None:
    world.source.publish_file("a", "two")
    world.pull()
    world.source.begin_again()
    world.source.publish_deletion("b")

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
    world.source.publish_file("c", "two")
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
