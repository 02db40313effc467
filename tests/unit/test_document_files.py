"""Documents as files: whole or not at all, durable, readable by the world."""

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.document_files import FolderDocuments
from resourcesync.adapters.memory import MemoryDocuments
from resourcesync.errors import DiskFullError, StorageError
from resourcesync.ports import DocumentStore

NAME = "resourcesync/changelist.xml"


@pytest.fixture(params=["memory", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> DocumentStore:
    return MemoryDocuments() if request.param == "memory" else FolderDocuments(tmp_path / "out")


def content(store: DocumentStore, name: str = NAME) -> bytes | None:
    stream = store.open(name)
    if stream is None:
        return None
    with stream:
        return stream.read()


# --- both implementations ----------------------------------------------------------------------


def test_what_is_written_is_read(store: DocumentStore) -> None:
    assert content(store) is None
    assert store.signature(NAME) is None
    assert list(store.names()) == []

    assert store.write(NAME, [b"one", b"", b" two"]) == 7
    assert store.write(".well-known/resourcesync", []) == 0

    assert content(store) == b"one two"
    assert list(store.names()) == [".well-known/resourcesync", NAME]


def test_a_signature_changes_with_every_writing_and_only_then(store: DocumentStore) -> None:
    store.write(NAME, [b"one"])
    first = store.signature(NAME)
    assert first == store.signature(NAME)

    store.write(NAME, [b"two"])

    assert store.signature(NAME) not in {first, None}


def test_a_document_that_cannot_be_made_leaves_the_old_one(store: DocumentStore) -> None:
    store.write(NAME, [b"old"])

    def chunks() -> Iterator[bytes]:
        yield b"new" * 1_000_000
        raise KeyError

    with pytest.raises(KeyError):
        store.write(NAME, chunks())

    assert content(store) == b"old"
    assert list(store.names()) == [NAME]


def test_deleting_is_no_error_twice(store: DocumentStore) -> None:
    store.delete(NAME)
    store.write(NAME, [b"x"])

    store.delete(NAME)
    store.delete(NAME)

    assert content(store) is None
    assert list(store.names()) == []


def test_a_reader_keeps_the_document_that_it_opened(store: DocumentStore) -> None:
    store.write(NAME, [b"old"])
    stream = store.open(NAME)
    assert stream is not None

    store.write(NAME, [b"new"])

    with stream:
        assert stream.read() == b"old"


# --- the folder --------------------------------------------------------------------------------


def test_the_world_may_read_documents_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        FolderDocuments(tmp_path).write(NAME, [b"x"])
    finally:
        os.umask(before)

    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o644


def test_a_reader_never_sees_a_part(tmp_path: Path) -> None:
    store = FolderDocuments(tmp_path)
    versions = [bytes([number]) * 200_000 for number in range(4)]
    store.write(NAME, [versions[0]])
    seen: set[bytes] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add((tmp_path / NAME).read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(600):  # in memory all is written before the reader has its turn
        version = versions[number % 4]
        store.write(NAME, (version[start : start + 10_000] for start in range(0, 200_000, 10_000)))
        if number > 60 and len(seen) > 1:
            break
    done.set()
    reader.join()

    assert seen <= set(versions)
    assert len(seen) > 1


def test_only_documents_of_its_folders_are_written(tmp_path: Path) -> None:
    store = FolderDocuments(tmp_path)

    for name in ("index.html", "other/x", "resourcesync/", "resourcesync/..", "/resourcesync/x",
                 "../resourcesync/x", "resourcesync/a/b", "resourcesync/a\0"):  # fmt: skip
        with pytest.raises(StorageError, match="no place"):
            store.write(name, [b"x"])

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "root/resourcesync").symlink_to(tmp_path / "elsewhere")
    store = FolderDocuments(tmp_path / "root")

    with pytest.raises(StorageError):
        store.write(NAME, [b"x"])

    assert list((tmp_path / "elsewhere").iterdir()) == []


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


def test_what_a_crash_left_is_removed_by_the_next_run_that_writes(tmp_path: Path) -> None:
    for folder in ("resourcesync", ".well-known"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / ".rs-tmp-1-1").write_bytes(b"part")
    store = FolderDocuments(tmp_path)
    assert list(store.names()) == []

    store.write(NAME, [b"x"])
    store.write(".well-known/resourcesync", [b"x"])

    left = [name.name for folder in tmp_path.iterdir() for name in folder.iterdir()]
    assert sorted(left) == ["changelist.xml", "resourcesync"]


def test_a_store_that_only_reads_leaves_another_runs_temporary_files_alone(tmp_path: Path) -> None:
    (tmp_path / "resourcesync").mkdir()
    (tmp_path / "resourcesync/.rs-tmp-1-1").write_bytes(b"part")

    list(FolderDocuments(tmp_path).names())

    assert (tmp_path / "resourcesync/.rs-tmp-1-1").exists()


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
