"""A Source that moves its lists while the old ones stay where they were."""

import re
from pathlib import Path

import pytest

from resourcesync.destination.audits.explain import ResourceVerdict, explain
from resourcesync.destination.options import PullOptions
from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.destination.scope import Filters
from resourcesync.source.plan import ChangeLists, Policy, PublicationStep
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

CAPABILITY_LIST = BASE + "resourcesync/capabilitylist.xml"
CHANGE_LIST = BASE + "resourcesync/changelist.xml"
RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"
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
    world.source.put("a.txt", "a")
    world.source.publish()
    world.pull()
    world.source.put("b.txt", "b")
    world.source.publish()
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


def moved(world: World[PublishedSource], *, times: str) -> str:
    """Move the Change List, leave the old one; return the new one's address."""
    new = BASE + "resourcesync/changes-of-2026.xml"
    leave_behind(world, CHANGE_LIST)
    world.source.put("b.txt", "b")
    world.source.publish()
    body = world.source.honest(CHANGE_LIST).body.decode()
    if not times:
        body = re.sub(r' from="[^"]*"', "", body)
    world.network.answers[new] = Answer(body=body.encode())
    said = world.source.honest(CAPABILITY_LIST).body.replace(CHANGE_LIST.encode(), new.encode())
    world.network.answers[CAPABILITY_LIST] = Answer(body=said)
    return new


@pytest.mark.parametrize(
    ("times", "state"), [("from", MirrorState.IN_SYNC), ("", MirrorState.BEHIND)]
)
def test_a_moved_list_proves_that_nothing_is_missing_only_if_it_says_since_when_it_is(
    times: str, state: MirrorState, tmp_path: Path
) -> None:
    world = World(tmp_path / "mirror")
    world.source.put("a.txt", "a")
    world.source.publish()
    world.pull()
    moved(world, times=times)

    report = world.pull()

    assert (report.mode, report.state) == (Mode.INCREMENTAL, state)
    assert world.in_sync()


def test_an_old_list_that_grows_does_not_stand_for_the_one_that_is_offered(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "mirror")
    world.source.put("a.txt", "a")
    world.source.publish()
    world.pull()
    world.source.put("b.txt", "b")
    world.source.publish()
    leave_behind(world, CHANGE_LIST)  # it has news, too
    world.source.put("c.txt", "c")
    world.source.publish()
    new = BASE + "resourcesync/changes-of-2026.xml"
    world.network.answers[new] = world.source.honest(CHANGE_LIST)
    offers = world.source.honest(CAPABILITY_LIST).body.replace(CHANGE_LIST.encode(), new.encode())
    world.network.answers[CAPABILITY_LIST] = Answer(body=offers)

    world.pull()

    assert world.in_sync()
    assert world.pull().mode is Mode.UNCHANGED


def test_looking_where_the_list_is_changes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    world.source.put("a.txt", "a")
    world.source.publish()
    world.pull()
    moved(world, times="from")

    world.pull(dry_run=True)

    assert world.told("plan")[-1]["create"] == 1
    assert not world.in_sync()
    assert world.pull().created == 1
    assert world.in_sync()


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=404),
        Answer(status=503),
        Answer(body=b"<html>away</html>"),
        Answer(body=b"<urlset"),
    ],
    ids=["missing", "busy", "a page", "cut"],
)
def test_a_capability_list_that_cannot_be_used_says_nothing(answer: Answer, tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    world.source.put("a.txt", "a")
    world.source.publish()
    world.pull()
    world.network.answers[CAPABILITY_LIST] = answer

    assert world.pull().mode is Mode.UNCHANGED
    world.source.put("b.txt", "b")
    world.source.publish()
    world.pull()
    assert world.in_sync()


def test_a_capability_list_that_names_no_resource_list_is_not_followed(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    world.source.put("a.txt", "a")
    world.source.publish()
    world.pull()
    body = world.source.honest(CAPABILITY_LIST).body
    entry = re.compile(rb"<url>(?:(?!</url>).)*resourcelist\.xml.*?</url>", re.DOTALL)
    world.network.answers[CAPABILITY_LIST] = Answer(body=entry.sub(b"", body, count=1))

    assert world.pull().mode is Mode.UNCHANGED
    assert [said["resource_list"] for said in world.told("source")] == [RESOURCE_LIST]
    assert world.in_sync()


def test_behind_an_index_the_capability_list_is_asked_once_an_hour(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror", PublishedSource(max_entries=2))
    world.source.put("a.txt", "a")
    world.source.publish()
    world.pull()
    for number in range(5):
        world.source.put("a.txt", f"{number}")
        world.source.publish()
    world.pull()
    asked = []
    for _ in range(4):
        world.clock.advance(seconds=1_500)
        world.pull()
        asked.append((len(world.fetcher.asked), CAPABILITY_LIST in world.fetcher.asked))

    assert asked == [(3, False), (3, False), (4, True), (3, False)]


def test_an_audit_reads_the_lists_that_the_source_offers_now(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    world.source.put("a.txt", "a")
    world.source.publish()
    world.pull()
    moved(world, times="from")

    (finding,) = world.audit().findings

    assert finding.uri == BASE + "b.txt"


def test_a_repair_and_an_explanation_read_the_lists_that_the_source_offers_now(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "mirror")
    world.source.put("a.txt", "a")
    world.source.publish()
    world.pull()
    new = moved(world, times="from")

    with world.destination() as destination:
        found = explain(
            destination.read_only_session(asking=True), [BASE + "b.txt"], list, offline=False
        )
        assert (found.verdict, found.list_uri) == (ResourceVerdict.WAITING, new)
        report = destination.repair(None, PullOptions())

    assert report.created == 1
    assert world.in_sync()


def test_a_change_list_that_is_offered_no_more_is_not_read_again(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    world.source.put("a.txt", "a")
    world.source.publish()
    world.pull()
    entry = re.compile(rb"<url>(?:(?!</url>).)*changelist\.xml.*?</url>", re.DOTALL)
    body = entry.sub(b"", world.source.honest(CAPABILITY_LIST).body, count=1)
    world.network.answers[CAPABILITY_LIST] = Answer(body=body)

    assert world.pull().mode is Mode.UNCHANGED
    world.pull()

    assert CHANGE_LIST not in world.fetcher.asked
    assert RESOURCE_LIST in world.fetcher.asked
    world.source.put("b.txt", "b")
    world.source.publish(PublicationStep.REBASE)
    world.pull()
    assert world.in_sync()


def test_a_baseline_that_is_due_reads_the_lists_that_are_offered_now(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    world.source.put("a.txt", "a")
    world.source.publish()
    world.pull()
    moved(world, times="from")

    world.pull(filters=Filters(exclude=("z.txt",)))

    assert world.in_sync()
    assert CHANGE_LIST not in world.fetcher.asked


def test_a_mirror_finds_lists_that_moved_and_moved_back_while_the_others_stay(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "mirror", PublishedSource(max_entries=4))
    for number in range(4):
        world.source.put(f"{number}", "first")
    world.source.publish()
    world.pull()
    for number in range(6):
        world.source.put(f"{number % 4}", f"change {number}")
        world.source.publish()
    world.pull()
    names = ("capabilitylist.xml", "changelist.xml", *(f"changelist-00000{n}.xml" for n in (1, 2)))
    moved = [world.source.honest(f"{BASE}resourcesync/{name}") for name in names]
    for name, document in zip(names, moved, strict=True):
        body = document.body.replace(b"resourcesync/changelist", b"alt/changelist")
        folder = "resourcesync" if name == names[0] else "alt"
        world.network.answers[f"{BASE}{folder}/{name}"] = Answer(body=body)
    world.clock.advance(seconds=7_200)
    world.pull()
    assert f"{BASE}alt/changelist.xml" in world.fetcher.asked

    del world.network.answers[CAPABILITY_LIST]
    world.source.put("3", "changed behind the index that the mirror knows")
    world.source.publish(after=7_200)
    world.pull()

    assert world.in_sync()
