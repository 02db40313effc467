"""The store of our tests keeps what every store must."""

import os
from pathlib import Path

import pytest

from resourcesync.ports.stores import Store
from tests.contracts.store_suite import StoreSuite
from tests.support.storage.storing import ShelfStore


class TestShelfStore(StoreSuite):
    checks_digests = True
    many = 200

    @pytest.fixture
    def store(self, tmp_path: Path) -> ShelfStore:
        return ShelfStore(tmp_path)

    def reopen(self, store: Store) -> Store:
        assert isinstance(store, ShelfStore)
        return ShelfStore(store.folder)

    def leave_stale_lock(self, store: Store) -> float:
        child = os.fork()
        if not child:
            store.lock("who dies").__enter__()
            os._exit(1)
        os.waitpid(child, 0)
        return 0.0
