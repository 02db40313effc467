"""An audit by lists counts what agrees in all at once, and looks at the rest with care."""

from typing import Any

import pytest

from resourcesync.destination.options import Filters
from resourcesync.destination.reports import FindingKind
from resourcesync.errors import RollbackError
from resourcesync.source.policy import Step
from tests.support.world import BASE, World

RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"


def test_a_copy_in_doubt_is_not_counted_as_accurate_though_its_memory_agrees(world: World) -> None:
    world.pull()
    (world.folder / "objects/0001.html").write_text("altered here")
    world.audit(method="stat")

    report = world.audit(method="lists")

    assert (report.listed, report.present, report.accurate) == (41, 41, 40)
    assert [(it.kind, it.path) for it in report.findings] == [
        (FindingKind.DIFFERENT, "objects/0001.html")
    ]


def test_a_copy_that_is_not_wanted_any_more_is_not_counted(world: World) -> None:
    world.pull()
    world.pull(filters=Filters(exclude=("0001.html",)), mode="baseline", delete="never")

    report = world.audit(method="lists")

    assert (report.listed, report.present, report.accurate) == (40, 40, 40)
    assert report.findings == ()


@pytest.mark.parametrize("method", ["lists", "hash"])
def test_a_list_that_is_older_than_the_one_of_the_last_pull_is_nothing_to_compare_with(
    method: Any, world: World
) -> None:
    old = world.honest(RESOURCE_LIST)
    world.put("new.html", "new")
    world.publish(Step.REBASE)
    world.pull()
    assert world.audit(method=method).in_sync
    world.answers[RESOURCE_LIST] = old

    with pytest.raises(RollbackError, match="older than the one already processed"):
        world.audit(method=method)

    assert world.audit(method=method, offline=True).in_sync
