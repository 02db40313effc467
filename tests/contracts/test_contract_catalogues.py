"""The Source's catalogue, in a file and in memory, keeps the same promises."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.catalogue.database import SourceCatalogue
from tests.contracts.catalogue_suite import CatalogueSuite
from tests.support.in_memory import ManualClock


class TestCatalogueInAFile(CatalogueSuite):
    @pytest.fixture
    def catalogue(self, tmp_path: Path) -> Iterator[SourceCatalogue]:
        with SourceCatalogue(tmp_path / "state/catalogue.db", ManualClock()) as held:
            yield held


class TestCatalogueInMemory(CatalogueSuite):
    many = 500

    @pytest.fixture
    def catalogue(self) -> SourceCatalogue:
        return SourceCatalogue()
