"""``export --since``: only what is new."""

import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, Said, rows
from tests.support.servers.tiny_source import TinySource


@pytest.fixture
def museum(source: TinySource, said: Said) -> str:
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()
    return "museum"


def export(form: str, out: str, *more: str) -> int:
    return run(["export", "museum", "--format", form, "--out", out, *more])


@pytest.mark.parametrize("form", ["zip", "bagit"])
def test_only_what_came_since_is_exported(
    form: str, source: TinySource, museum: str, said: Said
) -> None:
    with closing(sqlite3.connect(Path(museum, ".resourcesync/state.db"))) as db, db:  # a day ago
        db.execute("UPDATE copy SET installed = installed - 86400000000")
    source.offer({**FILES, "/new.txt": b"new", "/objects/0003.txt": b"newer"}, at=LATER)
    assert run(["pull", museum]) == 0
    said.readouterr()

    assert export(form, "news.zip", "--since", "-1h", "--json") == 0

    end = rows(said)[-1]
    assert (end["copies"], end["since"] is None) == (2, False)
    with zipfile.ZipFile("news.zip") as package:
        held = {name: package.read(name) for name in package.namelist()}
    assert {b"new", b"newer"} <= set(held.values())
    assert b"object 1\n" not in held.values()
    assert export(form, "all.zip", "--since", "-2d") == 0
    assert "13 resources newer than " in said.readouterr().out


def test_where_nothing_came_since_nothing_is_written(museum: str, said: Said) -> None:
    with closing(sqlite3.connect(Path(museum, ".resourcesync/state.db"))) as db, db:
        db.execute("UPDATE copy SET installed = installed - 86400000000")

    assert export("zip", "news.zip", "--since", "-1h") == 0

    out = said.readouterr().out
    assert "0 resources newer than " in out
    assert "nothing was written" in out
    assert not Path("news.zip").exists()
