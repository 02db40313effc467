"""A Source writes its small Resource List again with each change: mirrors follow the changes."""

import re
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.source import naming
from resourcesync.source.plan import ChangeLists, Policy, PublicationStep
from tests.support.worlds.network import BASE
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

HOUR = 3_600_000_000
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


def test_a_mirror_follows_the_changes_and_reads_no_resource_list(
    world: World[PublishedSource],
) -> None:
    for number in range(4):
        world.clock.advance(hours=1)
        world.source.put("a", f"{number}")
        world.source.put(f"new-{number}", "new")
        if number == 2:
            world.source.remove("b")
        world.source.publish()

        report = world.pull()

        assert (report.state, report.mode) == (MirrorState.IN_SYNC, Mode.INCREMENTAL)
        assert world.in_sync()
        assert LIST not in asked(world)
        before = len(asked(world))
        assert world.pull().mode is Mode.UNCHANGED
        assert len(asked(world)) <= before


@pytest.mark.parametrize(
    "other",
    [Policy(), Policy(change_lists=ChangeLists.PER_RUN, rebase_up_to=50), Policy(rotate=HOUR)],
    ids=["open list", "per run", "rotated"],
)
def test_a_tree_moves_to_another_policy_and_back(
    world: World[PublishedSource], other: Policy
) -> None:
    for number, policy in enumerate((other, SMALL, other, other, SMALL)):
        world.clock.advance(hours=2)
        world.source.policy = policy
        world.source.put("a", f"{number}")
        world.source.put("gone" if number % 2 else "b", f"{number}")
        if number == 2:
            world.source.remove("gone")
        world.source.publish()

        assert world.pull().state is MirrorState.IN_SYNC
        assert world.in_sync()


def test_a_source_restored_from_a_backup_is_not_followed_by_a_promise(
    world: World[PublishedSource],
) -> None:
    backup = world.source.saved()
    world.source.put("a", "withdrawn")
    world.source.put("new", "withdrawn")
    world.source.publish()
    world.pull()

    world.source = backup
    world.clock.advance(hours=1)
    world.source.put("b", "after the backup")
    world.source.publish()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_changes_that_are_gone_lead_to_the_resource_list(world: World[PublishedSource]) -> None:
    world.source.policy = Policy(rebase_up_to=50, rotate=HOUR, keep=HOUR)
    for number in range(60):
        world.clock.advance(hours=1)
        world.source.put("a", f"{number}")
        if number == 1:
            world.source.remove("b")
        world.source.publish()

    report = world.pull()

    assert (report.state, report.mode) == (MirrorState.IN_SYNC, Mode.BASELINE)
    assert LIST in asked(world)
    assert world.in_sync()


def test_a_new_beginning_is_read_although_a_change_list_is_promised(
    world: World[PublishedSource],
) -> None:
    world.source.put("a", "two")
    world.source.publish()
    world.pull()
    world.source.remove("b")
    world.source.publish(PublicationStep.INITIALISE)

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_list_that_is_written_for_another_reason_is_read_once(
    world: World[PublishedSource],
) -> None:
    world.source.put("a", "two")
    world.source.publish()
    world.pull()
    world.clock.advance(hours=1)
    world.source.publish(PublicationStep.REBASE)

    report = world.pull()

    assert (report.state, report.mode) == (MirrorState.IN_SYNC, Mode.BASELINE)
    assert LIST in asked(world)
    world.source.put("a", "three")
    world.source.publish()
    assert world.pull().mode is Mode.INCREMENTAL
    assert LIST not in asked(world)
    assert world.in_sync()


@pytest.mark.parametrize("valid", ["", "tomorrow", "2999-01-01T00:00:00Z"])
def test_a_link_without_a_moment_that_was_reached_promises_nothing(
    world: World[PublishedSource], valid: str
) -> None:
    name = naming.CAPABILITY_LIST
    stream = world.source.documents.open(name)
    assert stream is not None
    text = stream.read().decode()
    altered = re.sub(r' x1:valid="[^"]*"', f' x1:valid="{valid}"', text)
    assert altered != text
    world.source.documents.write(name, iter([altered.encode()]))
    world.source.put("a", "two")
    world.source.publish(PublicationStep.UPDATE)
    world.source.documents.write(name, iter([altered.encode()]))
    world.pull()

    world.source.put("a", "three")
    world.source.publish()
    world.source.documents.write(name, iter([altered.encode()]))

    assert world.pull().state is MirrorState.IN_SYNC
    assert LIST in asked(world)
    assert world.in_sync()


def test_a_lost_catalogue_is_noticed(world: World[PublishedSource]) -> None:
    world.source.put("a", "two")
    world.source.publish()
    world.pull()
    world.source.begin_again()
    world.source.remove("b")
    world.source.publish()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
    world.source.put("c", "two")
    world.source.publish()
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
