"""Copies in a store, where others write at the same time; the rest is in `tests/contracts`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.adapters.store_copies import Stage, StoredCopies
from resourcesync.errors import StorageError
from resourcesync.ports import CopyInstallation, CopyMove
from resourcesync.ports.stores import ObjectContent
from tests.contracts.copies_suite import copies_in
from tests.support.in_memory import ManualClock
from tests.support.storage.storing import ShelfStore


@pytest.fixture
def shelf(tmp_path: Path) -> ShelfStore:
    return ShelfStore(tmp_path / "shelf")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with copies_in(tmp_path / "home") as local:
        yield local.stage


@pytest.fixture
def copies(stage: Stage, shelf: ShelfStore) -> StoredCopies:
    return StoredCopies(shelf, stage, ManualClock())


def put(copies: StoredCopies, path: str, body: bytes, replaces: str | None = None) -> str:
    staged = copies.stage(["sha-256"])
    staged.write(body)
    staged.seal()
    (found,) = copies.install([CopyInstallation(staged=staged, path=path, replaces=replaces)])
    assert isinstance(found, str), found
    return found


def test_who_writes_at_the_same_time_is_not_overwritten(
    copies: StoredCopies, shelf: ShelfStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = put(copies, "a.txt", b"ours")
    look = ShelfStore.stat
    raced: list[str] = []

    def and_then_another_writes(self: ShelfStore, key: str) -> object:
        found = look(self, key)
        if not raced:
            raced.append(key)
            shelf.spoil(key, b"somebody's")
        return found

    staged = copies.stage(["sha-256"])
    staged.write(b"new")
    staged.seal()
    shelf.spoil("a.txt", b"somebody's")
    with monkeypatch.context() as racing:
        racing.setattr(ShelfStore, "stat", and_then_another_writes)
        (found,) = copies.install([CopyInstallation(staged=staged, path="a.txt", replaces=version)])
    assert raced == ["a.txt"]
    assert isinstance(found, StorageError)
    assert found.code == "local-change"
    assert shelf.contents() == {"a.txt": b"somebody's"}


@pytest.mark.parametrize("in_flight", [1, 4])
def test_a_store_that_is_down_is_not_asked_for_each_copy(
    stage: Stage, tmp_path: Path, in_flight: int
) -> None:
    asked: list[str] = []

    class Down(ShelfStore):
        max_in_flight = in_flight

        def put(self, key: str, content: ObjectContent, replaces: str | None) -> str | None:
            asked.append(key)
            raise RuntimeError("the line is dead")

    copies = StoredCopies(Down(tmp_path / "shelf"), stage, ManualClock())
    batch = []
    for number in range(50):
        staged = copies.stage(["sha-256"])
        staged.seal()
        batch.append(CopyInstallation(staged=staged, path=f"{number}.txt"))
    found = copies.install(batch)
    assert all(isinstance(item, StorageError) and item.code == "store" for item in found)
    assert 3 <= len(asked) < 3 + in_flight
    assert list(copies.paths()) == []


def test_a_move_that_was_cut_short_goes_on_and_sets_nothing_aside(
    copies: StoredCopies, shelf: ShelfStore
) -> None:
    version = put(copies, "a.txt", b"ours")
    shelf.spoil("b.txt", b"ours")  # as a run leaves it that is killed while a store copies

    (found,) = copies.move([CopyMove(path="a.txt", to="b.txt", signature=version)])

    assert found == copies.signature("b.txt")
    assert shelf.contents() == {"b.txt": b"ours"}
    assert copies.newly_quarantined() == []
