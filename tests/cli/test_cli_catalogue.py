"""``catalogue``: a Source without a folder."""

import io
import json
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

import pytest

from resourcesync import Catalogue, Change
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.main import run
from tests.support.commands.command_line import Said
from tests.support.documents.text import tell

BASE = "https://h.example/"
LINES = Path("all.ndjson")


def told(*lines: Mapping[str, object]) -> None:
    LINES.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_what_is_exported_can_be_imported(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    told({"uri": BASE + "b", "length": 1, "hash": "md5:" + "0" * 32}, {"uri": BASE + "a"})
    assert run(["catalogue", "import", "c.db", str(LINES), "--quiet"]) == 0
    assert run(["publish", "catalogue:c.db", "--url", BASE, "--out", "out", "--quiet"]) == 0
    capfdbinary.readouterr()
    assert run(["catalogue", "export", "c.db"]) == 0
    lines = capfdbinary.readouterr().out
    assert lines.splitlines() == [
        b'{"uri":"https://h.example/a"}',
        b'{"uri":"https://h.example/b","length":1,"hash":"md5:' + b"0" * 32 + b'"}',
    ]

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
    assert run(["catalogue", "import", "other.db", "-"]) == 0
    assert list(Catalogue("other.db").resources()) == list(Catalogue("c.db").resources())

    assert run(["catalogue", "import", "c.db", str(LINES)]) == 0
    assert b"nothing new" in capfdbinary.readouterr().out
    assert run(["catalogue", "export", "c.db", "--changes"]) == 0
    assert capfdbinary.readouterr().out == b""


def test_lines_are_published_without_a_catalogue_of_their_own(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    told({"uri": BASE + "a"}, {"uri": BASE + "b"})
    assert run(["publish", f"ndjson:{LINES}", "--url", BASE, "--out", "out"]) == 0
    assert said.readouterr().out.splitlines()[0].split() == [
        "Wrote", "out/resourcesync/resourcelist.xml", "2", "resources",
    ]  # fmt: skip

    line = json.dumps({"uri": BASE + "b"}).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line)))
    assert run(["publish", "ndjson:-", "--out", "out"]) == 0

    entries = tell(Path("out/resourcesync/changelist.xml").read_bytes()).entries
    assert [item.uri for item in entries if isinstance(item, Change)] == [BASE + "a"]


CATALOGUE = Path(".resourcesync/catalogue.db")
ODD = ("odd", -7, 2**62, b"\x00\xff", "é\x00", None)


def columns(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as db:
        query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        tables = [table for (table,) in db.execute(query).fetchall()]
        return [
            (table, name)
            for table in tables
            for _, name, *_ in db.execute(f"PRAGMA table_info({table})")
        ]


@pytest.fixture
def published(tree: Path, said: Said) -> Path:
    """Publish the files twice, so that there are resources and changes."""
    assert run(["publish", str(tree), "--url", "https://source.example/", "-qq"]) == 0
    (tree / "objects/0001.txt").write_bytes(b"changed")
    (tree / "objects/0002.txt").unlink()
    assert run(["publish", str(tree), "-qq"]) == 0
    said.readouterr()
    return tree


def test_a_bad_row_stops_no_publish_and_other_damage_ends_in_a_good_one_or_a_state_error(
    published: Path, here: Path, said: Said
) -> None:
    for table, column in columns(published / CATALOGUE):
        for value in ODD:
            folder = here / "damaged"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(published, folder)
            with closing(sqlite3.connect(folder / CATALOGUE)) as db, db, suppress(sqlite3.Error):
                db.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (value,))
            code = run(["publish", str(folder), "--dumps", "all"])
            told = said.readouterr()
            situation = (table, column, value, told.err)
            if table in {"resource", "change", "moment", "edit"}:
                assert code in {ExitCode.OK, ExitCode.PARTIAL}, situation
                assert (code == ExitCode.PARTIAL) == ("warning[mended-row]" in told.err), situation
                assert run(["publish", str(folder)]) == ExitCode.OK, situation
            else:
                assert code in {ExitCode.OK, ExitCode.LOCAL}, situation
                assert code == ExitCode.OK or "kept" in told.err, situation
