"""Groups made durable by one thread or by several: the order that a crash must find is the same."""

import errno
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.mirror import syncing
from resourcesync.adapters.mirror.installed_copies import FileTreeCopies
from resourcesync.adapters.mirror.syncing import PROBED, is_trusted, syncer_of, waiting_bytes
from resourcesync.errors import DiskFullError, StorageError
from resourcesync.ports import CopyInstallation
from tests.contracts.copies_suite import copies_in

COUNT = 100


class Disk:
    """Counts what is synced and when, on a disk as slow as a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.log: list[str] = []
        self.threads: set[int] = set()
        self.broken: set[int] = set()
        self._seconds = seconds
        self._fsync, self._rename = os.fsync, os.rename
        self._files = 0
        monkeypatch.setattr(os, "fsync", self.fsync)
        monkeypatch.setattr(os, "rename", self.rename)

    def fsync(self, file: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{file}"):
            self.log.append("folder")
            return self._fsync(file)
        self.threads.add(threading.get_ident())
        time.sleep(self._seconds)
        self._files += 1
        if self._files in self.broken:
            raise OSError(errno.EIO, "no")
        self._fsync(file)
        self.log.append("file")
        return None

    def rename(self, *places: str, **folders: Any) -> None:
        self.log.append("rename")
        self._rename(*places, **folders)


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileTreeCopies]:
    monkeypatch.setattr(syncing, "syncer_of", lambda _: None)
    with copies_in(tmp_path / "root", time.monotonic) as made:
        yield made


def batch(copies: FileTreeCopies, count: int, path: str = "{}.txt") -> list[CopyInstallation]:
    made = []
    for number in range(count):
        staged = copies.stage(["sha-256"])
        staged.write(f"{number}".encode())
        staged.seal()
        made.append(CopyInstallation(staged=staged, path=path.format(number)))
    return made


@pytest.mark.parametrize(("seconds", "several"), [(0.001, True), (0.0, False)])
def test_every_file_is_durable_before_the_first_gets_its_name(
    copies: FileTreeCopies,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    several: bool,
) -> None:
    group = batch(copies, COUNT)
    disk = Disk(monkeypatch, seconds)
    if not several:
        monkeypatch.setattr("resourcesync.adapters.mirror.syncing.SLOW_SECONDS", 1.0)

    results = copies.install(group)

    assert all(isinstance(result, str) for result in results)
    assert disk.log[: 2 * COUNT] == ["file"] * COUNT + ["rename"] * COUNT
    assert disk.log[2 * COUNT :] == ["folder"]
    assert (len(disk.threads) > 1) is several
    assert {p.name: p.read_text() for p in (tmp_path / "root").glob("*.txt")} == {
        f"{number}.txt": f"{number}" for number in range(COUNT)
    }


def test_what_cannot_be_made_durable_by_any_thread_is_not_put_in_place(
    copies: FileTreeCopies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = batch(copies, COUNT)
    disk = Disk(monkeypatch, 0.001)
    disk.broken = {1, 40, 41, 90}

    results = copies.install(group)

    bad = [number for number, result in enumerate(results) if not isinstance(result, str)]
    assert len(bad) == 4
    assert all(isinstance(results[number], StorageError) for number in bad)
    assert not any(isinstance(results[number], DiskFullError) for number in bad)
    there = {path.name for path in (tmp_path / "root").glob("*.txt")}
    assert there == {f"{number}.txt" for number in range(COUNT) if number not in bad}
    assert list((tmp_path / "root/.resourcesync/tmp").iterdir()) == []


def test_results_come_in_the_order_of_the_batch(
    copies: FileTreeCopies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Disk(monkeypatch, 0.0005)

    for _ in range(3):
        results = copies.install(batch(copies, COUNT))
        for number, result in enumerate(results):
            info = (tmp_path / "root" / f"{number}.txt").stat()
            assert result == f"{info.st_size}:{info.st_mtime_ns}:{info.st_ino}"


@pytest.mark.parametrize("succeeds", [True, False])
def test_one_sync_stands_for_a_group_only_if_it_succeeds(
    copies: FileTreeCopies, monkeypatch: pytest.MonkeyPatch, succeeds: bool
) -> None:
    disk = Disk(monkeypatch, 0.001)

    def sync() -> bool:
        disk.log.append("all")
        return succeeds

    monkeypatch.setattr(syncing, "syncer_of", lambda _: sync)

    results = copies.install(batch(copies, COUNT, "{}/index.txt"))

    assert all(isinstance(result, str) for result in results)
    rest = COUNT - PROBED
    assert disk.log == [
        *["file"] * PROBED,
        *(["all"] if succeeds else ["all", *["file"] * rest]),
        *["rename"] * COUNT,
        *(["all"] if succeeds else ["all", *["folder"] * (COUNT + 1)]),
    ]


@pytest.mark.parametrize(
    ("release", "kind", "has_journal", "trusted"),
    [
        ("6.1.0-13-amd64", 0xEF53, True, True),
        ("6.1.0-13-amd64", 0xEF53, False, False),
        ("5.17", 0x58465342, False, True),
        ("6.8.0", 0x9123683E, False, True),
        ("5.16.20", 0x58465342, False, False),
        ("4.18.0-553.el8", 0xEF53, True, False),
        ("6.8.0", 0x6969, False, False),
        ("6.8.0", 0x794C7630, False, False),
        ("unknown", 0x58465342, False, False),
    ],
    ids=["ext4", "no journal", "xfs", "btrfs", "5.16", "4.18", "nfs", "overlay", "unknown"],
)
def test_a_whole_file_system_is_synced_only_where_that_promises_what_a_sync_of_each_file_does(
    release: str, kind: int, has_journal: bool, trusted: bool
) -> None:
    assert is_trusted(release, kind, has_journal=has_journal) is trusted


def test_what_waits_for_the_disks_is_read_in_bytes() -> None:
    text = "MemFree:    900 kB\nDirty:       12 kB\nWriteback:    3 kB\nWritebackTmp:   9 kB\n"

    assert waiting_bytes(text) == 15 << 10


@pytest.mark.parametrize("journal", [True, False])
def test_a_real_file_system_with_a_journal_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: bool
) -> None:
    monkeypatch.setattr(syncing, "MAX_WAITING", 1 << 60)  # others may write
    image, disk = tmp_path / "image", tmp_path / "disk"
    disk.mkdir()
    image.write_bytes(b"")
    os.truncate(image, 16 << 20)
    option = "has_journal" if journal else "^has_journal"
    try:
        subprocess.run(["mkfs.ext4", "-q", "-O", option, image], check=True, timeout=60)
        subprocess.run(["mount", "-o", "loop", image, disk], check=True, timeout=60)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no ext4 can be mounted here")
    folder = os.open(disk, os.O_RDONLY)
    is_new_enough = tuple(map(int, os.uname().release.split(".")[:2])) >= (5, 17)
    try:
        sync = syncer_of(folder)
        assert (sync is not None and sync()) is (journal and is_new_enough)
    finally:
        os.close(folder)
        subprocess.run(["umount", disk], check=True, timeout=60)
