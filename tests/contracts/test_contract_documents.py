"""Places for a Source's documents keep what each of them must."""

from pathlib import Path

import pytest

from resourcesync.adapters.document_files import FolderDocuments
from resourcesync.adapters.in_memory import MemoryDocuments
from tests.contracts.document_suite import DocumentStoreSuite


class TestFolderDocuments(DocumentStoreSuite):
    many = 30

    @pytest.fixture
    def documents(self, tmp_path: Path) -> FolderDocuments:
        return FolderDocuments(tmp_path / "out")


class TestMemoryDocuments(DocumentStoreSuite):
    @pytest.fixture
    def documents(self) -> MemoryDocuments:
        return MemoryDocuments()
