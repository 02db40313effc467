"""An audit by lists counts what agrees in all at once, and looks at the rest with care."""

from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.audits.reports import FindingKind
from resourcesync.destination.reports import MirrorState
from resourcesync.destination.scope import Filters
from resourcesync.errors import RollbackError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.source.plan import PublicationStep
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"


def test_a_copy_in_doubt_is_not_counted_as_accurate_though_its_memory_agrees(
    world: World[PublishedSource],
) -> None:
    world.pull()
    (world.folder / "objects/0001.html").write_text("altered here")
    world.audit(method="stat")

    report = world.audit(method="lists")

    assert (report.listed, report.present, report.accurate) == (41, 41, 40)
    assert [(finding.kind, finding.path) for finding in report.findings] == [
        (FindingKind.DIFFERENT, "objects/0001.html")
    ]


def test_a_copy_that_is_not_wanted_any_more_is_not_counted(world: World[PublishedSource]) -> None:
    world.pull()
    world.pull(filters=Filters(exclude=("0001.html",)), mode="baseline", delete="never")

    report = world.audit(method="lists")

    assert (report.listed, report.present, report.accurate) == (40, 40, 40)
    assert report.findings == ()


@pytest.mark.parametrize("method", ["lists", "hash"])
def test_a_list_that_is_older_than_the_one_of_the_last_pull_is_nothing_to_compare_with(
    method: Any, world: World[PublishedSource]
) -> None:
    old = world.source.honest(RESOURCE_LIST)
    world.source.put("new.html", "new")
    world.source.publish(PublicationStep.REBASE)
    world.pull()
    assert world.audit(method=method).in_sync
    world.network.answers[RESOURCE_LIST] = old

    with pytest.raises(RollbackError, match="older than the one already processed"):
        world.audit(method=method)

    assert world.audit(method=method, offline=True).in_sync


def test_a_change_that_is_listed_late_is_missing_though_it_tells_a_time_before_the_list(
    tmp_path: Path,
) -> None:
    world, early = listed_late(tmp_path)
    assert world.audit(method="lists").in_sync
    world.source.put("late.html", "late")
    world.source.lists.publish(early, world.source.originals.contents())
    world.source.show()

    report = world.audit(method="lists")

    assert [(finding.kind, finding.path) for finding in report.findings] == [
        (FindingKind.MISSING, "late.html")
    ]


def test_changes_that_were_listed_late_and_processed_count_beside_the_same_list(
    tmp_path: Path,
) -> None:
    world, early = listed_late(tmp_path)
    world.source.put("late.html", "late")
    world.source.put("1.html", "changed, and listed late")
    world.source.lists.publish(early, world.source.originals.contents())
    world.source.show()
    assert world.pull().state is MirrorState.IN_SYNC

    for _ in range(2):
        assert world.audit(method="lists").in_sync
        report = world.pull(mode="baseline")

        assert (report.state, report.deleted) == (MirrorState.IN_SYNC, 0)
        assert world.in_sync()


def test_a_deletion_that_was_listed_late_and_processed_counts_beside_the_same_list(
    tmp_path: Path,
) -> None:
    world, early = listed_late(tmp_path)
    world.source.remove("2.html")
    world.source.lists.publish(early, world.source.originals.contents())
    world.source.show()
    assert world.pull().state is MirrorState.IN_SYNC

    for _ in range(2):
        assert world.pull(mode="baseline").state is MirrorState.IN_SYNC
        assert world.in_sync()


def listed_late(folder: Path) -> tuple[World[LooseSource], int]:
    """Return a mirror in step with a Resource List, and a moment before that list."""
    world = World(folder / "mirror", LooseSource(lastmods=False))
    world.source.put("1.html", "first")
    world.source.publish()
    early = to_microseconds(world.clock.now())
    world.source.put("2.html", "second")
    world.source.publish()
    world.source.snapshot()
    world.pull()
    return world, early
