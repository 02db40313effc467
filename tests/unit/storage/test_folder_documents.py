"""Documents as files: whole or not at all, durable, readable by the world."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.folder_documents import FolderDocuments
from resourcesync.app import mirror_stores
from resourcesync.app.mirror_home import Home
from resourcesync.errors import DiskFullError, StorageError
from resourcesync.own_files import is_present, make_folder, sync_folder
from resourcesync.ports.documents import DocumentStore
from resourcesync.push_state.stores import FileHub
from resourcesync_oai import repository_state as oai

NAME = "resourcesync/changelist.xml"


def content(store: DocumentStore, name: str = NAME) -> bytes | None:
    stream = store.open(name)
    if stream is None:
        return None
    with stream:
        return stream.read()


def test_only_documents_of_its_folders_are_written(tmp_path: Path) -> None:
    store = FolderDocuments(tmp_path)

    for name in ("index.html", "other/x", "resourcesync/", "resourcesync/..", "/resourcesync/x",
                 "../resourcesync/x", "resourcesync/a/b", "resourcesync/a\0"):  # fmt: skip
        with pytest.raises(StorageError, match="not a valid document name"):
            store.write(name, [b"x"])

    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_or_removed_through_a_folder_that_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/.rs-tmp-9-1").write_bytes(b"mine")
    (tmp_path / "resourcesync").symlink_to(tmp_path / "elsewhere")
    store = FolderDocuments(tmp_path)

    with pytest.raises(StorageError):
        store.write(NAME, [b"x"])
    with pytest.raises(StorageError):
        store.remove_leftovers()

    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == [".rs-tmp-9-1"]


def test_a_link_in_the_place_of_a_document_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / "resourcesync").mkdir()
    (tmp_path / NAME).symlink_to("../victim")
    store = FolderDocuments(tmp_path)

    with pytest.raises(StorageError):
        store.open(NAME)
    store.write(NAME, [b"x"])

    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert content(store) == b"x"


@pytest.mark.parametrize("is_asked", [False, True])
def test_what_a_crash_left_is_removed_once_by_a_run_that_writes_and_no_other(
    tmp_path: Path, is_asked: bool
) -> None:
    left = [tmp_path / folder / ".rs-tmp-1-1" for folder in ("resourcesync", ".well-known")]
    for path in left:
        path.parent.mkdir()
        path.write_bytes(b"half")
    store = FolderDocuments(tmp_path)
    assert list(store.names()) == []
    assert all(path.exists() for path in left), "another run may be writing them"

    if is_asked:
        store.remove_leftovers()
    else:
        store.write(NAME, [b"x"])
        store.write(".well-known/resourcesync", [b"x"])

    assert not any(path.exists() for path in left)
    left[0].write_bytes(b"of a copy of this process")
    store.write(NAME, [b"x"])
    assert left[0].exists()


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_failing_disk_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, code: int
) -> None:
    store = FolderDocuments(tmp_path)
    store.write(NAME, [b"old"])

    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(StorageError) as caught:
            store.write(NAME, [b"new"])

    assert isinstance(caught.value, DiskFullError) is (code != errno.EIO)
    assert content(store) == b"old"
    assert [path.name for path in (tmp_path / "resourcesync").iterdir()] == ["changelist.xml"]


def test_a_really_full_device_is_reported_as_such(tmp_path: Path) -> None:
    with pytest.raises(DiskFullError):
        _write_to_full_device(tmp_path)


def _write_to_full_device(tmp_path: Path) -> None:
    import resource
    import signal

    store = FolderDocuments(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
    try:
        store.write(NAME, [b"x" * 5_000_000])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
        assert list(store.names()) == []


def test_bytes_and_names_are_synced_before_and_after_the_renaming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderDocuments(tmp_path)
    store.write(NAME, [b"old"])
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        kind = "folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file"
        steps.append(f"sync {kind} of {os.fstat(descriptor).st_size if kind == 'file' else ''}")
        fsync(descriptor)

    def replaced(*arguments: str, **keywords: Any) -> None:
        steps.append("rename")
        replace(*arguments, **keywords)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)

    store.write(NAME, [b"12345"])

    assert steps == ["sync file of 5", "rename", "sync folder of "]


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file that can be opened and not read")
def test_a_document_that_cannot_be_read_is_told_as_the_disks_fault(tmp_path: Path) -> None:
    with (
        FolderDocuments(Path("/proc/self"), folders=("",)).open("mem") as stream,  # type: ignore[union-attr]
        pytest.raises(StorageError, match="/proc/self/mem: Input/output error") as ended,
    ):
        stream.read()
    assert ended.value.evidence == (("kept", "what was published before"),)

    (tmp_path / "resourcesync" / "a.xml").mkdir(parents=True)
    held = len(os.listdir("/proc/self/fd"))
    with pytest.raises(StorageError, match="not an ordinary file"):
        FolderDocuments(tmp_path).open("resourcesync/a.xml")
    assert len(os.listdir("/proc/self/fd")) == held


def hub(folder: Path) -> None:
    FileHub(folder / "hub.db").close()


def harvest(folder: Path) -> None:
    with oai.RepositoryState(folder):
        pass


def home(folder: Path) -> None:
    mirror_stores.bind(Home(folder, f"file://{folder.parent.parent}/copies"))


@pytest.mark.parametrize("make", [make_folder, hub, harvest, home])
def test_the_names_of_all_folders_that_were_made_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    synced: set[int] = set()
    real = os.fsync

    def noted(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    make(tmp_path / "a/b")
    assert {tmp_path.stat().st_ino, (tmp_path / "a").stat().st_ino} <= synced
    if make is home:
        assert (tmp_path / "a/b/.resourcesync/store").stat().st_ino in synced


def test_a_file_system_that_cannot_sync_a_folder_is_used_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 22

    def refuses(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuses)
    make_folder(tmp_path / "a/b")
    assert (tmp_path / "a/b").is_dir()
    number = 5
    with pytest.raises(OSError, match="Input/output"):
        sync_folder(0)


def test_what_cannot_be_looked_at_is_not_called_absent(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")

    assert [*map(is_present, (tmp_path, tmp_path / "none" / "file"))] == [True, False]
    with pytest.raises(OSError, match="symbolic links"):
        is_present(tmp_path / "loop")
