"""An audit by lists counts what agrees in all at once, and looks at the rest with care."""

from typing import Any

import pytest

from resourcesync.destination.scope import Filters
from resourcesync.errors import RollbackError
from resourcesync.source.plan import PublicationStep
from tests.support.worlds.network import BASE
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"


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
