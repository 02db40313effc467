"""Folders of copies, documents and originals keep what each must; documents in memory, too."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resourcesync.adapters.files import FileTreeOriginals, tree
from resourcesync.adapters.folder_documents import FolderDocuments
from resourcesync.adapters.mirror.installed_copies import FileTreeCopies
from tests.contracts.copies_suite import CopiesSuite, copies_in
from tests.contracts.document_suite import DocumentStoreSuite
from tests.contracts.originals_suite import OriginalsSuite
from tests.support.in_memory import MemoryDocuments
from tests.support.sources import trees


class TestFileTreeCopies(CopiesSuite):
    @pytest.fixture
    def copies(self, tmp_path: Path) -> Iterator[FileTreeCopies]:
        self.root = tmp_path / "mirror"
        with copies_in(self.root) as found:
            yield found
        assert not list(tmp_path.glob("outside*"))

    def tamper(self, path: str, content: bytes) -> None:
        (self.root / path).write_bytes(content)

    def read_trashed(self, place: str) -> bytes:
        return (self.root / ".resourcesync/trash" / place).read_bytes()

    def read_quarantined(self, place: str) -> bytes:
        return (self.root / ".resourcesync/quarantine" / place).read_bytes()


class TestFolderDocuments(DocumentStoreSuite):
    many = 30

    @pytest.fixture
    def documents(self, tmp_path: Path) -> FolderDocuments:
        return FolderDocuments(tmp_path / "out")


class TestMemoryDocuments(DocumentStoreSuite):
    @pytest.fixture
    def documents(self) -> MemoryDocuments:
        return MemoryDocuments()


class TestFileTree(OriginalsSuite):
    many = 200

    @pytest.fixture
    def originals(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileTreeOriginals:
        self.root, self.patch = tmp_path / "tree", monkeypatch
        self.root.mkdir()
        return trees.originals(self.root)

    def put(self, name: str, content: bytes) -> str:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (self.root.parent / "beside").write_bytes(content)
        (self.root.parent / "beside").rename(path)
        return f"{trees.BASE}{name}"

    def remove(self, name: str) -> None:
        (self.root / name).unlink()

    @contextmanager
    def outage(self) -> Iterator[None]:
        self.root.rename(self.root.with_name("elsewhere"))
        yield

    @contextmanager
    def partial_failure(self) -> Iterator[None]:
        def denied(_: int, names: tuple[str, ...]) -> int:
            raise PermissionError(13, "Permission denied")

        with self.patch.context() as patch:
            patch.setattr(tree, "open_below", denied)
            yield

    def add_unpublished(self) -> str:
        self.put(".hidden", b"x")
        return ".hidden"
