"""A table of PostgreSQL keeps what every account must."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from resourcesync.ports.accounts import ResourceAccount
from tests.contracts.account_suite import AccountSuite
from tests.support.accounts.postgres_tables import RECORDS, Records, account


class TestPostgresAccount(AccountSuite):
    many = 200
    records: Records

    @pytest.fixture
    def account(self, records: Records) -> Iterator[ResourceAccount]:
        self.records = records
        records.migrate()
        with account(records.address, RECORDS) as found:
            yield found

    def put(self, name: str, content: bytes) -> str:
        return self.records.put(name, content)

    def remove(self, name: str) -> None:
        self.records.remove(name)

    def expire_changes(self) -> bool:
        self.records.run("SELECT resourcesync.record_change_prune('0')")
        return True

    @contextmanager
    def outage(self) -> Iterator[None]:
        self.records.run("ALTER TABLE record RENAME TO hidden")
        yield
        self.records.run("ALTER TABLE hidden RENAME TO record")

    @contextmanager
    def partial_failure(self) -> Iterator[None]:
        self.records.run("ALTER TABLE record RENAME TO hidden")
        self.records.run(
            "CREATE FUNCTION broken(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN"
            " IF $1 = 'r00190' THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;"
            " RETURN $1; END $$"
        )
        self.records.run(
            "CREATE VIEW record AS SELECT broken(id) AS id, size, digest, changed FROM hidden"
        )
        yield
        self.records.run("DROP VIEW record")
        self.records.run("ALTER TABLE hidden RENAME TO record")
