"""A Source is set back to what it was: nobody says that all is well, and nothing is deleted."""

from datetime import timedelta

import pytest

from resourcesync.destination.reports import MirrorState, Mode, RunReport
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.destination.sync_state import SyncState
from resourcesync.errors import DiscontinuityError, SourceUnavailableError
from resourcesync.model.settings import Limit
from resourcesync.source.plan import PublicationStep
from resourcesync.source.publication_settings import ChangeLists, Policy
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.rewriting import (
    CHANGE_LIST,
    changed,
    heated,
    killed,
    merged,
    set_back,
    sliding,
)
from tests.support.worlds.world import World

_DAY = 86_500
_HOLDING = Limit(number=0)
_GONE = "objects/0003.html"


@pytest.mark.parametrize("shape", [ChangeLists.PER_RUN, ChangeLists.ARCHIVE])
@pytest.mark.parametrize("held", [False, True])
def test_closed_lists_alone_that_end_earlier_than_before_are_noticed(
    world: World[PublishedSource], shape: ChangeLists, *, held: bool
) -> None:
    world.source.policy = Policy(change_lists=shape)
    changed(world, "a.html", text="a")
    world.pull()
    before = world.source.saved()
    world.source.remove(_GONE)
    changed(world, "objects/0001.html", text="taken back")
    world.pull(max_delete=_HOLDING if held else Limit(percent=10))
    set_back(world, before)

    for _ in range(2):
        with pytest.raises((SourceUnavailableError, DiscontinuityError)):
            world.pull()
        world.clock.advance(seconds=_DAY)
    assert (BASE + _GONE in world.files()) is held
    assert world.status().state is not MirrorState.IN_SYNC
    changed(world, "after.html", text="after")

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_what_a_repair_brought_beyond_what_pulls_know_goes_when_it_is_taken_back(
    world: World[PublishedSource],
) -> None:
    world.pull()
    before = world.source.saved()
    changed(world, _GONE, text="taken back")
    assert world.repair().state is MirrorState.IN_SYNC
    assert world.status().state is MirrorState.IN_SYNC
    set_back(world, before)

    assert world.pull().mode is Mode.BASELINE
    assert world.in_sync()


def test_a_deletion_that_a_repair_held_is_not_done_once_it_is_taken_back(
    world: World[PublishedSource],
) -> None:
    world.pull()
    before = world.source.saved()
    world.source.publish_deletion(_GONE)
    world.repair(deleting=True, max_delete=_HOLDING)
    set_back(world, before)

    assert (world.pull().deleted, world.in_sync()) == (0, True)


def test_what_an_audit_doubts_is_brought_as_pulls_know_it(world: World[PublishedSource]) -> None:
    world.pull()
    before = world.source.saved()
    changed(world, _GONE, text="taken back")
    next(world.folder.rglob("0003.html")).write_text("rotten!")
    assert not world.audit(method="hash").in_sync
    set_back(world, before)

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


@pytest.mark.parametrize("how", ["held", "killed", "lists only"])
def test_a_deletion_that_waits_is_not_done_from_a_list_that_was_rewritten(
    world: World[PublishedSource], how: str
) -> None:
    heated(world, "0")
    world.network.answers[CHANGE_LIST] = lambda _: Answer(
        body=merged(world.source.honest(CHANGE_LIST).body)
    )
    for number in range(3):
        world.pull()
        heated(world, f"{number}")
    world.pull()
    before = world.source.saved()
    world.source.publish_deletion(_GONE)
    heated(world, "taken back")
    if how == "killed":
        assert killed(world, 6)
    elif how == "held":
        assert world.pull(max_delete=_HOLDING).held
    else:
        world.pull(lists_only=True)
    set_back(world, before)
    world.clock.advance(hours=2)
    heated(world, "after")

    assert (world.pull().deleted, world.in_sync()) == (0, True)


@pytest.mark.parametrize("writes", range(12))
def test_after_a_kill_nobody_calls_a_mirror_in_sync_that_has_something_to_do(
    world: World[PublishedSource], writes: int
) -> None:
    world.pull()
    told = world.pull().as_of
    world.source.publish_deletion(_GONE)
    killed(world, writes)
    with world.state() as state:
        as_of = SyncState(state).as_of

    assert world.status().state is not MirrorState.IN_SYNC or as_of == told or world.in_sync()


def test_without_change_lists_an_older_resource_list_does_not_set_a_mirror_back(
    world: World[PublishedSource],
) -> None:
    world.pull()
    changed(world, "new.html", text="new")
    as_of = world.pull().as_of
    world.network.answers[CHANGE_LIST] = Answer(status=404)
    address = f"{BASE}resourcesync/capabilitylist.xml"
    body = world.source.honest(address).body.decode()
    start = body.index("<url><loc>" + CHANGE_LIST)
    end = body.index("</url>", start) + len("</url>")
    world.network.answers[address] = Answer(body=(body[:start] + body[end:]).encode())

    report = world.pull(filters=Filters(exclude=("*.nothing",)))

    assert (report.state, report.as_of) == (MirrorState.BEHIND, as_of)
    assert BASE + "new.html" in world.files()
    world.source.publish(PublicationStep.REBASE)
    assert world.pull().state is MirrorState.IN_SYNC


@pytest.mark.parametrize("is_repair", [False, True], ids=["pull", "repair"])
def test_a_resource_list_of_the_same_moment_that_was_cut_is_told_and_asked_for_again(
    world: World[PublishedSource], *, is_repair: bool
) -> None:
    address = f"{BASE}resourcesync/resourcelist.xml"
    world.pull()
    whole = world.source.honest(address).body
    last = whole.rindex(b"<url>")
    world.network.answers[address] = Answer(body=whole[:last] + b"</urlset>")

    def read() -> RunReport:
        if is_repair:
            return world.repair(deleting=True, max_delete=Limit(number=100))
        return world.pull(filters=Filters(exclude=("*.nothing",)))

    for _ in range(2):
        report = read()
        assert (report.state, report.deleted) == (MirrorState.BEHIND, 0)
        assert world.status().state is MirrorState.BEHIND
    assert world.told("warning")[-1]["code"] == "cut-list"
    assert world.in_sync()
    del world.network.answers[address]

    assert read().state is MirrorState.IN_SYNC


def test_a_cached_resource_list_of_what_was_taken_back_is_not_begun_with(
    world: World[PublishedSource],
) -> None:
    address = f"{BASE}resourcesync/resourcelist.xml"
    before = world.source.saved()
    changed(world, "taken-back.html", text="taken back")
    world.source.publish(PublicationStep.REBASE)
    old = world.source.honest(address)
    set_back(world, before)
    world.network.answers[address] = lambda request: (
        world.source.honest(address) if request.uncached else old
    )

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


@pytest.mark.parametrize("cause", ["filters", "kill", "repair"])
def test_a_held_deletion_that_was_withdrawn_before_a_baseline_was_due_is_not_done(
    world: World[PublishedSource], cause: str
) -> None:
    begin = world.clock.now() + timedelta(days=3)
    changed(world, "since.html", text="not in the Resource List")
    world.pull()
    world.clock.advance(seconds=3 * _DAY)
    changed(world, "objects/0001.html", text="some")
    world.pull()
    world.network.answers[CHANGE_LIST] = lambda _: sliding(world, begin)
    changed(world, "objects/0002.html", text="some")
    world.pull()
    before = world.source.saved()
    world.source.publish_deletion("since.html")
    world.pull(max_delete=_HOLDING)
    if cause == "kill":
        changed(world, "objects/0004.html", text="some")
        assert killed(world, 4, max_delete=_HOLDING)
    if cause == "repair":
        next(world.folder.rglob("0005.html")).unlink()
        world.repair(max_delete=_HOLDING)
    set_back(world, before)
    changed(world, "after.html", text="after")

    filters = Filters(exclude=("*.nothing",)) if cause == "filters" else None
    world.pull(dry_run=True, filters=filters)
    planned = world.told("plan")[-1]["delete"]

    world.pull(filters=filters)

    assert planned == world.told("plan")[-1]["delete"], "the dry run decides as the run does"
    assert BASE + "since.html" in world.files()
