"""``catalogue check``: rows that cannot be published are named, and set aside."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from resourcesync import Catalogue, Change, ChangeKind, Resource
from resourcesync.cli.main import run
from resourcesync.documents import reader
from tests.support.commands.command_line import Said, rows

BASE = "https://h.example/"
NAMES = "abcdef"


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """A published catalogue of six resources, and a change of each that is not published yet."""
    monkeypatch.chdir(tmp_path)
    found = Catalogue("c.db")
    found.fill(Resource(uri=BASE + name, length=1) for name in NAMES)
    assert run(["publish", "catalogue:c.db", "--url", BASE, "--out", "out", "--quiet"]) == 0
    found.post(
        Change(kind=ChangeKind.UPDATED, resource=Resource(uri=BASE + name, length=2))
        for name in NAMES
    )
    return found


def sql(*statements: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect("c.db", isolation_level=None)) as database:
        return [row for statement in statements for row in database.execute(statement)]


def changes() -> list[Change]:
    with Path("out/resourcesync/changelist.xml").open("rb") as stream:
        return [
            entry
            for entry in reader.read_stream(stream, uri="").entries()
            if isinstance(entry, Change)
        ]


def listed() -> dict[str, int | None]:
    with Path("out/resourcesync/resourcelist.xml").open("rb") as stream:
        entries = list(reader.read_stream(stream, uri="").entries())
    return {entry.uri: entry.length for entry in entries if isinstance(entry, Resource)}


DAMAGES = {
    "no such change": "UPDATE change SET change = 'moved' WHERE seq = 3",
    "no length": "UPDATE change SET length = 'two' WHERE seq = 3",
    "no time": "UPDATE change SET datetime_us = 'noon' WHERE seq = 3",
    "a time before all times": "UPDATE change SET datetime_us = -(1 << 62) WHERE seq = 3",
    "a time after all times": "UPDATE change SET datetime_us = (1 << 62) WHERE seq = 3",
    "an earlier time": "UPDATE change SET datetime_us = 5 WHERE seq = 3",
    "no JSON": "UPDATE change SET more = '{' WHERE seq = 3",
    "no XML": "UPDATE change SET hash = 'md5:' || char(2) WHERE seq = 3",
    "no text": "UPDATE change SET media_type = x'ff' WHERE seq = 3",
    "no UTF-8": "UPDATE change SET media_type = CAST(x'ff' AS TEXT) WHERE seq = 3",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_bad_change_is_named_then_set_aside_and_its_resource_is_told_all_the_same(
    catalogue: Catalogue, damage: str, said: Said
) -> None:
    sql(damage)
    said.readouterr()

    assert run(["publish", "catalogue:c.db"]) in {2, 8}
    problem = said.readouterr().err
    assert changes() == []
    assert run(["catalogue", "check", "c.db", "--json"]) == 1
    found = [row for row in rows(said) if row["type"] == "row"]
    assert [(row["place"], row["uri"]) for row in found] == [("change 3", BASE + "c")]
    assert "resourcesync catalogue check c.db" in problem
    assert run(["catalogue", "check", "c.db", "--set-aside"]) == 0
    assert run(["catalogue", "check", "c.db"]) == 0
    assert run(["publish", "catalogue:c.db"]) == 0

    told = [
        (change.uri.removeprefix(BASE), change.kind, change.resource.length) for change in changes()
    ]
    assert told == [(name, ChangeKind.UPDATED, 2) for name in "abdefc"]
    assert sql("SELECT seq, uri FROM set_aside") == [(3, BASE + "c")]


def test_a_bad_resource_stays_listed_by_its_address_alone(catalogue: Catalogue, said: Said) -> None:
    sql(
        f"UPDATE resource SET length = 'two' WHERE uri = '{BASE}b'",
        f"UPDATE resource SET hash = 'md5:x y' WHERE uri = '{BASE}d'",
    )

    assert run(["catalogue", "check", "c.db", "--set-aside"]) == 0
    assert run(["publish", "catalogue:c.db", "--rebase"]) == 0

    assert listed() == {BASE + name: None if name in "bd" else 2 for name in NAMES}
    newest = {change.uri.removeprefix(BASE): change.resource.length for change in changes()}
    assert newest == dict.fromkeys("acef", 2) | dict.fromkeys("bd")


@pytest.mark.parametrize("digest", ["md5:0", "sha-256:" + "g" * 64, f"md5:{'0' * 32} sha-1:"])
def test_a_digest_that_nobody_can_check_is_found_and_left_out(
    catalogue: Catalogue, said: Said, digest: str
) -> None:
    sql(f"UPDATE resource SET hash = '{digest}' WHERE uri = '{BASE}b'")
    sql(f"UPDATE resource SET hash = 'crc32:0' WHERE uri = '{BASE}c'")  # of no known algorithm

    assert run(["catalogue", "check", "c.db"]) == 1
    assert "! resource" in said.readouterr().out.replace("  ", " ")
    assert run(["catalogue", "check", "c.db", "--set-aside"]) == 0
    assert run(["catalogue", "check", "c.db"]) == 0
    assert sql("SELECT uri FROM set_aside") == [(BASE + "b",)]


def test_what_could_never_be_listed_is_set_aside_whole(catalogue: Catalogue, said: Said) -> None:
    sql(
        "INSERT INTO resource VALUES (x'686900', NULL, 1, '', '', '', '')",
        f"INSERT INTO resource VALUES (CAST('{BASE}a' AS BLOB), NULL, 1, '', '', '', '')",
        "INSERT INTO resource VALUES (CAST(x'68ff' AS TEXT), NULL, 1, '', '', '', '')",
        f"INSERT INTO resource VALUES ('{BASE}' || char(1), NULL, 1, '', '', '', '')",
        f"INSERT INTO resource VALUES ('{BASE}x ', NULL, 1, '', '', '', '')",
    )

    assert run(["catalogue", "check", "c.db"]) == 1
    assert run(["catalogue", "check", "c.db", "--set-aside"]) == 0
    assert run(["publish", "catalogue:c.db", "--rebase"]) == 0

    assert set(listed()) == {BASE + name for name in NAMES}
    assert {change.uri for change in changes()} == {BASE + name for name in NAMES}
    assert sql("SELECT count(*) FROM set_aside") == [(5,)]
    assert listed()[BASE + "a"] == 2


def test_a_deletion_that_was_set_aside_is_told(catalogue: Catalogue, said: Said) -> None:
    catalogue.post([Change(kind=ChangeKind.DELETED, resource=Resource(uri=BASE + "a"))])
    sql("UPDATE change SET change = 'gone' WHERE seq = 7")

    assert run(["catalogue", "check", "c.db", "--set-aside"]) == 0
    assert run(["publish", "catalogue:c.db"]) == 0

    assert changes()[-1].kind is ChangeKind.DELETED
    assert changes()[-1].uri == BASE + "a"


def test_a_sound_catalogue_has_nothing_to_set_aside(catalogue: Catalogue, said: Said) -> None:
    assert run(["catalogue", "check", "c.db"]) == 0
    assert "Every row can be published" in said.readouterr().out
    before = sql("SELECT * FROM change")
    assert run(["catalogue", "check", "c.db", "--set-aside", "--json"]) == 0
    assert rows(said)[-1]["rows"] == 0
    assert sql("SELECT * FROM change") == before
    assert run(["catalogue", "check", "none.db"]) == 2
    assert run(["catalogue", "check", "c.db", "lines"]) == 2
    assert run(["catalogue", "post", "c.db", "--set-aside"]) == 2
    assert not Path("none.db").exists()
