"""Damaged values in a catalogue: bad rows are mended, and other damage is a state error."""

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.main import run
from tests.support.commands.command_line import Said

CATALOGUE = Path(".resourcesync/catalogue.db")
ODD = ("odd", -7, 2**62, b"\x00\xff", "é\x00", None)


def columns(path: Path) -> list[tuple[str, str]]:
    """Return the tables and columns of a file."""
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
