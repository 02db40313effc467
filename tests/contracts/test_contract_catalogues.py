"""The Source's memory: in a file and in memory, it keeps what every catalogue must."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.adapters.catalogue import FileCatalogue
from resourcesync.adapters.in_memory import MemoryCatalogue
from tests.contracts.catalogue_suite import CatalogueSuite
from tests.support.in_memory import ManualClock


class TestFileCatalogue(CatalogueSuite):
    @pytest.fixture
    def catalogue(self, tmp_path: Path) -> Iterator[FileCatalogue]:
        with FileCatalogue(tmp_path / "state/catalogue.db", ManualClock()) as held:
            yield held


class TestMemoryCatalogue(CatalogueSuite):
    many = 500

    @pytest.fixture
    def catalogue(self) -> MemoryCatalogue:
        return MemoryCatalogue()
