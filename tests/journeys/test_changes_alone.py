"""A Source that lists changes and no resources is followed from a moment on, and says so."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import SourceUnavailableError
from resourcesync.source import naming
from resourcesync.source.publication_settings import ChangeLists, Policy
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.rewriting import killed, no_longer_offers
from tests.support.worlds.world import OwnWorld, World

SHAPES = [Policy(resource_list=False, change_lists=shape) for shape in ChangeLists]


@pytest.fixture
def world(tmp_path: Path) -> OwnWorld:
    world = World(tmp_path, PublishedSource(max_entries=3))
    world.source.policy = SHAPES[0]
    world.source.put("old.txt", "never changed")
    world.source.put("changed.txt", "at first")
    world.source.publish()
    return world


@pytest.mark.founding(
    "D-Lib §3",
    "DBpedia Live: changes without a Resource List",
    "`-o resource_list=false`, `pull --changes-only`",
)
@pytest.mark.parametrize("policy", SHAPES)
def test_what_changed_since_the_first_list_is_followed_and_the_rest_is_unknown(
    policy: Policy, tmp_path: Path
) -> None:
    world = World(tmp_path, PublishedSource(max_entries=3))
    world.source.policy = policy
    world.source.publish_file("old.txt", "never changed")
    began = world.clock.now()
    for number in range(5):
        world.source.publish_file(f"{number}.txt", "new")
    world.source.publish_deletion("3.txt")

    first = world.pull()

    assert (first.state, first.faults.gap) == (MirrorState.BEHIND, True)
    assert first.listed.since is not None
    assert first.listed.since <= began
    assert set(world.texts()) == {"0.txt", "1.txt", "2.txt", "4.txt"}
    assert "resourcesync/resourcelist.xml" not in world.source.documents.names()
    assert world.pull().state is MirrorState.BEHIND
    world.source.publish_file("0.txt", "again")
    accepted = world.pull(changes_only=True)
    assert (accepted.state, accepted.listed.since) == (MirrorState.IN_SYNC, first.listed.since)
    assert world.texts()["0.txt"] == "again"
    later = world.pull()
    assert (later.state, later.listed.is_since_accepted) == (MirrorState.IN_SYNC, True)
    assert later.listed.since == first.listed.since


@pytest.mark.parametrize("hours", [1, 30])
def test_a_source_that_drops_its_resource_list_is_followed_from_a_moment_on_after_a_gap(
    hours: int, world: OwnWorld
) -> None:
    world.source.policy = Policy(rotate=3_600, keep=7_200)
    world.source.publish()
    assert world.pull().state is MirrorState.IN_SYNC
    world.source.policy = Policy(resource_list=False, rotate=3_600, keep=7_200)
    for number in range(6):
        world.clock.advance(hours=hours)
        world.source.publish_file(f"{number}.txt", "without a Resource List")
        if number < 3:
            assert (world.pull().state, world.warned()) == (MirrorState.IN_SYNC, [])
    world.source.remove("changed.txt")
    for _ in range(6):
        world.clock.advance(hours=hours + 1)
        world.source.publish_file("5.txt", str(world.clock.now()))

    back = world.pull()

    assert (back.state, back.faults.gap) == (MirrorState.BEHIND, True)
    assert back.listed.since is not None
    assert world.warned() == ["change-gap", "changes-only"]
    assert {"old.txt", "changed.txt", "5.txt"} <= {*world.texts()}
    assert world.pull().state is MirrorState.BEHIND
    assert world.pull(changes_only=True).state is MirrorState.IN_SYNC
    world.source.policy = Policy()
    world.source.publish()
    world.clock.advance(hours=48)
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_an_audit_offline_is_in_sync_once_the_beginning_is_accepted(world: OwnWorld) -> None:
    world.source.publish_file("new.txt", "new")
    world.pull()
    assert not world.audit(offline=True).in_sync

    world.pull(changes_only=True)

    assert world.audit(offline=True).in_sync
    assert world.status().state is MirrorState.IN_SYNC
    (world.folder / "new.txt").write_text("bad")
    assert not world.audit(offline=True).in_sync
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.texts()["new.txt"] == "new"


@pytest.mark.founding("D-Lib §3", "DBpedia Live: Change Dumps alone", "`pull --changes-only`")
def test_changes_in_dumps_alone_are_followed_too(world: OwnWorld) -> None:
    world.source.publish_file("changed.txt", "packed")
    world.source.dumps().publish(resources=False, changes=True)
    world.source.publish()
    no_longer_offers(world, "changelist")

    assert world.pull(changes_only=True, dumps="always").state is MirrorState.IN_SYNC
    assert world.texts() == {"changed.txt": "packed"}
    assert not world.asked_resources()


def test_other_filters_count_for_what_was_processed_too(world: OwnWorld) -> None:
    for name in ("a.txt", "b.txt"):
        world.source.publish_file(name, "new")
    world.pull(changes_only=True, exclude=("a.txt",))
    assert set(world.texts()) == {"b.txt"}

    assert world.pull(exclude=("b.txt",), prune=True).state is MirrorState.IN_SYNC

    assert set(world.texts()) == {"a.txt"}
    assert len(world.asked()) == len(set(world.asked())), "each list is read once"


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_restored_source_is_followed_and_what_it_withdrew_is_to_be_accepted_anew(
    world: OwnWorld, *, by_hand: bool
) -> None:
    for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
        world.source.publish_file(name, "new")
    backup = world.source.saved()
    world.source.put("a.txt", "withdrawn")
    world.source.put("x.txt", "withdrawn")
    world.source.publish()
    world.pull(changes_only=True)
    world.source = backup
    for name in () if by_hand else ("y.txt", "z.txt"):
        world.source.publish_file(name, "after the restoration")

    assert world.pull(mode="baseline" if by_hand else "auto").state is MirrorState.BEHIND
    assert world.differences() == [BASE + name for name in ("changed.txt", "old.txt", "x.txt")]
    assert world.pull().state is MirrorState.BEHIND
    assert world.pull(changes_only=True).state is MirrorState.IN_SYNC


def test_a_list_without_interval_that_does_not_go_on_is_a_later_beginning(world: OwnWorld) -> None:
    def list_last(number: int) -> None:
        address = BASE + naming.CHANGE_LIST
        head, *entries = re.sub(
            r' (from|until)="[^"]*"(?=/>\n<url>)', "", world.source.honest(address).body.decode()
        ).split("<url>")
        text = "<url>".join((head, *entries[-number:]))
        world.network.answers[address] = Answer(body=text.encode())

    world = World(world.home, PublishedSource())
    world.source.policy = SHAPES[0]
    world.source.publish()
    for number in range(3):
        world.source.publish_file(f"{number}.txt", "new")
    list_last(2)
    assert world.pull(changes_only=True).state is MirrorState.IN_SYNC
    for number in range(3, 9):
        world.source.publish_file(f"{number}.txt", "new")
    list_last(2)

    missed = world.pull()

    assert "4.txt" not in world.texts()
    assert missed.state is MirrorState.BEHIND
    assert world.pull().state is MirrorState.BEHIND
    assert world.pull(changes_only=True).state is MirrorState.IN_SYNC


@pytest.mark.parametrize("is_stale", [True, False])
@pytest.mark.parametrize("writes", range(6))
def test_a_deletion_that_a_killed_pull_wrote_down_and_the_source_withdrew_is_not_done(
    world: OwnWorld, writes: int, *, is_stale: bool
) -> None:
    world.source.policy = Policy(resource_list=False, rotate=3_600, keep=7_200)
    for number in range(4):
        world.clock.advance(hours=1)
        world.source.publish_file(f"{number}.txt", "new")
        world.pull(changes_only=True)
    before = world.source.saved()
    world.source.publish_deletion("0.txt")
    assert killed(world, writes)
    world.source = before
    for name in () if is_stale else ("y.txt", "z.txt"):
        world.source.publish_file(name, "after the restoration")

    with suppress(SourceUnavailableError):  # a stale copy, as far as can be known
        world.pull()

    assert world.texts()["0.txt"] == "new"
