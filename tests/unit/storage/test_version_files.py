"""The store of versions: what has its name is whole, and nothing is kept twice."""

import errno
import fcntl
import hashlib
import io
import os
import stat
from pathlib import Path

import pytest

from resourcesync.catalogue.version_files import FolderVersions
from resourcesync.errors import DiskFullError, StorageError

BODY = b"a version"
NAME = hashlib.sha256(BODY).hexdigest()
PAST, FUTURE = 0, 1 << 60


@pytest.fixture
def store(tmp_path: Path) -> FolderVersions:
    return FolderVersions(tmp_path / "versions")


def keep(store: FolderVersions, body: bytes, name: str = NAME, length: int | None = None) -> bool:
    return store.store(io.BytesIO(body), name, len(body) if length is None else length)


def files(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def read(store: FolderVersions, name: str = NAME) -> bytes | None:
    stream = store.open(name)
    if stream is None:
        return None
    with stream:
        return stream.read()


def test_a_content_is_kept_once_under_its_sha_256_for_its_owner_alone(
    store: FolderVersions, tmp_path: Path
) -> None:
    assert keep(store, BODY)
    assert read(store) == BODY
    assert store.contains(NAME, len(BODY))
    assert NAME not in files(tmp_path)  # not before it is durable
    store.flush()
    path = tmp_path / "versions" / NAME[:2] / NAME
    inode = path.stat().st_ino
    assert keep(store, BODY)
    store.flush()

    assert read(store) == BODY
    assert store.contains(NAME, len(BODY))
    assert path.stat().st_ino == inode
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert files(tmp_path) == {NAME: BODY}


@pytest.mark.parametrize("body", [b"another one", b"a versiom", b"a versio", b"a version and more"])
def test_bytes_that_are_others_are_not_kept(
    store: FolderVersions, tmp_path: Path, body: bytes
) -> None:
    assert not keep(store, body, length=len(BODY))

    assert not keep(store, BODY, length=len(BODY) - 1)
    assert read(store) is None
    assert files(tmp_path) == {}


def test_where_blocks_can_be_shared_the_bytes_are_proved_and_not_copied(
    store: FolderVersions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clone(target: int, request: int, source: int) -> int:
        os.write(target, BODY)
        os.lseek(target, 0, os.SEEK_SET)
        return 0

    monkeypatch.setattr(fcntl, "ioctl", clone)  # as a file system that can
    path = tmp_path / "original"
    path.write_bytes(b"never read")

    with path.open("rb") as stream:
        assert store.store(stream, NAME, len(BODY))
    assert read(store) == BODY
    other = hashlib.sha256(b"b version").hexdigest()
    with path.open("rb") as stream:
        assert not store.store(stream, other, len(BODY))


def test_a_content_that_was_cut_short_is_kept_anew(store: FolderVersions, tmp_path: Path) -> None:
    keep(store, BODY)
    store.flush()
    (tmp_path / "versions" / NAME[:2] / NAME).write_bytes(b"a v")

    assert not store.contains(NAME, len(BODY))
    assert keep(store, BODY)
    store.flush()
    assert read(store) == BODY


def test_a_full_disk_keeps_nothing_and_says_so(
    store: FolderVersions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    keep(store, BODY)
    with monkeypatch.context() as patching:
        patching.setattr(os, "fsync", full)
        with pytest.raises(DiskFullError):
            store.flush()
    assert NAME not in files(tmp_path)

    with monkeypatch.context() as patching:
        patching.setattr(os, "write", full)
        with pytest.raises(DiskFullError):
            keep(store, b"other", hashlib.sha256(b"other").hexdigest())
    assert len(files(tmp_path)) == 1
    store.flush()
    assert files(tmp_path) == {NAME: BODY}


def test_what_nothing_needs_is_swept_after_its_time(store: FolderVersions, tmp_path: Path) -> None:
    needed = hashlib.sha256(b"needed").hexdigest()
    for body in (BODY, b"needed"):
        keep(store, body, hashlib.sha256(body).hexdigest())
    store.flush()
    shard = tmp_path / "versions" / NAME[:2]
    (shard / ".tmp-1-1").write_bytes(b"half of")
    (shard / "not-ours").write_bytes(b"x")

    assert store.sweep(lambda name: name == needed, PAST) == 0
    assert store.sweep(lambda name: name == needed, FUTURE) == 2

    assert files(tmp_path) == {needed: b"needed", "not-ours": b"x"}


@pytest.mark.parametrize("name", ["..", "a/b", "ab", NAME.upper(), ""])
def test_a_name_that_is_no_sha_256_leads_nowhere(store: FolderVersions, name: str) -> None:
    with pytest.raises(StorageError):
        store.open(name)
