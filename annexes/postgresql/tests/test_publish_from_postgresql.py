"""A table, a query, a catalogue in PostgreSQL is published and followed, as the how-to says."""

import re
import shlex
import textwrap
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing import accounts, catalogues
from resourcesync.app.publishing.accounts import FollowedAccount
from resourcesync.cli.main import run
from resourcesync.errors import ResourceSyncError, SourceRefusedError
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Link, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.source.publication_options import PublicationResult, PublishRequest
from resourcesync_postgresql import layout
from tests.support.accounts.postgres_tables import BASE, RECORDS, Records, account
from tests.support.commands.command_line import Said
from tests.support.servers.postgres_server import SECRETIVE, Server

MISTAKES: list[tuple[dict[str, str], str, str]] = [
    ({"tabel": "record"}, "PostgreSQL has no option tabel", "config"),
    ({"query": "TABLE nothing"}, '"nothing" does not exist', "config"),
    ({"query": "SELECT id AS name FROM record"}, "no column 'id'", "config"),
    ({"query": "SELECT id, notes AS length FROM record"}, "cannot cast type json", "config"),
    ({"query": "SELEKT 1"}, "syntax error", "config"),
    ({"query": "SELECT nextval('numbers')::text AS id"}, "read-only", "config"),
    ({"query": "SELECT pg_sleep(5)::text AS id", "timeout": "1"}, "timeout", "unavailable"),
    ({"uri": "{id"}, "no partner", "config"),
    ({"query": ""}, "no query", "config"),
    ({"timeout": "0"}, "no number of seconds", "config"),
    ({"table": "a" * 60}, "longer than", "config"),
]


HOW_TO = Path(__file__).parents[3] / "docs" / "how-to" / "publish-from-postgresql.md"


class Site:
    def __init__(self, address: str, out: Path, values: dict[str, str] | None = None) -> None:
        self.catalogue = out / ".resourcesync" / "catalogue.db"
        self._followed = FollowedAccount(address=address, values=values or RECORDS, out=out)
        self._told = 0

    def publish(self) -> PublicationResult:
        return accounts.publish_account(
            self._followed, {"url": BASE}, clock=SystemClock(), asked=PublishRequest()
        )

    def lengths(self) -> dict[str, int | None]:
        found = catalogues.read_resources(self.catalogue)
        return {resource.uri.removeprefix(BASE): resource.length for resource in found}

    def news(self) -> list[tuple[str, str]]:
        self.publish()
        found = list(catalogues.read_changes(self.catalogue, self._told))
        self._told = found[-1][0] if found else self._told
        return [(change.kind.value, change.uri.removeprefix(BASE)) for _, change in found]


def read(address: str, values: Mapping[str, str]) -> None:
    with account(address, values) as opened:
        opened.position()
        list(opened.resources())


def test_the_how_to_is_true(
    address: str, tmp_path: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = HOW_TO.read_text("utf-8")
    made, pruned = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    (settings,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    steps = [
        item
        for item in re.findall(r"^ +(?:resourcesync|psql) .*", text, re.MULTILINE)
        if "--watch" not in item
    ]
    place = {"postgresql://reader@db.example/museum": address, "/srv/www": str(tmp_path / "www")}
    for known, here in place.items():
        settings = settings.replace(known, here)
    monkeypatch.chdir(tmp_path)
    Path("resourcesync.toml").write_text(textwrap.dedent(settings))
    with psycopg.connect(address, autocommit=True) as owner:
        for statement in (made, "INSERT INTO object (id) VALUES (1), (2)", "CREATE ROLE reader"):
            owner.execute(statement.encode())
        for step in steps:
            program, *words = shlex.split(step)
            if program == "psql":
                owner.execute(Path("log.sql").read_bytes())
                continue
            capsys.readouterr()
            assert run(words[:-2] if ">" in words else words) == 0
            if ">" in words:
                Path(words[-1]).write_text(capsys.readouterr().out)
        owner.execute("UPDATE object SET bytes = 3 WHERE id = 2")
        owner.execute("UPDATE object SET title = 'not told' WHERE id = 1")
        assert run(["publish", "museum"]) == 0
        assert owner.execute(pruned.replace("14 days", "0").encode()).fetchone() == (1,)
        owner.execute("DROP OWNED BY reader")
        owner.execute("DROP ROLE reader")

    assert len(steps) == 4
    shown = (tmp_path / "www" / "resourcesync" / "changelist.xml").read_text()
    assert re.findall("<loc>(.*?)</loc>", shown) == ["https://museum.example/objects/2"]
    assert 'length="3"' in shown


def test_every_option_is_in_the_how_to() -> None:
    table = HOW_TO.read_text("utf-8").partition("--with`\n")[2].partition("| Column")[0]

    assert re.findall(r"^\| `([a-z]+)` \|", table, re.MULTILINE) == list(layout.OPTIONS)


MANY_VALUES = {
    "query": "SELECT place, part, changed AS lastmod, size AS length, said AS hash, kind AS type,"
    " 'identity/x' AS encoding, links FROM page",
    "uri": "{+place}?part={part}",
}
LINKS = '[{"rel": "describedby", "href": "https://h.example/m", "type": "a/b", "length": 3}]'
PAGES = (
    ("x y/ü%20%", 1, "2026-01-02 03:04:05.5", 7, f"md5:{'0' * 32} sha-256:{'a' * 64}",
     "text/plain", LINKS),
    ("z", 2, "infinity", -1, "md5:x", None, "[1]"),
    (None, 3, None, None, None, None, None),
)  # fmt: skip


@pytest.fixture
def pages(records: Records, address: str) -> str:
    """A table of all kinds of columns, in a database with ways of its own to write times."""
    for setting in ("timezone = 'Asia/Kathmandu'", "datestyle = 'German'"):
        records.run(f"ALTER DATABASE {records.connection.info.dbname} SET {setting}")
    records.run(
        "CREATE TABLE page (place text, part int, changed timestamp, size int, said text,"
        " kind text, links jsonb)"
    )
    for row in PAGES:
        records.run(f"INSERT INTO page VALUES ({', '.join(['%s'] * len(row))})", *row)
    return address


def test_each_value_becomes_what_it_is_called(pages: str, caplog: pytest.LogCaptureFixture) -> None:
    with account(pages, MANY_VALUES) as found:
        resource, other = sorted(found.resources(), key=lambda resource: resource.uri)

    described = Link(rel="describedby", href="https://h.example/m", media_type="a/b", length=3)
    assert resource == Resource(
        uri=f"{BASE}x%20y/%C3%BC%20%25?part=1",
        lastmod=datetime(2026, 1, 2, 3, 4, 5, 500_000, tzinfo=UTC),
        length=7,
        digests=(Digest("md5", "0" * 32), Digest("sha-256", "a" * 64)),
        media_type="text/plain",
        encoding="identity/x",
        links=(described,),
    )
    assert other == Resource(uri=f"{BASE}z?part=2", encoding="identity/x")
    doubted = [re.findall(r"is no (\S+) and is left out", message) for message in caplog.messages]
    assert sorted(doubted) == [["hash"], ["lastmod"], ["length"], ["links"]]


def test_a_query_over_several_tables_is_followed_by_the_keys_of_one(
    address: str, tmp_path: Path
) -> None:
    records = Records(address, key="int")
    records.run("CREATE TABLE file (record int REFERENCES record ON DELETE CASCADE, bytes int)")
    records.run("INSERT INTO record (id) VALUES (1), (2), (3)")
    records.run("INSERT INTO file VALUES (1, 10), (1, 20), (2, 30)")
    values = {
        "query": "SELECT id, sum(bytes) AS length FROM record LEFT JOIN file ON record = id"
        " WHERE notes IS NULL GROUP BY id -- those that are public",
        "table": "record", "uri": "{id}",
    }  # fmt: skip
    records.migrate(values)
    site = Site(address, tmp_path, values)

    site.publish()
    assert site.lengths() == {"1": 30, "2": 30, "3": None}
    records.run("UPDATE record SET notes = '{}' WHERE id = 1")
    records.run("DELETE FROM record WHERE id = 2")
    records.run("INSERT INTO file VALUES (3, 5)")
    records.run("INSERT INTO resourcesync.record_change (id) VALUES (3)")  # as the page says
    assert sorted(site.news()) == [("deleted", "1"), ("deleted", "2"), ("updated", "3")]
    assert site.lengths() == {"3": 5}
    records.close()


def test_types_that_call_different_texts_equal_lose_no_uri(address: str) -> None:
    records = Records(address, key="numeric")
    records.migrate()
    records.run("INSERT INTO record (id) VALUES (1.0), (2.0)")
    with account(address) as found:
        position = found.position()
        records.run("UPDATE record SET id = 1.00 WHERE id = 1")

        ((_, changes, *_),) = found.changes(position, 0)

    assert {(change.kind, change.uri) for change in changes} == {
        (ChangeKind.DELETED, f"{BASE}objects/1.0"),
        (ChangeKind.UPDATED, f"{BASE}objects/1.00"),
    }
    records.close()


def test_a_mistake_is_told_and_nothing_is_recorded(records: Records, address: str) -> None:
    records.run("CREATE SEQUENCE numbers")
    for values, told, code in MISTAKES:
        with pytest.raises(ResourceSyncError) as found:
            read(address, {"query": "TABLE record", "uri": "{id}"} | values)

        assert told in found.value.message
        assert found.value.code == code


def test_a_server_that_is_not_there_refuses_or_has_no_such_database_is_told(
    records: Records, address: str, tmp_path: Path
) -> None:
    records.run("DROP ROLE IF EXISTS nobody_much")
    records.run("CREATE ROLE nobody_much LOGIN")
    places = {
        "postgresql://rs@127.0.0.1:1/x": "unavailable",
        f"postgresql:///x?host={tmp_path}": "unavailable",
        address.replace("/rs_", "/nothing_"): "config",
        address.replace("//rs@", "//nobody_much@"): "refused",
    }
    for place, code in places.items():
        with pytest.raises(ResourceSyncError) as found:
            read(place, RECORDS)
        assert found.value.code == code
    records.run("DROP ROLE nobody_much")


def test_a_password_is_given_apart_and_never_told(
    records: Records, address: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    records.run(f"CREATE ROLE {SECRETIVE} LOGIN SUPERUSER PASSWORD 'hunter2'")
    place = address.replace("//rs@", f"//{SECRETIVE}@")
    for wrong in ({}, {"password": "hunter3"}):
        with pytest.raises(SourceRefusedError) as found:
            read(place, RECORDS | wrong)
        assert "hunter" not in f"{found.value} {found.value.evidence} {found.value.hint}"
        assert "--with password=env:NAME" in found.value.hint

    read(place, RECORDS | {"password": "hunter2"})
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    read(place, RECORDS)
    records.run(f"DROP ROLE {SECRETIVE}")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hunter2@h.example/db?client_encoding=LATIN1",
        "postgresql://h.example/db?password=hunter2",
        "postgresql://me:hunter2@[h.example/db",
    ],
)
def test_a_secret_in_an_address_is_refused_and_not_told(address: str) -> None:
    with pytest.raises(ResourceSyncError) as found:
        read(address, RECORDS)

    assert "hunter2" not in f"{found.value} {found.value.evidence} {found.value.hint}"
    assert found.value.code == "config"
