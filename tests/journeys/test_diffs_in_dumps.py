"""Change Dumps with diffs by value (D-Lib 2013, section 3): never taken for the resource (B4)."""

import json
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from tests.support.documents.packages import Forged, forge
from tests.support.worlds.dump_source import AT, DumpSource, Packed, Told, manifest_of, zipped
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World

BEFORE, LATER = "2026-01-01T00:30:00Z", "2026-01-01T01:00:00Z"
NAME = "a.json"
OLD, NEW = (json.dumps({"number": n, "padding": "x" * 400}).encode() for n in (1, 2))
DIFF = b'[{"op": "replace", "path": "/number", "value": 2}]'
TYPES = (
    "application/json-patch", "application/json-patch+json", "application/json-patch; v=1",
    "application/merge-patch+json", "application/xml-patch+xml", "application/patch-ops-error+xml",
    "application/x-tiff-diff", "text/x-diff", "Text/X-Patch",
)  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> World[DumpSource]:
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
    told = Told(name=NAME, data=DIFF, change="updated", time=LATER, lastmod=LATER, type=media_type)
    dump(world, told)
    if listed == "dump and list":
        bare = Told(name=NAME, change="updated", time=LATER, lastmod=LATER, hash="", length=-1)
        world.source.list_changes([bare])

    assert world.pull(dumps="always").state is MirrorState.IN_SYNC
    assert world.files() == {BASE + NAME: NEW}
    assert world.asked_resources().count(NAME) == 1


def packed_patch(patch: bytes, told: Told) -> bytes:
    """A package that has of a changed resource a patch alone (0.9, section 8.3)."""
    link = (
        f'<rs:ln rel="http://www.openarchives.org/rs/terms/patch" href="{BASE}a.patch"'
        f' path="/patches/1" type="application/json-patch+json" length="{len(patch)}"/></url>'
    )
    manifest = manifest_of([told], from_=AT).decode()
    manifest = manifest.replace(f' path="/{NAME}"', "").replace("</url>", link)
    return forge(Forged(b"manifest.xml", manifest.encode()), Forged(b"patches/1", patch))


@pytest.mark.founding("D-Lib §3", "A patch in a Change Dump is applied", "`pull`")
def test_a_patch_alone_in_a_package_makes_the_version_without_a_request(
    world: World[DumpSource],
) -> None:
    told = Told(name=NAME, data=NEW, change="updated", time=LATER, lastmod=BEFORE)
    world.source.dump_changes()
    world.pull(dumps="always")
    world.source.dump_changes(Packed(name="d.zip", body=packed_patch(DIFF, told), from_=AT))

    report = world.pull(dumps="always")

    assert (report.state, report.fetched.patched) == (MirrorState.IN_SYNC, 1)
    assert world.files() == {BASE + NAME: NEW}
    assert NAME not in world.asked()
    assert world.warned() == []


@pytest.mark.parametrize("spoilt", ["the patch", "the copy"])
def test_where_a_packed_patch_does_not_lead_to_the_version_the_resource_is_requested(
    spoilt: str, world: World[DumpSource]
) -> None:
    told = Told(name=NAME, data=NEW, change="updated", time=LATER, lastmod=BEFORE)
    patch = DIFF.replace(b"2}", b"3}") if spoilt == "the patch" else DIFF
    if spoilt == "the copy":
        (world.folder / NAME).write_bytes(b"edited here")
    world.source.dump_changes()
    world.pull(dumps="always")
    world.source.dump_changes(Packed(name="d.zip", body=packed_patch(patch, told), from_=AT))

    report = world.pull(dumps="always")

    assert (report.state, report.fetched.patched) == (MirrorState.IN_SYNC, 0)
    assert world.files() == {BASE + NAME: NEW}
    assert world.asked().count(NAME) == 1
