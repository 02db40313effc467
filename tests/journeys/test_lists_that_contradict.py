"""Lists that contradict each other: pull, audit, repair and a dry run say the same of them."""

from pathlib import Path
from typing import Any

import pytest

from resourcesync.cli.commands.why import next_step
from resourcesync.cli.render.audit import conclude
from resourcesync.cli.render.status import notes_of
from resourcesync.destination.audits.explain import ResourceVerdict
from resourcesync.destination.mirror_health import CheckedMirror
from resourcesync.destination.reports import MirrorState, RunReport
from tests.support.worlds.contradicting_source import (
    LISTED_AT,
    ONE,
    OTHERS,
    ContradictingSource,
    change,
)
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World

URI = BASE + ONE


@pytest.fixture
def world(tmp_path: Path) -> World[ContradictingSource]:
    made = World(tmp_path / "mirror", ContradictingSource())
    made.source.begin()
    assert made.pull().state is MirrorState.IN_SYNC
    return made


def later(world: World[ContradictingSource], **options: Any) -> RunReport:
    world.clock.advance(seconds=3_600)
    return world.pull(**options)


def agree(world: World[ContradictingSource], state: MirrorState) -> None:
    """Check that audits, a repair and the next pulls say the same as the last pull."""
    in_sync = state is MirrorState.IN_SYNC
    assert [world.audit(method=name).in_sync for name in ("lists", "stat", "hash")] == [in_sync] * 3
    assert world.audit(offline=True).in_sync is in_sync
    assert (world.repair().state is MirrorState.IN_SYNC) is in_sync
    assert later(world).state is state
    assert [world.audit(method=name).in_sync for name in ("lists", "stat", "hash")] == [in_sync] * 3


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
    assert world.repair().state is MirrorState.IN_SYNC
    assert URI in world.files()


def test_what_one_list_calls_deleted_and_the_source_gives_is_in_sync_for_nobody(
    world: World[ContradictingSource],
) -> None:
    world.source.list(LISTED_AT, "first", change("deleted"))

    assert later(world).state is MirrorState.BEHIND

    notes = "\n".join(notes_of(CheckedMirror(world.status())))
    assert "lists of the Source contradict each other about 1 resource" in notes
    assert "until a pull has read" not in notes
    report = world.audit()
    assert (report.in_sync, report.accurate, report.listed) == (False, len(OTHERS), 6)
    assert world.why(ONE, None).verdict is ResourceVerdict.UNDECIDED
    for again in (world.repair(), later(world)):
        assert (again.state, again.faults.undecided) == (MirrorState.BEHIND, 1)
    assert URI in world.files()


def test_while_an_entry_cannot_be_used_no_command_advises_to_delete_what_is_not_listed(
    world: World[ContradictingSource],
) -> None:
    unusable = f'<url><loc>ftp://a/b</loc><rs:md change="created" datetime="{LISTED_AT}"/></url>'
    world.source.list(LISTED_AT, None, unusable)

    report = later(world, mode="baseline", delete="absent")

    assert (report.state, report.listed.refused) == (MirrorState.BEHIND, 1)
    assert world.repair(deleting=True).state is MirrorState.BEHIND
    assert URI in world.files()
    said = notes_of(CheckedMirror(world.status()))
    said += [line.text for line in conclude(world.audit(), Path("m")).closing]
    assert "1 file no longer listed (kept)" in said
    assert not [line for line in said if "--delete" in line]
    assert next_step(world.why(ONE), Path("m")) is None
