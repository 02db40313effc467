"""Damaged values in the state of a mirror: each ends in a run as usual, or in a state error."""

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.main import run
from resourcesync.mirror_state.database import SCHEMA
from tests.support.commands.command_line import FILES, LATER, Said
from tests.support.servers.tiny_source import TinySource

STATE = Path(".resourcesync/state.db")
GONE = "/objects/0002.txt"
COMMANDS = (
    ["status", "M"],
    ["why", "M", "W"],
    ["trash", "list", "M"],
    ["changes", "M"],
    ["audit", "M"],
    ["pull", "M"],
)
"""What reads a state. W is the URI of a copy, M is the mirror."""
GOOD = {ExitCode.OK, ExitCode.FINDINGS, ExitCode.PARTIAL, ExitCode.STOPPED}
ODD = {"TEXT": ("odd", b"\x00\xff"), "INTEGER": ("odd", 2**62)}
ODD_NOTES = ("{}", "9" * 18, b"\x00\xff")


class Column(NamedTuple):
    table: str
    name: str
    kind: str
    fits_null: bool


def columns() -> list[Column]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        tables = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        return [
            Column(table, name, kind, not is_filled)
            for (table,) in tables
            for _, name, kind, is_filled, *_ in db.execute(f"PRAGMA table_info({table})")
        ]


@pytest.fixture(scope="module")
def served() -> Iterator[TinySource]:
    with TinySource() as source:
        yield source


@pytest.fixture(scope="module")
def mirror(served: TinySource, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mirrors") / "M"
    served.offer(FILES)
    served.offer_changes()
    assert run(["pull", served.url, str(folder), "-qq"]) == 0
    served.offer_changes(
        served.change("updated", "/objects/0001.txt", b"changed", at=LATER),
        served.change("deleted", GONE, b"", at=LATER),
        served.change("created", "/never.txt", b"never", at=LATER),
    )
    served.put("/objects/0001.txt", b"changed")
    del served.answers[GONE]
    assert run(["pull", str(folder), "--delete", "signalled", "--max-delete", "100%", "-qq"]) == 3
    assert run(["audit", str(folder), "-qq"]) == 1
    fill(folder / STATE)
    return folder


def fill(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        (uri,) = db.execute("SELECT min(uri) FROM copy").fetchone()
        tables = {table for table, *_ in columns()}
        for table in sorted(tables):
            if db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is None:
                row = [
                    uri if name == "uri" else "" if kind == "TEXT" else 1
                    for of, name, kind, _ in columns()
                    if of == table
                ]
                db.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", row)


def contents(folder: Path) -> set[bytes]:
    own = folder / ".resourcesync"
    return {
        path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
        and (own not in path.parents or path.parent.name in {"trash", "quarantine"})
    }


def faults(mirror: Path, tmp_path: Path, said: Said, sql: str, *values: object) -> Iterator[object]:
    """Damage a copy of a mirror, run the commands, and yield what is no good run and no error."""
    folder = tmp_path / "M"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(mirror, folder)
    with closing(sqlite3.connect(folder / STATE)) as db, db:
        (uri,) = db.execute("SELECT min(uri) FROM copy").fetchone()
        with suppress(sqlite3.IntegrityError):  # a value that no such file can have
            db.execute(sql, values)
    before = contents(folder)
    for parts in COMMANDS:
        code = run([{"M": str(folder), "W": uri}.get(part, part) for part in parts])
        told = said.readouterr()
        is_error = code == ExitCode.LOCAL and "state" in told.err and "fix " in told.err
        if not is_error and (code not in GOOD or "Traceback" in told.err):
            yield sql, values, parts, code, told.out[-300:], told.err[-1500:]
    if not before <= contents(folder):
        yield sql, values, "lost", before - contents(folder)


@pytest.mark.parametrize("column", columns(), ids=lambda column: f"{column.table}-{column.name}")
def test_a_damaged_value_ends_in_a_good_run_or_a_state_error(
    mirror: Path, tmp_path: Path, said: Said, column: Column
) -> None:
    sql = f"UPDATE OR IGNORE {column.table} SET {column.name} = ?"
    for value in (*ODD[column.kind], *([None] if column.fits_null else [])):
        assert list(faults(mirror, tmp_path, said, sql, value)) == []


@pytest.mark.parametrize("line", ["patch [", "patch [1]", "lists [", 'lists ["updated",[[1]],0]'])
def test_a_damaged_line_of_a_task_does_too(
    mirror: Path, tmp_path: Path, said: Said, line: str
) -> None:
    sql = "UPDATE pending SET elsewhere = ?"
    assert list(faults(mirror, tmp_path, said, sql, f"\n{line}")) == []


def test_a_damaged_note_does_too(mirror: Path, tmp_path: Path, said: Said) -> None:
    with closing(sqlite3.connect(mirror / STATE)) as db:
        texts = dict(db.execute("SELECT key, value FROM note").fetchall())
    sql = "UPDATE note SET value = ? WHERE key = ?"
    for key, text in texts.items():
        impossible = (  # dates that no calendar has
            f"{text[: found.start()]}{10**18}{text[found.end() :]}"
            for found in re.finditer(r'(?<=":)[0-9]{16}(?=[,}])', text)
        )
        for value in (*ODD_NOTES, *impossible):
            assert list(faults(mirror, tmp_path, said, sql, value, key)) == [], value
