"""Whoever writes and whenever it commits: what is told leads to how it is, and to nothing else."""

import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from resourcesync.app.publishing import catalogues
from resourcesync.cli.main import run
from resourcesync.errors import DiscontinuityError
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.accounts import ResourceAccount
from resourcesync_postgresql import statements
from tests.contracts.account_suite import AccountSuite
from tests.support.accounts.postgres_tables import BASE, RECORDS, Records, account
from tests.support.commands.forking import Forked
from tests.support.commands.run import environment, script

WRITERS = 2
KEYS = st.sampled_from(["a", "b", "ü/"])
WRITER = st.integers(0, WRITERS - 1)


class View:
    def __init__(self, told_by: ResourceAccount) -> None:
        self.account = told_by
        self.held: dict[str, int | None] = {}
        self.position = ""
        self.words: set[str] = set()
        self.read_all()

    def read_all(self) -> None:
        self.position = self.account.position()
        self.held = {resource.uri: resource.length for resource in self.account.resources()}

    def follow(self, most: int | None = None, wait: float = 0) -> None:
        """Read on; ``most`` is after how many lots it is killed."""
        self.words = set()
        for number, told in enumerate(self.account.changes(self.position, wait)):
            if number == most:
                break
            self.position = told.position
            for change in told.changes:
                self.words.add(change.uri)
                if change.kind is ChangeKind.DELETED:
                    self.held.pop(change.uri, None)
                else:
                    self.held[change.uri] = change.resource.length


class Writers(RuleBasedStateMachine):
    """Several write at a time, each its own keys: else one would wait for the other for ever."""

    records: Records
    account: ResourceAccount
    writers: Sequence[psycopg.Connection[Any]]

    def __init__(self) -> None:
        super().__init__()
        self.records.run("TRUNCATE record")
        self.records.run("INSERT INTO record (id) VALUES ('0a'), ('1a')")
        self.touched: list[set[str]] = [set() for _ in self.writers]
        self.committed: set[str] = set()
        self.view = View(self.account)

    def teardown(self) -> None:
        for number in range(len(self.writers)):
            self.commit(number)
        self.poll()

    def _run(self, number: int, statement: str, keys: set[str], *values: object) -> None:
        self.writers[number].execute(statement.encode(), values)
        self.touched[number] |= keys

    @rule(number=WRITER, key=KEYS, size=st.integers(0, 3))
    def put(self, number: int, key: str, size: int) -> None:
        statement = (
            "INSERT INTO record (id, size) VALUES (%s, %s)"
            " ON CONFLICT (id) DO UPDATE SET size = excluded.size"
        )
        self._run(number, statement, {f"{number}{key}"}, f"{number}{key}", size)

    @rule(number=WRITER)
    def update_all(self, number: int) -> None:
        mine = f"{number}%"
        keys = {f"{number}{key}" for key in ("a", "b", "ü/")}
        self._run(number, "UPDATE record SET size = size + 1 WHERE id LIKE %s", keys, mine)

    @rule(number=WRITER, key=KEYS)
    def note(self, number: int, key: str) -> None:
        """Nothing that is published changes; that there was a change may be told."""
        key = f"{number}{key}"
        self._run(number, "UPDATE record SET notes = '{}' WHERE id = %s", {key}, key)

    @rule(number=WRITER, key=KEYS, other=KEYS)
    def rename(self, number: int, key: str, other: str) -> None:
        key, other = f"{number}{key}", f"{number}{other}"
        statement = (
            "UPDATE record SET id = %s WHERE id = %s"
            " AND NOT EXISTS (SELECT FROM record WHERE id = %s)"
        )
        self._run(number, statement, {key, other}, other, key, other)

    @rule(number=WRITER, key=KEYS)
    def remove(self, number: int, key: str) -> None:
        key = f"{number}{key}"
        self._run(number, "DELETE FROM record WHERE id = %s", {key}, key)

    @rule(number=WRITER)
    def save(self, number: int) -> None:
        self._run(number, "SAVEPOINT here", set())

    @rule(number=WRITER)
    def take_back(self, number: int) -> None:
        with self.writers[number].transaction(force_rollback=True):
            self.writers[number].execute("DELETE FROM record WHERE id LIKE %s", [f"{number}%"])

    @rule(number=WRITER)
    def roll_back(self, number: int) -> None:
        self.writers[number].rollback()
        self.touched[number] = set()

    @rule(number=WRITER)
    def commit(self, number: int) -> None:
        self.writers[number].commit()
        self.committed |= self.touched[number]
        self.touched[number] = set()

    @rule(most=st.integers(0, 2))
    def poll_and_die(self, most: int) -> None:
        self.view.follow(most)

    @rule()
    def prune(self) -> None:
        """Who has not read all may have to read all again, and is told so."""
        self.records.run("SELECT resourcesync.record_change_prune('0')")
        try:
            self.poll()
        except DiscontinuityError:
            self.view.read_all()

    @rule()
    def poll(self) -> None:
        self.view.follow()

        rows = self.records.run("SELECT id, size FROM record")
        assert self.view.held == {_uri(key): size for key, size in rows}
        assert self.view.words <= {_uri(key) for key in self.committed}
        self.committed = set()


def _uri(key: str) -> str:
    return f"{BASE}objects/{key.replace('ü', '%C3%BC').replace('/', '%2F')}"


def test_what_is_told_is_what_was_committed(
    records: Records, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "PAGE", 3)
    Writers.records = records
    records.migrate()
    Writers.writers = [psycopg.connect(address) for _ in range(WRITERS)]
    with account(address, RECORDS) as Writers.account:
        run_state_machine_as_test(
            Writers,
            settings=settings(
                max_examples=40,
                stateful_step_count=25,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
            ),
        )
    for writer in Writers.writers:
        writer.close()


THREADS = 3
KEYS_OF_EACH = 12
PATIENCE = 30.0


def write(address: str, number: int, done: threading.Event) -> None:
    """Write and commit, late or never, until all have had enough."""
    chance = random.Random(number)
    with psycopg.connect(address) as connection:
        while not done.is_set():
            for _ in range(chance.randint(1, 3)):
                key = f"{number}.{chance.randrange(KEYS_OF_EACH)}"
                if chance.random() < 0.3:
                    connection.execute("DELETE FROM record WHERE id = %s", [key])
                else:
                    connection.execute(
                        "INSERT INTO record (id, size) VALUES (%s, %s) ON CONFLICT (id)"
                        " DO UPDATE SET size = excluded.size",
                        [key, chance.randrange(1_000)],
                    )
                time.sleep(chance.random() * 0.03)
            if chance.random() < 0.2:
                connection.rollback()
            else:
                connection.commit()


def test_what_is_published_in_the_end_is_what_is_in_the_table(
    records: Records, address: str, tmp_path: Path
) -> None:
    records.migrate()
    records.put("first", b"first")
    told = [word for key, value in RECORDS.items() for word in ("--with", f"{key}={value}")]
    publish = ["publish", address, *told, "--url", BASE, "--out", str(tmp_path)]
    assert run([*publish, "-q"]) == 0
    done = threading.Event()
    writers = [
        threading.Thread(target=write, args=(address, number, done)) for number in range(THREADS)
    ]
    for writer in writers:
        writer.start()

    path = tmp_path / ".resourcesync" / "catalogue.db"
    try:
        for later in (0.0, 0.2):
            _publish_and_die(publish, path, later)
    finally:
        done.set()
        for writer in writers:
            writer.join()
    assert run([*publish, "-q"]) == 0

    held = {resource.uri: resource.length for resource in catalogues.read_resources(path)}
    rows = {
        f"{BASE}objects/{key}": size for key, size in records.run("SELECT id, size FROM record")
    }
    assert held == rows
    replayed: dict[str, int | None] = {f"{BASE}objects/first": 5}
    for _, change in catalogues.read_changes(path, 0):
        if change.kind is ChangeKind.DELETED:
            del replayed[change.uri]
        else:
            assert (change.uri in replayed) is (change.kind is ChangeKind.UPDATED)
            replayed[change.uri] = change.resource.length
    assert replayed == rows


def _publish_and_die(command: list[str], path: Path, later: float) -> None:
    """Keep publishing until changes were recorded, and some time; then kill it."""
    before, home = _count(path), path.parent
    words = [*command, "--watch", "-o", "every=1s"]
    with (
        open(os.devnull, "r+b") as nothing,
        open(home / "errors.txt", "w+b") as errors,
        Forked(
            script("resourcesync"), *words, cwd=home, env=environment(home),
            streams=(nothing.fileno(), nothing.fileno(), errors.fileno()),
        ) as process,
    ):  # fmt: skip
        until = time.monotonic() + PATIENCE
        while _count(path) == before and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(later)
        process.signal(signal.SIGKILL)
        ended = process.wait(PATIENCE)
        assert ended == -signal.SIGKILL, (home / "errors.txt").read_text()
    assert _count(path) > before


def _count(path: Path) -> int:
    return sum(1 for _ in catalogues.read_changes(path, 0))


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
