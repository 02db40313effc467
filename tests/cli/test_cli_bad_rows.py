"""Rows of a catalogue that cannot be published: each is told and mended, and the rest goes on."""

import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from resourcesync import Catalogue, Change, ChangeKind, Resource
from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing import catalogues
from resourcesync.catalogue.bad_rows import BadRow, mend_rows
from resourcesync.cli.main import run
from resourcesync.source.publication_options import PublishRequest
from resourcesync.source.round_trip import find_fault
from tests.support.commands.command_line import Said, rows
from tests.support.documents.text import tell
from tests.support.servers.tiny_source import Answer, Asked, TinySource

BASE = "https://h.example/"
NAMES = "abcdef"
PUBLISH = ("publish", "catalogue:c.db")


def fill(base: str) -> Catalogue:
    """Publish six resources, and post a change of each that is not published yet."""
    found = Catalogue("c.db")
    found.fill(Resource(uri=base + name, length=1) for name in NAMES)
    assert run([*PUBLISH, "--url", base, "--out", "out", "--quiet"]) == 0
    return found


def post_all(catalogue: Catalogue, base: str) -> None:
    catalogue.post(
        Change(kind=ChangeKind.UPDATED, resource=Resource(uri=base + name, length=2))
        for name in NAMES
    )


@pytest.fixture
def catalogue(here: Path) -> Catalogue:
    """A published catalogue of six resources, and a change of each that is not published yet."""
    found = fill(BASE)
    post_all(found, BASE)
    return found


def sql(*statements: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect("c.db", isolation_level=None)) as database:
        database.text_factory = bytes  # text may be no UTF-8
        return [row for statement in statements for row in database.execute(statement)]


def changes() -> list[tuple[str, ChangeKind, int | None]]:
    return [
        (entry.uri[-1], entry.kind, entry.resource.length)
        for entry in tell(Path("out/resourcesync/changelist.xml").read_bytes()).entries
        if isinstance(entry, Change)
    ]


def listed() -> dict[str, int | None]:
    entries = tell(Path("out/resourcesync/resourcelist.xml").read_bytes()).entries
    return {entry.uri: entry.length for entry in entries if isinstance(entry, Resource)}


def test_a_mirror_gets_all_that_is_sound_and_what_bad_rows_are_of(here: Path, said: Said) -> None:
    version = 1

    def respond(asked: Asked) -> Answer | None:
        if asked.target[1:] in NAMES:
            return Answer(body=asked.target[1:].encode() * version)
        document = here / "out" / asked.target[1:]
        return Answer(body=document.read_bytes()) if document.is_file() else None

    with TinySource(respond) as source:
        base = f"{source.url}/"
        catalogue = fill(base)
        assert run(["pull", source.url, "mirror", "-q"]) == 0
        version = 2
        post_all(catalogue, base)
        catalogue.post([Change(kind=ChangeKind.DELETED, resource=Resource(uri=base + "f"))])
        sql(
            "UPDATE change SET datetime_us = 5 WHERE seq = 3",
            "UPDATE change SET media_type = CAST(x'ff' AS TEXT) WHERE seq = 4",
            "UPDATE change SET change = 'gone' WHERE seq = 7",
            f"UPDATE resource SET length = 'two' WHERE uri = '{base}b'",
        )
        assert run(["catalogue", "check", "c.db"]) == 1
        assert f"change 3  {base}c" in said.readouterr().out

        assert run([*PUBLISH, "-q"]) == 3
        told = said.readouterr().err
        assert told.count("warning[mended-row]") == 4
        assert f"resource cannot be published: {base}b: " in told
        assert "length 'two'" in told
        assert "4 rows of the catalogue cannot be published" in told
        updated = [*((name, 2) for name in "abefcd"), ("b", None)]
        expected = [(name, ChangeKind.UPDATED, length) for name, length in updated]
        expected.insert(6, ("f", ChangeKind.DELETED, None))
        assert changes() == expected
        assert run(PUBLISH) == 0
        assert "Nothing changed" in said.readouterr().out
        assert run([*PUBLISH, "--rebase", "-q"]) == 0
        assert listed() == {base + name: None if name == "b" else 2 for name in "abcde"}
        assert run(["pull", "mirror", "-q"]) == 0

    copies = {path.name: path.read_text() for path in here.glob("mirror/?")}
    assert copies == {name: name * 2 for name in "abcde"}


NEW_CHANGE = """
INSERT INTO change SELECT NULL, 'created', max(datetime_us) + 1, {}, 0, 1, '', '', '' FROM change
"""
UNUSABLE = (
    "INSERT INTO resource VALUES (x'686900', NULL, 1, '', '', '', '')",
    f"INSERT INTO resource VALUES (CAST('{BASE}a' AS BLOB), NULL, 1, '', '', '', '')",
    "INSERT INTO resource VALUES (CAST(x'68ff' AS TEXT), NULL, 1, '', '', '', '')",
    f"INSERT INTO resource VALUES ('{BASE}' || char(1), NULL, 1, '', '', '', '')",
    f"INSERT INTO resource VALUES ('{BASE}x ', NULL, 1, '', '', '', '')",
    "INSERT INTO resource VALUES ('relative', NULL, 1, '', '', '', '')",
    NEW_CHANGE.format("x'ff'"),
    NEW_CHANGE.format("CAST(x'ff' AS TEXT)"),
)


def test_a_row_without_a_usable_address_is_told_and_dropped(
    catalogue: Catalogue, said: Said
) -> None:
    sql(*UNUSABLE)

    assert run([*PUBLISH, "--rebase", "--json"]) == 3
    told = [row for row in rows(said) if row["type"] == "warning"]
    assert len(told) == len(UNUSABLE)
    assert r"'h\udcff'" in {row["former"]["uri"] for row in told}
    assert run([*PUBLISH, "--rebase"]) == 0

    assert listed() == {BASE + name: 2 for name in NAMES}
    assert {name for name, *_ in changes()} == set(NAMES)


def test_a_dry_run_tells_the_bad_rows_and_writes_nothing(catalogue: Catalogue, said: Said) -> None:
    sql(
        "UPDATE change SET change = 'moved' WHERE seq = 3",
        f"UPDATE resource SET hash = 'md5:x y' WHERE uri = '{BASE}d'",
    )
    before = sql("SELECT * FROM resource", "SELECT * FROM change")

    assert run([*PUBLISH, "--dry-run", "--json", "-q"]) == 3
    assert said.readouterr().out.count('"code":"mended-row"') == 2
    assert sql("SELECT * FROM resource", "SELECT * FROM change") == before
    assert changes() == []


def test_a_row_is_told_before_it_is_mended(catalogue: Catalogue) -> None:
    sql("UPDATE change SET media_type = CAST(x'ff' AS TEXT) WHERE seq = 3")
    before = sql("SELECT * FROM change")

    class KilledError(BaseException):
        """The end of the process while a row is told."""

    def report(event: str, fields: Mapping[str, object]) -> None:
        raise KilledError

    asked = PublishRequest(report=report)
    with pytest.raises(KilledError):
        catalogues.publish(Path("c.db"), None, {}, clock=SystemClock(), asked=asked)
    assert sql("SELECT * FROM change") == before


def test_what_is_posted_while_the_rows_are_judged_is_no_bad_row(catalogue: Catalogue) -> None:
    sql(f"UPDATE resource SET length = 'two' WHERE uri = '{BASE}b'")
    sound = [Change(kind=ChangeKind.UPDATED, resource=Resource(uri=BASE + "b", length=3))]
    told: list[BadRow] = []

    def fault(entries: Sequence[Resource] | Sequence[Change]) -> str:
        if sound:
            catalogue.post([sound.pop()])
        return find_fault(entries)

    assert mend_rows(Path("c.db"), SystemClock().now(), fault, told.append) == 0
    assert [resource.length for resource in catalogue.resources()] == [2, 3, 2, 2, 2, 2]
    assert told == []


def test_a_program_may_post_while_there_are_bad_rows_and_is_told_of_them(
    catalogue: Catalogue, caplog: pytest.LogCaptureFixture
) -> None:
    sql("UPDATE change SET datetime_us = (1 << 62) WHERE seq = 3")
    sql(f"INSERT INTO post (change, uri, length) VALUES ('updated', '{BASE}a', 3)")
    catalogue.post([Change(kind=ChangeKind.UPDATED, resource=Resource(uri=BASE + "b", length=3))])

    assert catalogue.publish().mended == 1
    assert "change 3 cannot be published: https://h.example/c: " in caplog.text
    assert [(name, length) for name, _, length in changes()][5:] == [("a", 3), ("b", 3), ("c", 2)]


def test_lines_that_can_be_read_only_once_end_with_an_error_and_the_next_ones_are_published(
    said: Said, monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    command = ["publish", "ndjson:-", "--url", BASE, "--out", str(here)]
    for code, lines in (
        (0, b'{"uri": "%sa"}\n'),
        (8, b'{"uri": "%sb"}\n'),
        (0, b'{"uri": "%sb"}\n'),
    ):
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(lines % BASE.encode())))
        assert run(command) == code
        if not Path("c.db").exists():
            os.symlink(".resourcesync/catalogue.db", "c.db")
            sql("INSERT INTO resource VALUES (CAST(x'68ff' AS TEXT), NULL, 1, '', '', '', '')")

    told = said.readouterr().err
    assert told.count("warning[mended-row]") == 1
    assert "mended  1 of its rows" in told
    assert [resource.uri for resource in Catalogue(".resourcesync/catalogue.db").resources()] == [
        BASE + "b"
    ]
