"""A table in PostgreSQL that is published, and what tells of it."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.ports.accounts import AccountOptions, ResourceAccount
from resourcesync_postgresql import migration, open_account

BASE = "https://museum.example/"
RECORDS = {
    "query": "SELECT id, changed AS lastmod, size AS length,"
    " 'sha-256:' || encode(digest, 'hex') AS hash FROM record",
    "uri": "objects/{id}",
    "table": "record",
}
"""How the table of ``create`` is published."""


class Records:
    def __init__(self, address: str, *, key: str = "text") -> None:
        self.address = address
        self.connection = psycopg.connect(address, autocommit=True)
        self.run(
            f"CREATE TABLE record (id {key} PRIMARY KEY, size bigint, digest bytea,"
            " changed timestamptz DEFAULT now(), notes json)"
        )

    def close(self) -> None:
        self.connection.close()

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        done = self.connection.execute(statement.encode(), values or None)
        return done.fetchall() if done.description else []

    def migrate(self, values: Mapping[str, str] = RECORDS) -> None:
        asked = {name: value for name, value in values.items() if name != "query"}
        self.run(migration.setup_text(asked))

    def put(self, name: str, content: bytes) -> str:
        self.run(
            "INSERT INTO record (id, size, digest) VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE"
            " SET size = excluded.size, digest = excluded.digest, changed = now()",
            name,
            len(content),
            hashlib.sha256(content).digest(),
        )
        return f"{BASE}objects/{name}"

    def remove(self, name: str) -> None:
        self.run("DELETE FROM record WHERE id = %s", name)


@contextmanager
def account(address: str, values: Mapping[str, str] = RECORDS) -> Iterator[ResourceAccount]:
    options = AccountOptions(
        address=address,
        base_uri=BASE,
        values=values,
        memory="",
        out="",
        clock=SystemClock(),
        fetcher=lambda _: pytest.fail("a database is not asked over http"),
    )
    with open_account(options) as found:
        yield found
