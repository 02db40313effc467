"""The mirror's own folder: who holds it, whether it is still ours, and what was planted in it."""

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.adapters.mirror.own_folder import is_mirror
from resourcesync.adapters.system import SystemClock
from resourcesync.errors import LockedError, MirrorChangedError, StateError, StorageError
from resourcesync.mirror_state.database import SqliteMirrorState


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[MirrorFolder]:
    with MirrorFolder(tmp_path / "mirror", SystemClock()) as folder:
        yield folder


def test_what_a_killed_run_left_half_written_is_cleared(tmp_path: Path) -> None:
    root = tmp_path / "mirror"
    with MirrorFolder(root, SystemClock()):
        pass
    (root / ".resourcesync/tmp/left").write_bytes(b"half")

    with MirrorFolder(root, SystemClock()):
        assert os.listdir(root / ".resourcesync/tmp") == []


def test_a_second_run_learns_who_holds_the_mirror(mirror: MirrorFolder) -> None:
    with pytest.raises(LockedError) as caught:
        MirrorFolder(mirror.root, SystemClock())
    assert f"process {os.getpid()} on {socket.gethostname()}" in dict(caught.value.evidence)["who"]


def test_a_folder_whose_disk_is_not_mounted_is_noticed(tmp_path: Path) -> None:
    root = tmp_path / "mirror"
    with MirrorFolder(root, SystemClock()) as folder:
        marker = (root / ".resourcesync/marker").read_bytes()
        (root / ".resourcesync/marker").unlink()
        with pytest.raises(MirrorChangedError):
            folder.check_marker()
    with pytest.raises(MirrorChangedError):
        MirrorFolder(root, SystemClock())
    (root / ".resourcesync/marker").write_bytes(marker)

    with MirrorFolder(root, SystemClock()):
        assert is_mirror(root)


def test_a_lost_memory_takes_over_the_marker_that_is_there(tmp_path: Path) -> None:
    root = tmp_path / "mirror"
    with MirrorFolder(root, SystemClock()):
        marker = (root / ".resourcesync/marker").read_bytes()
    (root / ".resourcesync/state.db").unlink()
    assert not is_mirror(root)

    with MirrorFolder(root, SystemClock()) as folder:
        folder.check_marker()
        assert (root / ".resourcesync/marker").read_bytes() == marker


@pytest.mark.parametrize("name", ["state.db", "state.db-wal"])
def test_a_link_planted_as_the_memory_is_not_followed(tmp_path: Path, name: str) -> None:
    own = tmp_path / "mirror" / ".resourcesync"
    own.mkdir(parents=True)
    canary = tmp_path / "canary"
    canary.write_bytes(b"precious")
    (own / name).symlink_to(canary)

    with pytest.raises(StateError):
        MirrorFolder(tmp_path / "mirror", SystemClock())

    assert canary.read_bytes() == b"precious"


@pytest.mark.parametrize("nth", [1, 2])
def test_a_disk_error_at_each_look_at_the_log_of_the_state_is_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    looks, stat = [], os.stat

    def failing(path: Any, **options: Any) -> os.stat_result:
        if str(path).endswith("state.db-wal"):
            looks.append(path)
            if len(looks) == nth:
                raise OSError(errno.EIO, "Input/output error")
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", failing)

    with pytest.raises(StorageError, match="Input/output error"):
        MirrorFolder(tmp_path / "mirror", SystemClock())

    assert len(looks) == nth
    monkeypatch.undo()
    with MirrorFolder(tmp_path / "mirror", SystemClock()) as mirror:
        assert mirror.copies is not None, "the lock was not released"


def test_the_state_of_a_killed_run_is_read_as_a_whole(tmp_path: Path) -> None:
    checked = []

    class Whole(SqliteMirrorState):
        def check(self) -> None:
            checked.append(True)
            super().check()

    root = tmp_path / "mirror"
    with MirrorFolder(root, SystemClock()) as folder:
        assert folder.state is not None
        folder.state.remember("left", "here")
        log = (root / ".resourcesync/state.db-wal").read_bytes()
    (root / ".resourcesync/state.db-wal").write_bytes(log)  # as if it was never closed

    with MirrorFolder(root, SystemClock(), Whole):
        assert checked == [True]
