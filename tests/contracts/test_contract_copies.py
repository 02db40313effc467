"""The folder that holds a mirror's copies keeps what it must."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.adapters.mirror.copies import FileTreeCopies
from tests.contracts.copies_suite import CopiesSuite, copies_in


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
