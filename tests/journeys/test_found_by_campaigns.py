"""What lives of simulated Sources found, each in the smallest form that shows it."""

import contextlib
import random
import re
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.errors import SourceUnavailableError
from resourcesync.model.settings import Limit
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import FetchRequest
from tests.support.simulated.manners import Manners, ServerWithManners
from tests.support.worlds.daily_source import WEEK, DailySource
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE, Answer, Network, Serve
from tests.support.worlds.world import World

RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"
CHANGE_LIST = BASE + "resourcesync/changelist.xml"


def three_listed(folder: Path, **style: Any) -> World[LooseSource]:
    world = World(folder, LooseSource(**style))
    for name in ("a.txt", "b.txt", "c.txt"):
        world.source.put(name, "at first")
    world.source.publish()
    return world


@pytest.mark.parametrize(
    ("style", "after", "options"),
    [
        ({"whole_seconds": False}, 0.3, {}),
        ({"whole_seconds": True}, 0.3, {}),
        ({"ahead": 7_200}, 60, {"filters": Filters(exclude=("*.none",))}),
    ],
    ids=["at the time of its resource", "in that second", "by a clock that is ahead"],
)
def test_a_resource_is_not_absent_from_lists_of_before_its_change(
    tmp_path: Path, style: dict[str, Any], after: float, options: dict[str, Any]
) -> None:
    """The times of the lists do not show that a replica's Change List is old."""
    world = three_listed(tmp_path, **style)
    source = world.source
    source.snapshot()
    world.pull()
    older = source.honest(CHANGE_LIST)
    source.put("new.txt", "new")
    source.publish(after=after)
    world.pull(mode="auto" if options else "baseline")
    assert world.in_sync()
    world.network.answers[CHANGE_LIST] = older

    with contextlib.suppress(SourceUnavailableError):
        world.pull(**options)

    assert world.in_sync()


def test_an_older_change_that_the_source_contradicts_too_is_settled(tmp_path: Path) -> None:
    """A window of the last changes lacks one that the Resource List has: a crash of the writer."""
    source = LooseSource(begins=False, window=8)
    world = World(tmp_path, source)
    source.publish_file("a.txt", "first")
    source.publish_file("b.txt", "made")
    told = list(source.lists.open_list.entries)
    source.publish_deletion("b.txt")
    source.snapshot()
    source.lists.open_list.entries[:] = told
    source.show()

    reports = [world.pull() for _ in range(3)]

    assert world.in_sync()
    assert [report.listed.pending for report in reports] == [0, 0, 0]


def test_a_change_that_an_old_one_follows_is_old(tmp_path: Path) -> None:
    """An update has the date of its file as its time, its deletion a time of its own."""
    source = LooseSource(begins=False, window=8)
    world = World(tmp_path, source)
    source.put("a.txt", "a")
    source.put("b.txt", "b")
    source.publish()
    source.publish_file("b.txt", "b again")
    source.publish_deletion("b.txt")
    source.snapshot()
    world.network.answers[f"{BASE}b.txt"] = Answer(body=b"b again")

    assert (world.pull().state is MirrorState.IN_SYNC) <= world.in_sync()
    assert world.asked_resources() == ["a.txt"]


def test_an_older_window_takes_no_newer_copy_away(tmp_path: Path) -> None:
    """A cache has the window from before a resource was made again."""
    world = three_listed(tmp_path, begins=False, window=5)
    source = world.source
    for number in range(3):
        source.publish_file("a.txt", f"{number}")
    source.publish_deletion("b.txt")
    source.snapshot()
    world.pull()
    older = source.honest(CHANGE_LIST)
    source.publish_file("b.txt", "made again")
    source.publish_file("c.txt", "changed")
    world.pull()
    assert world.in_sync()
    world.network.answers[CHANGE_LIST] = older

    with pytest.raises(SourceUnavailableError):
        world.pull()

    assert world.in_sync()
    world.network.answers.clear()
    source.publish_file("c.txt", "changed again")
    assert world.pull().state is MirrorState.IN_SYNC, "nothing is missing"


def world_made_again(tmp_path: Path, **style: Any) -> World[LooseSource]:
    """Return a mirror that has a resource again, which a replica still calls deleted."""
    world = three_listed(tmp_path, times=False, **style)
    source = world.source
    world.pull()
    source.publish_deletion("a.txt")
    world.pull()
    older = source.honest(CHANGE_LIST)
    source.publish_file("a.txt", "made again")
    source.snapshot()
    world.network.answers[CHANGE_LIST] = older
    world.pull()
    assert world.in_sync()
    return world


@pytest.mark.parametrize("style", [{}, {"begins": False, "window": 8}], ids=str)
def test_a_resource_that_the_source_served_does_not_end_with_an_old_answer(
    tmp_path: Path, style: dict[str, Any]
) -> None:
    """A change has no time, so it may be later than the Resource List; a replica is old."""
    world = world_made_again(tmp_path, **style)
    world.network.answers[f"{BASE}a.txt"] = Answer(status=404)

    report = world.pull()

    assert world.in_sync()
    assert report.state is not MirrorState.IN_SYNC


def test_what_only_an_older_change_names_stays_while_entries_are_not_understood(
    tmp_path: Path,
) -> None:
    """The Resource List has the resource under an address of another host; a replica is old."""
    world = three_listed(tmp_path)
    source = world.source
    source.publish_file("new.txt", "new")
    world.pull()
    source.snapshot()
    listed = source.honest(RESOURCE_LIST)
    moved = listed.body.replace(f"{BASE}new".encode(), b"http://elsewhere.example/new")
    world.network.answers[RESOURCE_LIST] = Answer(body=moved)
    world.network.answers[f"{BASE}new.txt"] = Answer(status=404)

    world.pull()

    assert world.in_sync()


def test_who_vouches_for_the_lists_believes_a_deletion_that_the_source_confirms(
    tmp_path: Path,
) -> None:
    world = world_made_again(tmp_path)
    world.network.answers[f"{BASE}a.txt"] = Answer(status=404)

    world.pull(mode="baseline")

    assert sorted(world.texts()) == ["b.txt", "c.txt"]


def test_a_deletion_that_the_source_has_not_answered_yet_is_new(tmp_path: Path) -> None:
    """It was processed while the server failed: nothing in the mirror came later."""
    world = three_listed(tmp_path, times=False)
    source = world.source
    world.pull()
    source.publish_deletion("a.txt")
    world.network.answers[f"{BASE}a.txt"] = Answer(status=503)
    world.pull(filters=Filters(exclude=("*.none",)))
    assert "a.txt" in world.texts()
    world.network.answers.clear()

    world.pull()

    assert world.in_sync()


def test_an_old_copy_of_a_list_that_begins_as_the_present_one_takes_no_copy_away(
    tmp_path: Path,
) -> None:
    """The Source emptied its Change List; a cache still has one with a deletion without a time."""
    world = three_listed(tmp_path, times=False)
    source = world.source
    source.remove("a.txt")
    source.put("b.txt", "changed")
    source.publish()
    older = source.honest(CHANGE_LIST)
    source.publish_file("a.txt", "made again")
    source.lists.open_list.entries.clear()
    source.snapshot()
    world.pull()
    world.network.answers[CHANGE_LIST] = older

    world.pull()

    assert world.in_sync()


def test_a_server_whose_clock_is_behind_makes_no_copy_older_than_its_list(tmp_path: Path) -> None:
    source = LooseSource()
    world = World(tmp_path, source)
    source.publish_file("a.txt", "a")
    date = format_datetime(world.clock.now() - timedelta(hours=2), usegmt=True)
    world.network.answers[f"{BASE}a.txt"] = Answer(body=b"a", headers={"date": date})

    report = world.pull()

    with world.state() as state:
        copy = state.copy(f"{BASE}a.txt")
    assert copy is not None
    assert report.as_of is not None
    assert copy.evidence == to_microseconds(report.as_of)


def test_an_answer_as_only_a_processed_change_says_is_not_in_sync(tmp_path: Path) -> None:
    """The Resource List came after a change without a time; an older replica has that version."""
    source = LooseSource(times=False, lastmods=False)
    world = World(tmp_path, source)
    source.publish_file("a.txt", "first")
    world.pull()
    source.publish_file("a.txt", "second")
    world.pull()
    told = list(source.lists.open_list.entries)
    source.publish_file("a.txt", "third")
    source.snapshot()
    source.lists.open_list.entries[:] = told
    source.show()
    world.network.answers[f"{BASE}a.txt"] = Answer(body=b"second")

    assert world.pull().state is MirrorState.BEHIND
    world.network.answers.clear()
    world.clock.advance(hours=1)

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_list_without_interval_that_shares_nothing_takes_no_copy_away(tmp_path: Path) -> None:
    """A list was begun again, and no time of it is its own; a replica has the one before."""
    world = three_listed(tmp_path, begins=False)
    source = world.source
    source.publish_file("c.txt", "changed")
    source.publish_deletion("a.txt")
    older = source.honest(CHANGE_LIST)
    world.pull()
    source.publish_file("a.txt", "made again")
    source.lists.open_list.entries.clear()
    source.publish_file("b.txt", "changed")
    source.snapshot(after=0)
    world.pull()
    assert world.in_sync()
    world.network.answers[CHANGE_LIST] = older
    world.network.answers[f"{BASE}a.txt"] = Answer(status=404)
    world.clock.advance(hours=1)

    for _ in range(2):
        with contextlib.suppress(SourceUnavailableError):
            assert world.pull().state is MirrorState.BEHIND

    assert world.in_sync()


def test_a_change_that_a_newer_part_has_does_not_lead_to_an_older_part(tmp_path: Path) -> None:
    """An older replica sends a part; the changes since then are in no list any more."""
    part, sent = f"{BASE}resourcesync/resourcelist-2.xml", dict[str, Answer | Exception]()

    def route(request: FetchRequest, serve: Serve) -> Answer | Exception:
        answer = server.route(request, serve)
        return sent.setdefault(part, answer) if request.uri == part else answer

    source = LooseSource(begins=False, replaced=True)
    server = ServerWithManners(Manners(parts="lastmod"), source.clock, random.Random(0))
    world = World(tmp_path, source, network=Network(route))
    source.put("a.txt", "first")
    source.publish_file("b.txt", "first")
    world.pull()
    source.publish_file("b.txt", "second")
    source.publish_file("a.txt", "second")
    source.snapshot()

    assert [world.pull().state for _ in range(2)] == [MirrorState.BEHIND] * 2

    assert world.texts() == {"a.txt": "second", "b.txt": "first"}
    sent.clear()
    source.snapshot()
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_while_changes_are_missing_a_deletion_waits_for_the_next_resource_list(
    tmp_path: Path,
) -> None:
    """A cursor life (842): a replica's older Change List ended a copy that was made again."""
    world = three_listed(tmp_path)
    world.source.publish_file("d.txt", "in a list that is gone")
    world.source.rotate()
    world.source.publish_file("e.txt", "new")
    assert world.pull().faults.gap
    world.source.remove("b.txt")
    world.source.put("f.txt", "newer")
    world.source.publish()

    assert world.pull().faults.gap
    assert {"b.txt", "f.txt"} <= set(world.texts())
    world.source.snapshot()
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


@pytest.mark.parametrize("is_followed", [True, False])
def test_a_deletion_of_an_earlier_version_than_the_resource_list_has_is_settled_by_the_source(
    tmp_path: Path, *, is_followed: bool
) -> None:
    """A cursor life (878): a window whose order nothing shows, so that the deletion came last."""
    source = DailySource("newest-first", window=3)
    world = World(tmp_path, source)
    if is_followed:
        world.pull()
    source.days = WEEK
    source.remove("1.txt")
    source.remove("2.txt")
    source.put("1.txt", "made again")
    source.end_day()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_the_source_may_still_say_that_an_earlier_version_was_the_last(tmp_path: Path) -> None:
    """An old file took the place of a newer one before it was deleted, after the Resource List."""
    source = DailySource("newest-first", window=3)
    world = World(tmp_path, source)
    world.pull()
    source.remove("1.txt")
    source.end_day()
    written = source.written("changelist.xml")
    older = re.sub(
        "2026-[^<]*(?=</lastmod><rs:md change=.deleted)", "2010-01-01T00:00:00Z", written
    )
    world.network.answers[f"{BASE}changelist.xml"] = Answer(body=older.encode())

    assert world.pull(mode="baseline").state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_list_by_addresses_does_not_look_like_one_with_the_newest_change_first(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, DailySource("daily", own_times=True, archive=True))
    source = world.source
    world.pull()
    source.put("2.txt", "first")
    source.put("1.txt", "then")
    source.end_day()
    world.pull()
    source.remove("5.txt")
    source.remove("4.txt")
    source.put("4.txt", "again")
    source.end_day()

    world.pull(max_delete=Limit(number=9))

    assert world.in_sync()


@pytest.mark.parametrize("is_taken_back", [True, False])
def test_a_deletion_of_before_the_copy_came_is_a_question_without_any_date(
    tmp_path: Path, *, is_taken_back: bool
) -> None:
    """A cache has a list of before its Source was restored from a backup; or one is late."""
    world = three_listed(tmp_path)
    before = world.source.saved()
    world.source.publish_deletion("a.txt")
    later, world.source = world.source, before
    world.clock.advance(hours=1)
    world.pull()
    world.network.answers[CHANGE_LIST] = later.honest(CHANGE_LIST)
    if not is_taken_back:
        world.source = later

    report = world.pull()

    assert world.in_sync()
    assert report.state is (MirrorState.BEHIND if is_taken_back else MirrorState.IN_SYNC)


@pytest.mark.parametrize("is_changed", [True, False])
def test_a_shorter_list_of_an_older_replica_ends_no_copy_that_was_made_again(
    tmp_path: Path, *, is_changed: bool
) -> None:
    """Its list has the deletion, and it lacks the resource; nothing has a time."""
    world = three_listed(tmp_path, times=False)
    source = world.source
    world.pull()
    source.publish_deletion("a.txt")
    older = source.honest(CHANGE_LIST)
    source.publish_file("a.txt", "made again")
    world.pull()
    if is_changed:
        source.publish_file("a.txt", "changed")
    source.snapshot()
    world.network.answers |= {CHANGE_LIST: older, f"{BASE}a.txt": Answer(status=404)}

    report = world.pull()

    assert world.texts()["a.txt"] == "made again"
    assert is_changed <= (report.state is MirrorState.BEHIND)


def test_an_older_deletion_ends_no_older_version_either(tmp_path: Path) -> None:
    """The Resource List has a version that is not in the mirror yet; a replica lacks any."""
    world = world_made_again(tmp_path)
    world.source.publish_file("a.txt", "changed")
    world.source.snapshot()
    world.network.answers[f"{BASE}a.txt"] = Answer(status=404)

    report = world.pull()

    assert world.texts()["a.txt"] == "made again"
    assert report.state is MirrorState.BEHIND


def test_an_answer_settles_what_lists_without_times_dispute_since_no_time_shows_it_is_old(
    tmp_path: Path,
) -> None:
    """A replica has the version of the Resource List; or the Source took the change back."""
    told = []
    for is_taken_back in (True, False):
        world = three_listed(tmp_path / f"{is_taken_back}", times=False, lastmods=False)
        source = world.source
        source.publish_file("a.txt", "second")
        source.snapshot()
        world.pull()
        source.lists.open_list.entries.clear()  # each resource is listed once
        source.publish_file("a.txt", "third")
        if is_taken_back:
            source.put("a.txt", "second")
        else:
            world.network.answers[f"{BASE}a.txt"] = Answer(body=b"second")
        told.append((world.pull().state, world.asked(), world.texts()))
        assert world.in_sync() is is_taken_back

    assert told[0] == told[1]
    assert told[0][0] is MirrorState.IN_SYNC
