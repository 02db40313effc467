"""A mirror's life: our real publisher in memory, our real Destination on a disk."""

import pytest

from resourcesync.destination.reports import Mode
from tests.support.worlds.network import BASE
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"


@pytest.mark.founding("0.9 §6.1", "Only the last change of a resource is processed", "`pull`")
def test_only_the_last_of_many_changes_is_acted_on(world: World[PublishedSource]) -> None:
    world.pull()
    for content in ("one", "two"):
        world.source.put("objects/0001.html", content)
        world.source.put("objects/tmp.html", content)
        world.source.publish()
    world.source.remove("objects/tmp.html")
    world.source.remove("objects/0003.html")
    world.source.publish()
    world.source.publish_file("objects/0003.html", "content of 3")

    report = world.pull(None)

    assert world.asked_resources() == ["objects/0001.html"]
    assert (report.updated, report.created, report.deleted) == (1, 0, 0)
    assert world.in_sync()


@pytest.mark.founding("0.9 §2.1", "Lists that were processed before are known", "`pull`")
@pytest.mark.founding(
    "0.9 §2.2.2", "A newcomer reads the Resource List and the changes since", "`pull`"
)
def test_a_late_mirror_takes_the_changes_since_the_resource_list_into_its_baseline(
    world: World[PublishedSource],
) -> None:
    world.source.put("objects/0001.html", "newer than the Resource List")
    world.source.remove("objects/0002.html")
    world.source.publish()

    report = world.pull()

    assert report.mode is Mode.BASELINE
    assert world.in_sync()
    assert "objects/0002.html" not in world.asked_resources()
    assert world.pull().mode is Mode.UNCHANGED
