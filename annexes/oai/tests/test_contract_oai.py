"""A repository behind OAI-PMH keeps what every account promises."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resourcesync_oai import OaiAccount
from tests.contracts.account_suite import AccountSuite
from tests.support.accounts.harvested_repository import BASE, HarvestedRepository
from tests.support.accounts.oai_provider import Item, Quirks


class TestOaiAccount(AccountSuite):
    """Lengths and digests are of the metadata, and are looked at elsewhere."""

    has_lengths = False
    has_digests = False
    many = 45

    @pytest.fixture
    def account(self, tmp_path: Path) -> Iterator[OaiAccount]:
        self.world = HarvestedRepository(tmp_path, Quirks(page=20))
        with self.world.open() as account:
            yield account

    def put(self, name: str, content: bytes) -> str:
        self.world.provider.put(Item(local=name, title=content.decode()))
        return f"{BASE}resource/{name}/oai_dc.xml"

    def remove(self, name: str) -> None:
        self.world.provider.remove(name)

    @contextmanager
    def outage(self) -> Iterator[None]:
        self.world.provider.quirks.down = True
        yield
        self.world.provider.quirks.down = False

    @contextmanager
    def partial_failure(self) -> Iterator[None]:
        self.world.provider.quirks.always_truncated = True
        yield
        self.world.provider.quirks.always_truncated = False

    def expire_changes(self) -> bool:
        self.world.provider.quirks.namespace = "other.example"  # all addresses become others
        return True
