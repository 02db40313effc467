"""Change Dumps with diffs by value (D-Lib 2013, section 3): never taken for the resource (B4)."""

import json
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from tests.support.worlds.dump_source import AT, DumpSource, Packed, Told, zipped
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World

LATER = "2026-01-01T01:00:00Z"
NAME = "a.json"
OLD, NEW = (json.dumps({"number": n, "padding": "x" * 400}).encode() for n in (1, 2))
DIFF = b'[{"op": "replace", "path": "/number", "value": 2}]'
TYPES = (
    "application/json-patch", "application/json-patch+json", "application/json-patch; v=1",
    "application/merge-patch+json", "application/xml-patch+xml", "application/patch-ops-error+xml",
    "application/x-tiff-diff", "text/x-diff", "Text/X-Patch",
)  # fmt: skip


def diff_of(media_type: str) -> Told:
    return Told(name=NAME, data=DIFF, change="updated", time=LATER, lastmod=LATER, type=media_type)


@pytest.fixture
def world(tmp_path: Path) -> World[DumpSource]:
    """A mirror that holds the first version; the Source serves the second."""
    world = World(tmp_path / "mirror", DumpSource())
    world.source.put_all([Told(name=NAME, data=OLD)])
    world.source.list_resources([Told(name=NAME, data=OLD)])
    assert world.pull().state is MirrorState.IN_SYNC
    world.source.put_all([Told(name=NAME, data=NEW)])
    return world


def dump(world: World[DumpSource], told: Told) -> None:
    world.source.dump_changes(Packed(name="d.zip", body=zipped([told], from_=AT), from_=AT))


@pytest.mark.founding(
    "D-Lib §3",
    "A diff as the bitstream of a change is known by its type, never stored as the resource",
    "`pull`",
)
@pytest.mark.parametrize("media_type", TYPES)
@pytest.mark.parametrize("listed", ["dump alone", "dump and list"])
def test_a_diff_leads_to_a_request_for_the_resource(
    world: World[DumpSource], media_type: str, listed: str
) -> None:
    dump(world, diff_of(media_type))
    if listed == "dump and list":
        bare = Told(name=NAME, change="updated", time=LATER, lastmod=LATER, hash="", length=-1)
        world.source.list_changes([bare])

    report = world.pull(dumps="always")

    assert report.state is MirrorState.IN_SYNC
    assert world.files() == {BASE + NAME: NEW}
    assert world.asked_resources().count(NAME) == 1


def test_a_diff_of_a_resource_that_is_not_served_leaves_the_copy_and_is_not_in_sync(
    world: World[DumpSource],
) -> None:
    dump(world, diff_of(TYPES[0]))
    del world.source.served[BASE + NAME]

    report = world.pull(dumps="always")

    assert report.state is MirrorState.BEHIND
    assert world.files() == {BASE + NAME: OLD}
