"""What holds a mirror's copies, a folder or a store, keeps what it must."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.adapters.mirror.copies import FileTreeCopies
from resourcesync.adapters.stored_copies import StoredCopies
from tests.contracts.copies_suite import CopiesSuite
from tests.support.in_memory import ManualClock
from tests.support.storage.storing import ShelfStore


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[FileTreeCopies]:
    own = tmp_path / "mirror/.resourcesync"
    for name in ("tmp", "trash", "quarantine"):
        (own / name).mkdir(parents=True)
    above, below = (os.open(path, os.O_RDONLY) for path in (own.parent, own))
    copies = FileTreeCopies(above, below)
    yield copies
    copies.close()
    assert not list((own / "tmp").iterdir())
    assert not list(tmp_path.glob("outside*"))
    os.close(below)
    os.close(above)


class TestFileTreeCopies(CopiesSuite):
    @pytest.fixture
    def copies(self, tmp_path: Path, folder: FileTreeCopies) -> FileTreeCopies:
        self.root = tmp_path / "mirror"
        return folder

    def tamper(self, path: str, content: bytes) -> None:
        (self.root / path).write_bytes(content)

    def read_trashed(self, place: str) -> bytes:
        return (self.root / ".resourcesync/trash" / place).read_bytes()

    def read_quarantined(self, place: str) -> bytes:
        return (self.root / ".resourcesync/quarantine" / place).read_bytes()


class TestStoredCopies(CopiesSuite):
    has_folders = False
    many = 20

    @pytest.fixture
    def copies(self, tmp_path: Path, folder: FileTreeCopies) -> StoredCopies:
        self.shelf = ShelfStore(tmp_path / "shelf")
        self.clock = ManualClock()
        return StoredCopies(self.shelf, folder.stage, self.clock)

    def tamper(self, path: str, content: bytes) -> None:
        self.clock.advance(seconds=1)
        self.shelf.spoil(path, content)

    def read_trashed(self, place: str) -> bytes:
        stream = self.shelf.open(f".resourcesync/trash/{place}")
        return b"" if stream is None else stream.read()

    def read_quarantined(self, place: str) -> bytes:
        stream = self.shelf.open(f".resourcesync/quarantine/{place}")
        return b"" if stream is None else stream.read()
