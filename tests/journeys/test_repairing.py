"""A repair brings back what an audit found lost or altered, and nothing else."""

from pathlib import Path

import pytest

from resourcesync.destination.lists.absence_proof import ListMoments
from resourcesync.destination.reports import MirrorState
from resourcesync.errors import RollbackError
from tests.support.storage.cursors import set_cursor
from tests.support.worlds.dump_source import DumpSource, Packed, many, zipped
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World


def quarantine(world: World[PublishedSource]) -> dict[str, str]:
    folder = world.folder / ".resourcesync/quarantine"
    return {path.name[17:]: path.read_text() for path in folder.iterdir()}


def test_what_is_missing_or_altered_is_fetched_again_and_nothing_else(
    world: World[PublishedSource],
) -> None:
    world.pull()
    (world.folder / "objects/0001.html").unlink()
    (world.folder / "objects/0002.html").write_text("my own words")
    (world.folder / "notes.txt").write_text("mine")
    world.fetcher.asked.clear()

    report = world.repair()

    assert report.state is MirrorState.IN_SYNC
    assert (report.created, report.updated) == (1, 1)
    assert sorted(world.asked_resources()) == ["objects/0001.html", "objects/0002.html"]
    assert (world.folder / "notes.txt").read_text() == "mine"
    assert world.audit().accuracy == 1.0
    assert quarantine(world) == {
        "0002.html": "my own words",
        "0002.html.note": "was at: objects/0002.html\nbecause: not known to be from the Source\n",
    }


def test_extras_are_deleted_only_when_asked_for(world: World[PublishedSource]) -> None:
    world.pull()
    world.source.publish_deletion("objects/0006.html")
    (world.folder / "notes.txt").write_text("mine")
    found = world.audit().findings

    world.source.publish_file("objects/0050.html", "made after the audit")
    for kept in (world.repair(found, dry_run=True), world.repair(found)):
        assert (kept.state, kept.deleted, kept.retained.extra) == (MirrorState.BEHIND, 0, 1)
        assert (kept.listed.right, kept.listed.pending) == (40, 1)
    assert (world.folder / "objects/0006.html").exists()
    assert world.repair(found, deleting=True).deleted == 1
    assert not (world.folder / "objects/0006.html").exists()
    assert (world.folder / "notes.txt").read_text() == "mine"


def test_a_damaged_copy_whose_bytes_are_back_is_nothing_to_repair(
    world: World[PublishedSource],
) -> None:
    world.pull()
    page = world.folder / "objects/0002.html"
    good = page.read_bytes()
    page.write_text("damaged")
    assert not world.audit().in_sync
    page.write_bytes(good)

    for dry_run in (True, False):
        assert world.repair(dry_run=dry_run).state is MirrorState.IN_SYNC


def test_a_copy_that_is_kept_is_no_cause_of_a_wait(world: World[PublishedSource]) -> None:
    world.pull()
    world.source.publish_deletion("objects/0006.html")
    assert world.pull(delete="never").resources == 41

    with world.state() as state:
        assert state.causes() == []


def test_a_source_that_was_set_back_repairs_nothing(world: World[PublishedSource]) -> None:
    world.pull()
    (world.folder / "objects/0001.html").unlink()
    with world.state() as state:
        set_cursor(state, moments=ListMoments(head=1 << 52))

    world.fetcher.asked.clear()
    with pytest.raises(RollbackError):
        world.repair()

    assert world.asked_resources() == []


def test_many_missing_copies_come_from_a_dump(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror", DumpSource())
    told = many(200)
    world.source.publish(told)
    world.source.dump(Packed(name="d.zip", body=zipped(told)))
    world.pull(dumps="never")
    names = sorted(path for path in world.home.files_on_disk() if path.startswith("r/"))
    for name in names[:150]:
        (world.folder / name).unlink()
    (world.folder / names[160]).write_text("altered")
    world.fetcher.asked.clear()

    report = world.repair()

    assert report.state is MirrorState.IN_SYNC
    assert (report.created, report.updated) == (150, 1)
    assert world.in_sync()
    assert [name for name in world.asked() if name.startswith("r/")] == ["r/00160"]
    assert "d.zip" in world.asked()
