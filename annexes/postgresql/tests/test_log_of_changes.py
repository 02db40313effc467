"""A log that cannot be gone on with is noticed; who waits is woken; a standby is read safely."""

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from resourcesync.errors import DiscontinuityError, SourceUnavailableError
from resourcesync.ports.accounts import ChangeBatch, ResourceAccount
from resourcesync_postgresql import account as accounts
from tests.support.accounts.postgres_tables import BASE, RECORDS, Records, account
from tests.support.servers import postgres_server
from tests.support.servers.postgres_server import Server
from tests.support.waiting import once

SCHEMA = "resourcesync"
LOG = f"{SCHEMA}.record_change"


@pytest.fixture
def records(records: Records) -> Records:
    records.migrate()
    records.put("a", b"a")
    return records


@pytest.fixture
def opened(records: Records) -> Iterator[ResourceAccount]:
    with account(records.address) as found:
        yield found


def uris(told: list[ChangeBatch]) -> set[str]:
    return {
        change.uri.removeprefix(f"{BASE}objects/") for batch in told for change in batch.changes
    }


@pytest.mark.parametrize(
    "statements",
    [
        (f"DELETE FROM {LOG}",),
        (f"DROP TABLE {LOG} CASCADE",),
        ("TRUNCATE record",),
        ("ALTER TABLE record DISABLE TRIGGER record_change_deleted",),
        ("CREATE TABLE other (LIKE record)", "DROP TABLE record",
         "ALTER TABLE other RENAME TO record"),
        (f"UPDATE {LOG}_state SET incarnation = gen_random_uuid()",),
        ("INSERT INTO record VALUES ('x')", f"SELECT {LOG}_prune('0')"),
    ],
    ids=["deleted", "dropped", "truncated", "disabled", "swapped", "made-anew", "pruned"],
)  # fmt: skip
def test_a_log_that_may_lack_something_is_not_gone_on_with(
    records: Records, opened: ResourceAccount, statements: tuple[str, ...]
) -> None:
    position = opened.position()

    for statement in statements:
        records.run(statement)

    with pytest.raises(DiscontinuityError):
        list(opened.changes(position, 0))


def test_triggers_that_miss_what_replication_writes_are_warned_of_once(
    records: Records, opened: ResourceAccount
) -> None:
    position = opened.position()
    assert list(opened.changes(position, 0)) == []
    records.run("ALTER TABLE record DISABLE TRIGGER ALL")
    records.run("ALTER TABLE record ENABLE TRIGGER ALL")
    records.put("b", b"b")

    with account(records.address) as again:
        first = list(again.changes(position, 0))
        assert not any(change.warnings for change in again.changes(first[-1].position, 0))

    assert uris(first) == {"b"}
    ((code, reason),) = first[-1].warnings
    assert code == "log-partial"
    mending = re.findall(r"ALTER TABLE [^;]+;", reason)
    assert "ALTER TABLE record ENABLE ALWAYS TRIGGER record_change_deleted;" in mending
    for statement in mending:
        records.run(statement)
    with account(records.address) as mended:
        assert not any(change.warnings for change in mended.changes(first[-1].position, 0))


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ('"after":"[^"]*"', '"after":"99999:99999:"'),
        ('"log":"', '"log":"1'),
        ("{", ""),
        (r'"row":\[', '"row":["x",'),
        ('"after":"', '"after":"9'),
    ],
    ids=["of-the-future", "of-another-server", "no-json", "no-row", "no-snapshot"],
)
def test_a_position_of_another_time_or_place_is_not_gone_on_with(
    opened: ResourceAccount, part: str, other: str
) -> None:
    position = opened.position()

    with pytest.raises(DiscontinuityError):
        list(opened.changes(re.sub(part, other, position, count=1), 0))


def test_what_was_read_may_be_pruned(records: Records, opened: ResourceAccount) -> None:
    position = opened.position()
    records.put("b", b"b")
    (*_, last) = opened.changes(position, 0)

    assert records.run(f"SELECT {LOG}_prune('1 hour')") == [(0,)]
    assert records.run(f"SELECT {LOG}_prune('0')") == [(2,)]
    records.put("c", b"c")

    assert uris(list(opened.changes(last.position, 0))) == {"c"}


def test_what_was_read_last_and_is_removed_otherwise_is_missed(
    records: Records, opened: ResourceAccount
) -> None:
    position = opened.position()
    records.put("b", b"b")
    (*_, last) = opened.changes(position, 0)
    records.put("c", b"c")

    records.run(f"DELETE FROM {LOG} WHERE id <> 'a'")

    with pytest.raises(DiscontinuityError):
        list(opened.changes(last.position, 0))


def test_what_is_pruned_while_it_is_read_is_told(
    records: Records, opened: ResourceAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    position = opened.position()
    records.put("b", b"b")
    check = accounts.readable_snapshot

    def check_and_prune(*asked: Any) -> str:
        found = check(*asked)
        assert records.run(f"SELECT {LOG}_prune('0')") == [(2,)]
        return found

    monkeypatch.setattr(accounts, "readable_snapshot", check_and_prune)

    assert uris(list(opened.changes(position, 0))) == {"b"}


@pytest.mark.parametrize("time", ["infinity", "-infinity", "294276-01-01"])
def test_a_change_without_a_time_that_others_know_is_told_without_one(
    records: Records, opened: ResourceAccount, time: str
) -> None:
    position = opened.position()
    records.put("b", b"b")
    records.run(f"UPDATE {LOG} SET log_at = '{time}' WHERE id = 'b'")

    (told,) = list(opened.changes(position, 0))

    assert [(change.uri, change.time) for change in told.changes] == [(f"{BASE}objects/b", None)]


def test_one_without_a_log_is_only_read(records: Records) -> None:
    records.run(f"DROP SCHEMA {SCHEMA} CASCADE")
    with account(records.address) as found:
        assert found.position() == ""
        assert len(list(found.resources())) == 1


def test_who_waits_is_woken_by_a_commit(
    records: Records, opened: ResourceAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    position = opened.position()
    began = time.monotonic()
    waits, notifies = threading.Event(), psycopg.Connection.notifies

    def noticed(*given: Any, **options: Any) -> Any:
        waits.set()
        return notifies(*given, **options)

    monkeypatch.setattr(psycopg.Connection, "notifies", noticed)
    with once(waits.wait, lambda: records.put("b", b"b")):
        told = next(iter(opened.changes(position, 30)))

    assert uris([told]) == {"b"}
    assert time.monotonic() - began < 8  # without being woken it would look after ten seconds
    assert uris(list(opened.changes(told.position, 0.1))) == set()


def test_the_printed_grants_are_enough_and_needed(records: Records) -> None:
    records.run(f"DROP SCHEMA {SCHEMA} CASCADE")
    records.run("DROP ROLE IF EXISTS rs_reader")
    records.run("CREATE ROLE rs_reader LOGIN")
    records.migrate(RECORDS | {"reader": "rs_reader"})
    with account(records.address.replace("//rs@", "//rs_reader@")) as found:
        position = found.position()
        records.put("b", b"b")
        assert uris(list(found.changes(position, 0))) == {"b"}
    records.run("DROP OWNED BY rs_reader")
    records.run("DROP ROLE rs_reader")


def test_a_standby_is_read_safely_and_one_that_was_promoted_is_another_server(
    server: Server, tmp_path: Path, records: Records
) -> None:
    with postgres_server.standby_of(server) as standby, psycopg.connect(records.address) as writer:
        place = records.address.replace(str(server.folder), str(standby.folder))
        writer.execute("INSERT INTO record (id) VALUES ('late')")  # not committed yet
        records.put("b", b"b")
        postgres_server.caught_up(server, standby)
        with account(place) as found:
            position = found.position()
            ahead = re.sub('"after":"[^"]*"', '"after":"99999:99999:"', position)
            with pytest.raises(SourceUnavailableError):
                list(found.changes(ahead, 0))
            writer.commit()
            records.put("c", b"c")
            postgres_server.caught_up(server, standby)

            told = list(found.changes(position, 1.5))

            assert {"late", "c"} <= uris(told)
            postgres_server.promote(standby)
            with pytest.raises(DiscontinuityError):
                list(found.changes(told[-1].position, 0))
