"""A Source is set back, also after a killed pull: nothing is deleted, nothing is called well."""

import re
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.reports import MirrorState, Mode, RunReport
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.destination.sync_state import SyncState
from resourcesync.errors import DiscontinuityError, SourceUnavailableError
from resourcesync.model.settings import Limit
from resourcesync.source.publication_settings import ChangeLists, Policy
from resourcesync.source.stored_plan import PublicationStep
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.rewriting import (
    CHANGE_LIST,
    changed,
    heated,
    killed,
    merged,
    no_longer_offers,
    set_back,
    slid_past_a_file,
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


@pytest.mark.parametrize("filters", [Filters(), Filters(exclude=("*.nothing",))])
def test_without_change_lists_an_older_resource_list_leaves_a_mirror_behind_until_the_next_one(
    world: World[PublishedSource], filters: Filters
) -> None:
    world.pull()
    changed(world, "new.html", "index.html", text="new")
    as_of = world.pull().as_of
    no_longer_offers(world, "changelist")
    for _ in range(2):
        world.clock.advance(seconds=_DAY)
        report = world.pull(filters=filters)
        assert (report.state, report.as_of) == (MirrorState.BEHIND, as_of)
        assert BASE + "new.html" in world.files()
    world.source.publish(PublicationStep.REBASE)
    assert world.pull(filters=filters).state is MirrorState.IN_SYNC


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


def test_a_shortened_list_that_the_operator_accepts_counts_for_audit_and_repair_too(
    world: World[PublishedSource],
) -> None:
    address = f"{BASE}resourcesync/resourcelist.xml"
    world.pull(delete="absent")
    whole = world.source.honest(address).body
    world.network.answers[address] = Answer(body=whole[: whole.rindex(b"<url>")] + b"</urlset>")

    assert world.audit().extra == 1
    report = world.repair(deleting=True)

    assert (report.state, report.deleted) == (MirrorState.IN_SYNC, 1)


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
    slid_past_a_file(world)
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


UNTIMED = {
    "where changes have the times of their resources": ' datetime="[^"]*"',
    "where changes have no time": ' datetime="[^"]*"|<lastmod>[^<]*</lastmod>',
}
AMONG_OTHERS, UNLISTED = "among other changes", "where no Change List is offered any more"


@pytest.mark.parametrize(
    ("scene", "writes"),
    [
        *((scene, writes) for scene in ("alone", AMONG_OTHERS) for writes in range(6)),
        *((scene, writes) for scene in (*UNTIMED, UNLISTED) for writes in range(2, 5)),
    ],
)
def test_what_a_killed_pull_had_begun_to_write_down_is_not_done_once_it_is_taken_back(
    world: World[PublishedSource], scene: str, writes: int
) -> None:
    def untimed(_: object) -> Answer:
        body = world.source.honest(CHANGE_LIST).body.decode()
        return Answer(body=re.sub(UNTIMED[scene], "", body).encode())

    if scene in UNTIMED:
        world.network.answers[CHANGE_LIST] = untimed
        changed(world, "objects/0003.html", "objects/0002.html", text="first")
    world.pull()
    before = world.source.saved()
    world.source.publish_deletion("objects/0003.html")
    if scene == AMONG_OTHERS:
        changed(world, "objects/0001.html", "taken-back.html", text="taken back")
    killed(world, writes)  # one that had come to its end notices, too
    set_back(world, before)
    if scene == UNLISTED:
        no_longer_offers(world, "changelist")
        world.network.answers[CHANGE_LIST] = Answer(status=404)
    else:
        changed(world, "after.html", text="after")

    assert world.pull().state is MirrorState.IN_SYNC or scene == UNLISTED
    assert world.in_sync(), "what it had been told to delete is here"


def test_a_killed_pull_goes_on_though_its_list_has_another_place_now(tmp_path: Path) -> None:
    world = World(tmp_path, PublishedSource(max_entries=3))
    changed(world, "first.html", text="first")
    world.pull()
    changed(world, "a.html", "b.html", text="new")
    assert killed(world, 3)
    changed(world, "c.html", "d.html", "e.html", text="newer")  # there is an index from here on

    assert world.pull().mode is Mode.INCREMENTAL
    assert world.in_sync()


@pytest.mark.parametrize(
    ("first", "then"), [*((n, None) for n in range(2, 7)), *((None, n) for n in range(7))]
)
def test_a_kill_before_or_when_a_rewritten_list_is_noticed_does_not_do_what_was_taken_back(
    world: World[PublishedSource], first: int | None, then: int | None
) -> None:
    heated(world, "first")
    world.pull()
    before = world.source.saved()
    world.source.publish_deletion("objects/0003.html")
    heated(world, "taken back")
    world.pull() if first is None else killed(world, first)
    set_back(world, before)
    world.clock.advance(seconds=120)
    heated(world, "after")
    world.pull() if then is None else killed(world, then)
    if first is not None:
        world.clock.advance(seconds=_DAY)  # one that had come to its end waits for a day at most
        heated(world, "a day later")

    world.pull()

    assert world.in_sync()


@pytest.mark.parametrize("writes", range(4, 7))
@pytest.mark.parametrize(
    "options", [{}, {"mode": "baseline"}, {"filters": Filters(exclude=("*.nothing",))}]
)
def test_a_baseline_since_changes_were_taken_back_does_not_delete_what_only_they_deleted(
    world: World[PublishedSource], writes: int, options: Any
) -> None:
    slid_past_a_file(world)
    before = world.source.saved()
    world.source.publish_deletion("since.html")
    assert killed(world, writes if options else min(writes, 5), **options)
    set_back(world, before)
    changed(world, "after.html", text="after")

    assert world.pull().mode is Mode.BASELINE
    assert BASE + "since.html" in world.files()


@pytest.mark.parametrize("writes", range(5, 7))  # from the first that stores what was read
def test_a_repair_deletes_nothing_but_what_it_found_unlisted(
    world: World[PublishedSource], writes: int
) -> None:
    world.pull()
    before = world.source.saved()
    world.source.publish_deletion("objects/0003.html")
    assert killed(world, writes)
    set_back(world, before)
    world.source.publish_deletion("objects/0001.html")

    report = world.repair(deleting=True)

    assert BASE + "objects/0003.html" in world.files()
    assert BASE + "objects/0001.html" not in world.files()
    assert report.state is not MirrorState.IN_SYNC, "what the killed pull began is not settled yet"
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_an_old_copy_of_a_list_is_read_again_past_caches_and_costs_no_baseline(
    world: World[PublishedSource],
) -> None:
    world.pull()
    changed(world, "a.html", text="a")
    world.pull()
    old = world.source.honest(CHANGE_LIST)
    changed(world, "b.html", text="b")
    world.pull()
    world.network.answers[CHANGE_LIST] = lambda request: (
        world.source.honest(CHANGE_LIST) if request.uncached else old
    )

    assert world.pull().state is MirrorState.IN_SYNC
    changed(world, "c.html", text="c")
    assert world.pull().mode is Mode.INCREMENTAL
    assert world.in_sync()
