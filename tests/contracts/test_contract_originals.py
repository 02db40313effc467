"""Originals of a Source in a folder keep what all originals must."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resourcesync.adapters.files import FileTreeOriginals, tree
from tests.contracts.originals_suite import OriginalsSuite
from tests.support.sources import trees


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
