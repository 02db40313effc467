"""Copies in a store: nothing is lost, nothing is left over, nothing of others is replaced."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.adapters.memory import ManualClock
from resourcesync.adapters.mirror.copies import FileTreeCopies
from resourcesync.adapters.stored_copies import StoredCopies
from resourcesync.errors import StorageError
from resourcesync.model.digests import Digest
from resourcesync.ports import Installation, Removal
from tests.support.storing import ShelfStore


@pytest.fixture
def own(tmp_path: Path) -> Path:
    for name in ("tmp", "trash", "quarantine"):
        (tmp_path / "home/.resourcesync" / name).mkdir(parents=True)
    return tmp_path / "home/.resourcesync"


@pytest.fixture
def shelf(tmp_path: Path) -> ShelfStore:
    return ShelfStore(tmp_path / "shelf")


@pytest.fixture
def copies(own: Path, shelf: ShelfStore) -> Iterator[StoredCopies]:
    root, folder = (os.open(it, os.O_RDONLY) for it in (own.parent, own))
    local = FileTreeCopies(root, folder)
    yield StoredCopies(shelf, local.stage, ManualClock())
    local.close()
    os.close(folder)
    os.close(root)


def put(copies: StoredCopies, path: str, body: bytes, replaces: str | None = None) -> str:
    staged = copies.stage(["sha-256"])
    staged.write(body)
    staged.seal()
    (found,) = copies.install([Installation(staged=staged, path=path, replaces=replaces)])
    assert isinstance(found, str), found
    return found


def test_nothing_is_left_on_its_way_once_it_is_in_place(copies: StoredCopies, own: Path) -> None:
    for number in range(3):
        put(copies, f"a/{number}.txt", b"x" * number)
    assert list((own / "tmp").iterdir()) == []
    assert sorted(copies.paths()) == ["a/0.txt", "a/1.txt", "a/2.txt"]


def test_equal_bytes_of_others_are_taken_over_and_no_others(
    copies: StoredCopies, shelf: ShelfStore
) -> None:
    shelf.spoil("same.txt", b"same")
    shelf.spoil("other.txt", b"somebody's")
    put(copies, "same.txt", b"same")
    put(copies, "other.txt", b"ours")
    ((path, place),) = copies.made_way()
    assert (path, copies.made_way()) == ("other.txt", [])
    assert copies.set_aside("other.txt") == [place]
    assert shelf.contents() == {"same.txt": b"same", "other.txt": b"ours"}


def test_what_was_changed_behind_our_back_is_not_thrown_away(
    copies: StoredCopies, shelf: ShelfStore
) -> None:
    version = put(copies, "a.txt", b"ours")
    shelf.spoil("a.txt", b"somebody's")
    (found,) = copies.remove([Removal(path="a.txt", signature=version)], "deleted")
    assert isinstance(found, StorageError)
    assert found.code == "local-change"
    assert shelf.contents() == {"a.txt": b"somebody's"}
    now = copies.signature("a.txt")
    assert now is not None
    (place,) = copies.remove([Removal(path="a.txt", signature=now)], "deleted")
    assert list(copies.trashed()) == [place]
    assert copies.remove([Removal(path="a.txt", signature=now)], "deleted") == [""]


def test_what_is_known_not_to_be_ours_goes_to_the_quarantine(
    copies: StoredCopies, shelf: ShelfStore
) -> None:
    version = put(copies, "a.txt", b"ours")
    shelf.spoil("a.txt", b"somebody's")
    removal = Removal(path="a.txt", signature=version, is_altered=True)
    assert copies.remove([removal], "deleted") == [""]
    ((path, place),) = copies.made_way()
    assert (path, list(copies.trashed()), shelf.contents()) == ("a.txt", [], {})
    stream = shelf.open(f".resourcesync/quarantine/{place}")
    assert stream is not None
    assert stream.read() == b"somebody's"


def test_who_writes_at_the_same_time_is_not_overwritten(
    copies: StoredCopies, shelf: ShelfStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = put(copies, "a.txt", b"ours")
    look = ShelfStore.look

    def and_then_another_writes(self: ShelfStore, key: str) -> object:
        found = look(self, key)
        shelf.spoil(key, b"somebody's")
        return found

    staged = copies.stage(["sha-256"])
    staged.write(b"new")
    staged.seal()
    shelf.spoil("a.txt", b"somebody's")
    with monkeypatch.context() as racing:
        racing.setattr(copies, "_look", lambda path: and_then_another_writes(shelf, path))
        (found,) = copies.install([Installation(staged=staged, path="a.txt", replaces=version)])
    assert isinstance(found, StorageError)
    assert found.code == "local-change"
    assert shelf.contents() == {"a.txt": b"somebody's"}


def test_a_copy_is_copied_and_read_as_it_is(copies: StoredCopies) -> None:
    put(copies, "a.txt", b"one")
    staged = copies.stage_copy("a.txt", ["sha-256"])
    assert staged is not None
    digest = Digest("sha-256", hashlib.sha256(b"one").hexdigest())
    assert staged.seal() == (3, (digest,))
    staged.discard()
    assert copies.digest("a.txt", ["sha-256"]) == (3, (digest,))
    assert copies.digest("b.txt", ["sha-256"]) is None
    assert copies.stage_copy("b.txt", ["sha-256"]) is None
