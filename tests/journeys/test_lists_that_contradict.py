"""Lists that contradict each other: pull, audit, repair and a dry run say the same of them."""

from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.mirror.mirror_folder import MirrorFolder
from resourcesync.destination.audits.reports import FindingKind
from resourcesync.destination.cursor import Phase
from resourcesync.destination.options import PullOptions
from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.destination.sync_state import SyncState
from tests.support.storage.cursors import set_cursor
from tests.support.worlds.contradicting_source import (
    LISTED_AT,
    ONE,
    OTHERS,
    ContradictingSource,
    change,
)
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import World

URI = BASE + ONE
LATER = "2026-01-03T00:00:00Z"


@pytest.fixture
def world(tmp_path: Path) -> World[ContradictingSource]:
    made = World(tmp_path / "mirror", ContradictingSource())
    made.source.begin()
    assert made.pull().state is MirrorState.IN_SYNC
    return made


def later(world: World[ContradictingSource], **options: Any) -> RunReport:
    world.clock.advance(seconds=3_600)
    return world.pull(**options)


def repaired(world: World[ContradictingSource]) -> RunReport:
    with world.destination() as destination:
        return destination.repair(None, PullOptions())


def agree(world: World[ContradictingSource], state: MirrorState) -> None:
    """Check that audits, a repair and the next pulls say the same as the last pull."""
    in_sync = state is MirrorState.IN_SYNC
    assert [world.audit(method=name).in_sync for name in ("lists", "stat", "hash")] == [in_sync] * 3
    assert world.audit(offline=True).in_sync is in_sync
    assert (repaired(world).state is MirrorState.IN_SYNC) is in_sync
    assert later(world).state is state
    assert [world.audit(method=name).in_sync for name in ("lists", "stat", "hash")] == [in_sync] * 3


@pytest.mark.parametrize("time", [LISTED_AT, ""])
@pytest.mark.parametrize("served", ["first", "second"])
def test_what_the_source_gives_is_right_where_one_of_two_lists_has_it(
    world: World[ContradictingSource], served: str, time: str
) -> None:
    world.source.serve_one(served)
    world.source.list(LISTED_AT, "first", change("updated", "second", time))

    assert later(world).state is MirrorState.IN_SYNC

    assert world.in_sync()
    agree(world, MirrorState.IN_SYNC)
    assert world.in_sync()


def test_what_neither_list_has_is_right_for_nobody(world: World[ContradictingSource]) -> None:
    world.source.serve_one("third")
    world.source.list(LISTED_AT, "first", change("updated", "second"))

    assert later(world).state is MirrorState.BEHIND

    agree(world, MirrorState.BEHIND)
    assert [finding.uri for finding in world.audit().findings] == [URI]


@pytest.mark.parametrize("time", [LISTED_AT, ""])
def test_what_one_list_calls_deleted_and_the_source_does_not_have_is_missing_for_nobody(
    world: World[ContradictingSource], time: str
) -> None:
    world.source.serve_one(None)
    world.source.list(LISTED_AT, "first", change("deleted", time=time))

    assert (later(world).state, later(world).state) == (MirrorState.IN_SYNC, MirrorState.IN_SYNC)

    assert world.in_sync()
    agree(world, MirrorState.IN_SYNC)
    assert (world.audit().listed, world.audit().findings) == (len(OTHERS), ())


def test_what_one_list_calls_deleted_and_policy_keeps_is_extra_and_no_fault(
    world: World[ContradictingSource],
) -> None:
    world.source.serve_one(None)
    world.source.list(LISTED_AT, "first", change("deleted"))

    assert later(world, delete="never").state is MirrorState.IN_SYNC

    report = world.audit()
    assert (report.in_sync, report.unlisted, report.extra) == (True, 1, 0)
    assert repaired(world).state is MirrorState.IN_SYNC
    assert URI in world.files()


def test_what_one_list_calls_deleted_and_the_source_gives_is_in_sync_for_nobody(
    world: World[ContradictingSource],
) -> None:
    world.source.list(LISTED_AT, "first", change("deleted"))

    assert later(world).state is MirrorState.BEHIND

    report = world.audit()
    assert (report.in_sync, report.accurate, report.listed) == (False, len(OTHERS), 6)
    assert (repaired(world).state, later(world).state) == (MirrorState.BEHIND,) * 2
    assert URI in world.files()


def test_an_audit_of_lists_that_no_pull_has_read_claims_nothing(
    world: World[ContradictingSource],
) -> None:
    world.source.list(LISTED_AT, "first", change("updated", "second"))

    assert not world.audit().in_sync
    world.source.list(LISTED_AT, "first", change("deleted"))
    assert not world.audit().in_sync

    world.source.serve_one(None)
    later(world)
    world.source.list(LISTED_AT, "first", change("deleted"), change("created", "first"))
    assert not world.audit().in_sync  # it was asked for because of other lists


@pytest.mark.parametrize("served", ["first", "third"])
def test_a_change_that_is_no_later_than_the_list_read_before_is_compared_with_it(
    world: World[ContradictingSource], served: str
) -> None:
    world.source.list(LISTED_AT, "first")
    assert later(world).state is MirrorState.IN_SYNC
    world.source.serve_one(served)
    world.source.list(LISTED_AT, "first", change("updated", "second"))
    assert later(world).state is MirrorState.BEHIND
    assert not world.audit().in_sync

    report = later(world)

    expected = MirrorState.IN_SYNC if served == "first" else MirrorState.BEHIND
    assert report.state is expected
    agree(world, expected)


def test_a_later_change_to_what_is_not_served_leads_to_no_baseline_each_time(
    world: World[ContradictingSource],
) -> None:
    world.source.list(LISTED_AT, "first")
    later(world)
    world.source.list(LISTED_AT, "first", change("updated", "second", LATER))

    modes = [later(world).mode for _ in range(4)]

    assert modes == ["incremental"] * 4


def test_a_change_without_a_time_to_what_is_not_served_leads_to_one_baseline(
    world: World[ContradictingSource],
) -> None:
    world.source.list(LISTED_AT, "first")
    later(world)
    world.source.serve_one("third")
    entry = change("updated", "second").replace("</url>", "<lastmod>2025-12-30</lastmod></url>")
    world.source.list(LISTED_AT, "first", entry.replace(LISTED_AT, LATER))

    modes = [later(world).mode for _ in range(4)]

    assert modes == ["incremental", "baseline", "incremental", "incremental"]


@pytest.mark.parametrize("served", ["first", "second", None])
def test_what_could_not_be_asked_for_is_decided_in_the_same_way_when_it_is_tried_again(
    world: World[ContradictingSource], served: str | None
) -> None:
    world.network.answers[URI] = Answer(status=500)
    kind = "updated" if served else "deleted"
    world.source.list(LISTED_AT, "first", change(kind, "second"))
    assert later(world).state is MirrorState.BEHIND
    assert not world.audit().in_sync
    with MirrorFolder(world.folder, world.clock) as mirror:  # so that the task alone is tried
        assert mirror.state is not None
        set_cursor(mirror.state, phase=Phase.FOLLOWING)
    del world.network.answers[URI]
    world.source.serve_one(served)

    report = later(world)

    assert report.mode == "incremental"
    assert report.state is MirrorState.IN_SYNC
    assert world.in_sync()
    agree(world, MirrorState.IN_SYNC)


def test_what_is_tried_again_and_still_contradicts_stays_behind(
    world: World[ContradictingSource],
) -> None:
    world.network.answers[URI] = Answer(status=500)
    world.source.list(LISTED_AT, "first", change("deleted"))
    later(world)
    with MirrorFolder(world.folder, world.clock) as mirror:
        assert mirror.state is not None
        set_cursor(mirror.state, phase=Phase.FOLLOWING)
    del world.network.answers[URI]

    assert [later(world).state for _ in range(3)] == [MirrorState.BEHIND] * 3

    with MirrorFolder(world.folder, world.clock) as mirror:
        assert mirror.state is not None
        assert SyncState(mirror.state).cursor.is_baseline_due


def test_a_repair_leaves_a_deletion_that_the_source_confirms_to_the_next_pull(
    world: World[ContradictingSource],
) -> None:
    world.source.serve_one(None)
    world.source.list(LISTED_AT, "first", change("deleted"))
    (path,) = world.folder.rglob(f"{ONE}*")
    path.write_text("damaged")

    report = repaired(world)

    assert (report.state, report.deleted, report.held) == (MirrorState.BEHIND, 0, 0)
    assert later(world).state is MirrorState.IN_SYNC
    assert URI not in world.files()


def test_a_dry_run_foresees_what_the_pull_then_asks_for(world: World[ContradictingSource]) -> None:
    world.source.list(LISTED_AT, "first", change("updated", "second"))

    planned = later(world, dry_run=True)
    [plan] = world.told("plan")

    assert (plan["update"], plan["delete"]) == (1, 0)
    assert planned.state is not MirrorState.STOPPED
    assert later(world).fetched.equal + world.pull().updated <= 1
    assert FindingKind.DIFFERENT not in {finding.kind for finding in world.audit().findings}
