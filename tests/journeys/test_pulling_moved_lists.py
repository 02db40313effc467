"""A Source that moves its lists while the old ones stay where they were."""

from pathlib import Path

import pytest

from resourcesync.destination.audits.explain import ResourceVerdict, explain
from resourcesync.destination.options import PullOptions
from resourcesync.destination.reports import Mode
from resourcesync.source.publication_settings import ChangeLists, Policy
from resourcesync.source.stored_plan import PublicationStep
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

CAPABILITY_LIST = BASE + "resourcesync/capabilitylist.xml"
CHANGE_LIST = BASE + "resourcesync/changelist.xml"
SHAPES = list(ChangeLists)


def leave_behind(world: World[PublishedSource], *heads: str) -> None:
    """Let the lists that are there now stay for ever, as a Source of another make does."""
    for uri in heads:
        kept = world.source.honest(uri)
        if kept.status == 200:
            world.network.answers[uri] = kept


@pytest.mark.parametrize("stays", [True, False], ids=["the old one stays", "it goes"])
@pytest.mark.parametrize(
    ("before", "after", "step"),
    [
        *(
            (shape, other, PublicationStep.DUE)
            for shape in SHAPES
            for other in SHAPES
            if shape is not other
        ),
        *((shape, shape, PublicationStep.INITIALISE) for shape in SHAPES),
    ],
)
def test_a_mirror_finds_the_change_list_that_its_source_moved(
    before: ChangeLists, after: ChangeLists, step: PublicationStep, tmp_path: Path, *, stays: bool
) -> None:
    world = World(tmp_path / "mirror")
    world.source.policy = Policy(change_lists=before)
    world.source.publish_file("a.txt", "a")
    world.pull()
    world.source.publish_file("b.txt", "b")
    world.pull()
    world.pull()
    old = (CHANGE_LIST, BASE + "resourcesync/changelistarchive.xml")
    if stays and before is not after:
        leave_behind(world, *old)

    world.source.policy = Policy(change_lists=after)
    world.source.put("c.txt", "c")
    world.source.publish(step)
    if before is not after:
        new = old[after is ChangeLists.ARCHIVE]
        world.network.answers.pop(new, None)
    world.pull()
    assert world.in_sync()

    for name in "de":
        world.source.put(f"{name}.txt", name)
        world.source.remove("a.txt")
        world.source.publish()
        world.pull()
        assert world.in_sync(), name
    assert world.pull().mode is Mode.UNCHANGED


def moved(world: World[PublishedSource]) -> str:
    new = BASE + "resourcesync/changes-of-2026.xml"
    leave_behind(world, CHANGE_LIST)
    world.source.publish_file("b.txt", "b")
    world.network.answers[new] = world.source.honest(CHANGE_LIST)
    said = world.source.honest(CAPABILITY_LIST).body.replace(CHANGE_LIST.encode(), new.encode())
    world.network.answers[CAPABILITY_LIST] = Answer(body=said)
    return new


def test_every_command_reads_the_lists_that_the_source_offers_now(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    world.source.publish_file("a.txt", "a")
    world.pull()
    new = moved(world)

    (finding,) = world.audit().findings
    with world.destination() as destination:
        found = explain(
            destination.read_only_session(asking=True), [BASE + "b.txt"], list, offline=False
        )
        report = destination.repair(None, PullOptions())

    assert finding.uri == BASE + "b.txt"
    assert (found.verdict, found.list_uri) == (ResourceVerdict.WAITING, new)
    assert report.created == 1
    assert world.in_sync()
