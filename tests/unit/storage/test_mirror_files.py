"""The mirror's files and its own folder on a real disk: durable, contained, nothing destroyed."""

import errno
import hashlib
import os
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.mirror.installed_copies import FileTreeCopies
from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.adapters.mirror.open_folders import MAX_OPEN
from resourcesync.adapters.mirror.own_folder import is_mirror
from resourcesync.adapters.system import SystemClock
from resourcesync.errors import (
    DiskFullError,
    LockedError,
    MirrorChangedError,
    StateError,
    StorageError,
)
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.ports import CopyContent, CopyInstallation, CopyMove, CopyRemoval
from tests.support.storage.racing import race


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[MirrorFolder]:
    with MirrorFolder(tmp_path / "mirror", SystemClock()) as folder:
        yield folder


def copies_of(mirror: MirrorFolder) -> FileTreeCopies:
    assert mirror.copies is not None
    return mirror.copies


def put(
    mirror: MirrorFolder, path: str, content: bytes, replaces: str | None = None
) -> str | StorageError:
    copies = copies_of(mirror)
    staged = copies.stage(["sha-256"])
    staged.write(content)
    staged.seal()
    return copies.install([CopyInstallation(staged=staged, path=path, replaces=replaces)])[0]


def quarantine(mirror: MirrorFolder) -> list[bytes]:
    folder = mirror.root / ".resourcesync" / "quarantine"
    return sorted(
        os.readlink(item).encode() if item.is_symlink() else item.read_bytes()
        for item in folder.iterdir()
        if item.suffix != ".note"
    )


def temporary(mirror: MirrorFolder) -> list[str]:
    return os.listdir(mirror.root / ".resourcesync" / "tmp")


@pytest.mark.parametrize("kind", ["file", "link", "hard link"])
def test_what_is_planted_at_the_target_is_set_aside_and_its_goal_is_untouched(
    mirror: MirrorFolder, tmp_path: Path, kind: str
) -> None:
    canary, target = tmp_path / "canary", mirror.root / "x"
    canary.write_bytes(b"precious")
    if kind == "link":
        target.symlink_to(canary)
    elif kind == "hard link":
        os.link(canary, target)
    else:
        target.write_bytes(b"somebody's own")

    put(mirror, "x", b"new")

    assert canary.read_bytes() == b"precious"
    assert not target.is_symlink()
    assert target.read_bytes() == b"new"
    held = {"file": b"somebody's own", "link": str(canary).encode(), "hard link": b"precious"}
    assert quarantine(mirror) == [held[kind]]
    (note,) = (mirror.root / ".resourcesync/quarantine").glob("*.note")
    assert note.read_text() == "was at: x\nbecause: not known to be from the Source\n"


def test_a_link_planted_as_a_folder_stops_the_copy_and_nothing_leaves_the_mirror(
    mirror: MirrorFolder, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (mirror.root / "dir").symlink_to(outside)

    result = put(mirror, "dir/x", b"new")

    assert isinstance(result, StorageError)
    assert result.code == "path-in-the-way"
    assert list(outside.iterdir()) == []
    assert temporary(mirror) == []


def test_a_folder_or_a_pipe_at_the_target_is_not_destroyed(mirror: MirrorFolder) -> None:
    (mirror.root / "x").mkdir()
    (mirror.root / "x" / "inside").write_bytes(b"precious")
    os.mkfifo(mirror.root / "pipe")

    result = put(mirror, "x", b"new")
    put(mirror, "pipe", b"new")

    assert isinstance(result, StorageError)
    assert result.code == "path-in-the-way"
    assert (mirror.root / "x" / "inside").read_bytes() == b"precious"
    assert (mirror.root / "pipe").read_bytes() == b"new"


def test_more_folders_than_are_held_at_once_all_get_their_copies(mirror: MirrorFolder) -> None:
    copies = copies_of(mirror)
    batch = []
    for number in range(200):
        staged = copies.stage([])
        staged.write(b"%d" % number)
        staged.seal()
        batch.append(CopyInstallation(staged=staged, path=f"d{number}/e/f"))
    before = len(os.listdir("/proc/self/fd"))

    results = copies.install(batch)

    assert all(isinstance(result, str) for result in results)
    assert all((mirror.root / f"d{n}/e/f").read_bytes() == b"%d" % n for n in range(200))
    assert len(os.listdir("/proc/self/fd")) <= before


def test_looking_never_follows_a_link(mirror: MirrorFolder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_bytes(b"secret")
    (mirror.root / "dir").symlink_to(outside)
    (mirror.root / "x").symlink_to(outside / "x")
    copies = copies_of(mirror)

    for path in ("dir/x", "x", "nothing", "nothing/at/all"):
        assert copies.signature(path) is None
        assert copies.digest(path, ["sha-256"]) is None


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)


def overfill(root: Path) -> None:
    with MirrorFolder(root, SystemClock()) as mirror:
        staged = copies_of(mirror).stage([])
        try:
            with files_of_at_most(1_000):
                staged.write(b"x" * 40_000)
        finally:
            staged.discard()
            staged.discard()
            assert temporary(mirror) == []


def test_a_full_disk_is_told_with_its_folder_and_leaves_nothing_half_written(
    tmp_path: Path,
) -> None:
    with pytest.raises(DiskFullError) as caught:
        overfill(tmp_path / "mirror")

    assert caught.value.evidence[0] == ("folder", str(tmp_path / "mirror"))


def test_a_disk_too_full_for_few_bytes_is_told_when_they_are_installed(tmp_path: Path) -> None:
    with MirrorFolder(tmp_path / "mirror", SystemClock()) as mirror:
        staged = copies_of(mirror).stage([])
        staged.write(b"x" * 2_000)
        staged.seal()

        with files_of_at_most(1_000):
            (found,) = copies_of(mirror).install([CopyInstallation(staged=staged, path="x")])

        assert isinstance(found, DiskFullError)
        assert temporary(mirror) == []
        assert not (mirror.root / "x").exists()


class SlowDiskClock(SystemClock):
    """A clock by which every sync of a file takes a second."""

    def __init__(self) -> None:
        self._seconds = count()

    def monotonic(self) -> float:
        return next(self._seconds)


def test_a_file_system_that_takes_no_advice_still_gets_its_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "posix_fadvise", refuse)
    with MirrorFolder(tmp_path / "mirror", SlowDiskClock()) as mirror:
        for group in ("a", "b"):
            batch = []
            for number in range(20):
                staged = copies_of(mirror).stage([])
                staged.write(b"content")
                staged.seal()
                batch.append(CopyInstallation(staged=staged, path=f"{group}/{number}"))

            found = copies_of(mirror).install(batch)

            assert all(isinstance(result, str) for result in found)
        assert temporary(mirror) == []


def test_many_files_are_read_with_no_file_left_open_even_if_that_is_given_up(
    mirror: MirrorFolder,
) -> None:
    count = MAX_OPEN + 40
    for number in range(count):
        assert isinstance(put(mirror, f"{number}/file", b"content"), str)
    wanted = [(f"{number}/file", ["md5"]) for number in range(count)]

    with copies_of(mirror).inspect() as look:
        opened = len(os.listdir("/proc/self/fd"))
        contents = [
            content[:2] if isinstance(content, CopyContent) else content
            for first in range(0, count, 20)
            for content in look.digest_all(wanted[first : first + 20])
        ]
        reading = look.digest_all(wanted[:20])
        next(reading)
        del reading

        assert len(os.listdir("/proc/self/fd")) <= opened + MAX_OPEN  # folders only, and not all
    assert contents == [(7, f"md5:{hashlib.md5(b'content').hexdigest()}")] * count


def test_a_path_of_the_state_that_leads_out_removes_no_folder_outside(
    mirror: MirrorFolder, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    removal = CopyRemoval(path="../empty/x", signature="")
    move = CopyMove(path="../empty/x", to="y", signature="")

    assert isinstance(copies_of(mirror).remove([removal], "deleted")[0], StorageError)
    copies_of(mirror).move([move])

    assert (tmp_path / "empty").is_dir()


def test_two_thousand_operations_are_not_led_out_of_the_mirror(tmp_path: Path) -> None:
    result = race(tmp_path, operations=2_000, seed=1)

    assert result.escapes == []
    assert result.operations >= 2_000
    assert result.refused > 20
    assert result.swaps > 100
    assert result.done > 500


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
    monkeypatch.setattr(os, "lstat", partial(failing, follow_symlinks=False))  # Path, from 3.14

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
