"""A Source that lists changes and no resources is followed from a moment on, and says so."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.source import naming
from resourcesync.source.contents import PresentContents
from resourcesync.source.dumps.dump_publisher import DumpPublisher
from resourcesync.source.naming import SourceNaming
from resourcesync.source.publication_settings import ChangeLists, Policy
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

SHAPES = [Policy(resource_list=False, change_lists=shape) for shape in ChangeLists]


@pytest.fixture
def world(tmp_path: Path) -> World[PublishedSource]:
    """A Source of two files from before its first Change List."""
    world = World(tmp_path, PublishedSource(max_entries=3))
    world.source.policy = SHAPES[0]
    world.source.put("old.txt", "never changed")
    world.source.put("changed.txt", "at first")
    world.source.publish()
    return world


@pytest.mark.parametrize("policy", SHAPES)
def test_what_changed_since_the_first_list_is_followed_and_the_rest_is_unknown(
    policy: Policy, tmp_path: Path
) -> None:
    world = World(tmp_path, PublishedSource(max_entries=3))
    world.source.policy = policy
    world.source.put("old.txt", "never changed")
    world.source.publish()
    began = world.clock.now()
    for number in range(5):
        world.source.put(f"{number}.txt", "new")
        world.source.publish()
    world.source.remove("3.txt")
    world.source.publish()

    first = world.pull()

    assert (first.state, first.faults.gap) == (MirrorState.BEHIND, True)
    assert first.listed.since is not None
    assert first.listed.since <= began
    assert set(world.texts()) == {"0.txt", "1.txt", "2.txt", "4.txt"}
    assert "resourcesync/resourcelist.xml" not in world.source.documents.names()
    assert world.pull().state is MirrorState.BEHIND
    world.source.put("0.txt", "again")
    world.source.publish()
    accepted = world.pull(changes_only=True)
    assert (accepted.state, accepted.listed.since) == (MirrorState.IN_SYNC, first.listed.since)
    assert world.texts()["0.txt"] == "again"
    later = world.pull()
    assert (later.state, later.listed.is_since_accepted) == (MirrorState.IN_SYNC, True)
    assert later.listed.since == first.listed.since


def test_who_was_away_longer_than_the_lists_reach_back_begins_anew_and_accepts_anew(
    world: World[PublishedSource],
) -> None:
    world.source.policy = Policy(resource_list=False, rotate=3_600, keep=7_200)
    world.source.put("changed.txt", "while the mirror followed")
    world.source.publish()
    before = world.pull(changes_only=True)
    assert before.state is MirrorState.IN_SYNC
    for number in range(12):
        world.clock.advance(hours=6)
        world.source.put(f"{number}.txt", "while it was away")
        world.source.publish()

    back = world.pull()

    assert back.state is MirrorState.BEHIND
    assert back.listed.since is not None
    assert before.listed.since is not None
    assert back.listed.since > before.listed.since
    assert "11.txt" in world.texts()
    assert "changed.txt" in world.texts()
    assert world.pull(changes_only=True).state is MirrorState.IN_SYNC


def test_a_resource_list_that_comes_later_tells_all(world: World[PublishedSource]) -> None:
    world.pull(changes_only=True)
    world.source.policy = Policy()
    world.source.publish()
    world.clock.advance(hours=48)

    report = world.pull()

    assert (report.state, report.listed.since) == (MirrorState.IN_SYNC, None)
    assert world.in_sync()


def test_changes_in_dumps_alone_are_followed_too(world: World[PublishedSource]) -> None:
    world.source.put("changed.txt", "packed")
    world.source.publish()
    DumpPublisher(
        world.source.catalogue,
        world.source.documents,
        PresentContents(world.source.originals),
        names=SourceNaming(base_uri=BASE),
        clock=world.clock,
    ).publish(resources=False, changes=True)
    world.source.publish()
    address = BASE + naming.CAPABILITY_LIST
    body = world.source.honest(address).body.decode()
    listed = [entry for entry in body.split("<url>") if '"changelist"' not in entry]
    world.network.answers[address] = Answer(body="<url>".join(listed).encode())

    report = world.pull(changes_only=True, dumps="always")

    assert report.state is MirrorState.IN_SYNC
    assert world.texts() == {"changed.txt": "packed"}
    assert not world.asked_resources()
