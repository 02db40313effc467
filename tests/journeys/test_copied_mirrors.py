"""A mirror that was copied or restored is a healthy one: "changed here" is said of bytes."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.worlds.network import BASE
from tests.support.worlds.plain_site import PlainSite
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World


def _by_cp(folder: Path) -> None:
    shutil.copytree(folder, folder.with_name("copy"), symlinks=True)
    shutil.rmtree(folder)
    folder.with_name("copy").rename(folder)


def _by_tar(folder: Path) -> None:
    _by_cp(folder)
    for path in folder.rglob("*"):
        seconds = int(path.stat().st_mtime)
        os.utime(path, (seconds, seconds))


def _by_rsync(folder: Path) -> None:
    _by_cp(folder)
    for path in folder.rglob("*"):
        os.utime(path)


restored = pytest.mark.parametrize("restore", [_by_cp, _by_tar, _by_rsync])
Restore = Callable[[Path], None]


def _quarantined(world: World[PublishedSource]) -> list[str]:
    return os.listdir(world.folder / ".resourcesync/quarantine")


def _count_unlike(world: World[PublishedSource]) -> int:
    with world.dependencies() as opened:
        look = opened.copies
        return sum(look.signature(copy.path) != copy.signature for copy in opened.state.copies())


@restored
def test_a_restored_mirror_deletes_and_replaces_as_the_original_does(
    world: World[PublishedSource], restore: Restore
) -> None:
    world.pull()
    restore(world.folder)
    for number in range(3):
        world.source.remove(f"objects/{number:04}.html")
    for number in range(10, 40):
        world.source.put(f"objects/{number:04}.html", "newer")
    world.source.publish()

    report = world.pull()

    assert (report.deleted, report.updated, report.retained.edited) == (3, 30, 0)
    assert report.state == "in sync"
    assert _quarantined(world) == []
    assert world.in_sync()


@restored
def test_a_baseline_of_a_restored_mirror_fetches_nothing(
    world: World[PublishedSource], restore: Restore
) -> None:
    world.pull()
    restore(world.folder)

    assert world.pull(mode="baseline").state == "in sync"
    assert world.asked_resources() == []
    assert _count_unlike(world) == 0


def test_a_restored_mirror_of_a_site_without_hashes_is_not_fetched_again(tmp_path: Path) -> None:
    site = PlainSite({f"{number}.html": f"page {number}" for number in range(6)}, date="2024-01-01")
    world = World(tmp_path / "mirror", site)
    world.pull()
    _by_cp(world.folder)

    report = world.pull(mode="baseline")

    assert (report.state, report.listed.unchanged, report.fetched.equal) == ("in sync", 6, 0)
    assert world.asked_resources() == []


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize("method", ["stat", "hash"])
def test_an_audit_of_a_restored_mirror_finds_nothing_and_learns_its_files(
    world: World[PublishedSource], method: str, offline: bool
) -> None:
    world.pull()
    _by_cp(world.folder)
    assert _count_unlike(world) == 41

    report = world.audit(method=method, offline=offline)

    assert report.in_sync
    assert (report.accurate, report.doubted) == (41, 0)
    assert _count_unlike(world) == 0
    assert world.audit(method="stat").read_bytes == 0, "what was learned is not read again"


def test_other_bytes_in_a_restored_mirror_are_still_kept(world: World[PublishedSource]) -> None:
    world.pull()
    _by_cp(world.folder)
    (world.folder / "objects/0001.html").write_text("my own")
    (world.folder / "objects/0002.html").write_text("Content of 2")  # of the same length
    world.source.remove("objects/0001.html")
    world.source.put("objects/0002.html", "newer")
    world.source.publish()

    report = world.pull()

    assert (report.retained.edited, report.deleted) == (1, 0)
    assert (world.folder / "objects/0001.html").read_text() == "my own"
    assert len(_quarantined(world)) == 2, "the file and its note"
    assert world.files()[f"{BASE}objects/0002.html"] == b"newer"
