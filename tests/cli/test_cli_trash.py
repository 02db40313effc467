"""``trash``: what a mirror deleted is listed, brought back, or removed for good."""

import os
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.mirror.mirror_folder import MirrorFolder
from resourcesync.adapters.system import SystemClock
from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, Said, rows
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import TinySource

GONE = ["objects/0001.txt", "objects/0002.txt"]
TRASH = Path("museum/.resourcesync/trash")
LAST = "2026-01-03T00:00:00Z"


def here() -> dict[str, bytes]:
    return {str(path): body for path, body in files_of(Path("museum")).items()}


def told(said: Said, kind: str) -> list[dict[str, Any]]:
    return [row for row in rows(said) if row["type"] == kind]


@pytest.fixture
def mirror(source: TinySource, said: Said) -> TinySource:
    """Give a Source that deleted two files, which a mirror followed."""
    run(["pull", source.url, "museum"])
    source.offer({k: v for k, v in FILES.items() if k[1:] not in GONE}, at=LATER)
    assert run(["pull", "museum"]) == 0
    assert len(list(TRASH.iterdir())) == 2
    said.readouterr()
    return source


def test_what_is_in_the_trash_is_listed(mirror: TinySource, said: Said) -> None:
    assert run(["trash", "list", "museum"]) == 0

    first, second, closing = said.readouterr().out.splitlines()
    assert f"/objects/0001.txt   no longer listed   {mirror.url}/objects/0001.txt" in first
    assert "  9 B  /objects/0002.txt" in second
    assert closing == "Trash     2 files, 18 B"
    assert run(["trash", "list", "museum", "0002*", "--json"]) == 0
    (row,) = told(said, "trashed")
    assert (row["path"], row["bytes"], row["reason"]) == (GONE[1], 9, "no longer listed")
    assert row["uri"] == f"{mirror.url}/{GONE[1]}"
    assert row["time"].startswith("20")
    assert run(["trash", "list", "museum", "nowhere*"]) == 1
    assert said.readouterr().out.splitlines() == [
        "Trash     nothing in the trash matches",
        "exit 1",
    ]
    assert run(["trash", "restore", "museum", "nowhere*", "-n"]) == 1
    assert said.readouterr().out == "Dry run   nothing in the trash matches  exit 1\n"
    assert run(["trash", "list", "museum", "--older-than", "1d"]) == 0
    assert "0 files" in said.readouterr().out


def test_a_file_that_is_brought_back_is_no_foreign_file_and_stays(
    mirror: TinySource, said: Said
) -> None:
    before = os.stat(next(TRASH.glob("*0001.txt"))).st_mtime_ns

    assert run(["trash", "restore", "museum", "/objects/0001.txt"]) == 0

    assert said.readouterr().out.startswith("Restored  1 file, 9 B")
    assert here()[GONE[0]] == FILES[f"/{GONE[0]}"]
    assert os.stat(f"museum/{GONE[0]}").st_mtime_ns == before
    assert [path.name[-8:] for path in TRASH.iterdir()] == ["0002.txt"]
    assert run(["audit", "museum", "--json"]) == 0
    audit = told(said, "run.end")[0]
    assert (audit["foreign"], audit["unlisted"], audit["extra"]) == (0, 1, 0)
    for _ in range(2):
        for mode in ("auto", "baseline"):
            assert run(["pull", "museum", "--mode", mode, "--delete", "absent"]) == 0
            assert GONE[0] in here()
    kept = "1 file restored from the trash (kept); resourcesync repair museum --delete deletes it"
    assert kept in said.readouterr().out


def test_a_source_that_lists_it_again_has_the_say_again(mirror: TinySource, said: Said) -> None:
    run(["trash", "restore", "museum", "--all"])
    mirror.offer(FILES, at="2026-01-02T12:00:00Z")
    assert run(["pull", "museum"]) == 0
    mirror.offer({k: v for k, v in FILES.items() if k[1:] not in GONE}, at=LAST)

    assert run(["pull", "museum"]) == 0

    assert not here().keys() & set(GONE)
    assert len(list(TRASH.iterdir())) == 2


def test_nothing_is_overwritten(mirror: TinySource, said: Said) -> None:
    Path("museum/objects/0001.txt").write_text("mine")
    said.readouterr()

    assert run(["trash", "restore", "museum", "--all"]) == 3

    out = said.readouterr().out
    assert "! /objects/0001.txt   another file has its path, and is not overwritten" in out
    assert "1 file, 9 B; 1 file left in the trash  exit 3" in out
    assert here()[GONE[0]] == b"mine"
    assert here()[GONE[1]] == FILES[f"/{GONE[1]}"]
    assert len(list(TRASH.iterdir())) == 1


def test_a_file_that_was_damaged_in_the_trash_is_not_brought_back(
    mirror: TinySource, said: Said
) -> None:
    damaged = next(TRASH.glob("*0001.txt"))
    damaged.write_bytes(b"no  bytes")

    assert run(["trash", "restore", "museum", "--all"]) == 3

    out = said.readouterr().out
    assert "! /objects/0001.txt   its bytes were changed in the trash" in out
    assert f".resourcesync/trash/{damaged.name}" in out
    assert "1 file left in the trash  exit 3" in out
    assert GONE[0] not in here()
    assert here()[GONE[1]] == FILES[f"/{GONE[1]}"]
    assert damaged.read_bytes() == b"no  bytes"
    assert run(["trash", "restore", "museum", "--all", "--json"]) == 3
    (item,) = told(said, "item")
    assert (item["status"], item["code"], item["place"]) == (
        "error",
        "hash-mismatch",
        damaged.name,
    )


def test_a_dry_run_and_a_mistake_change_nothing(mirror: TinySource, said: Said) -> None:
    before = here()

    assert run(["trash", "restore", "museum", "--all", "-n"]) == 0
    assert "would restore 2 files, 18 B; nothing was changed" in said.readouterr().out
    assert run(["trash", "empty", "museum", "0001*", "-n"]) == 0
    assert "would empty 1 file, 9 B; nothing was changed" in said.readouterr().out
    assert run(["trash", "empty", "museum"]) == 2
    assert run(["trash", "empty", "museum", "x", "--all"]) == 2
    assert run(["trash", "restore", "museum", "[a-z]"]) == 2
    assert run(["trash", "restore", "museum", "nothing*"]) == 1
    assert run(["trash", "list", "elsewhere"]) == 2
    assert run(["trash", "restore", "elsewhere", "--all"]) == 2
    assert not Path("elsewhere").exists()
    assert here() == before
    assert len(list(TRASH.iterdir())) == 2


def test_what_is_removed_for_good_is_no_longer_there(mirror: TinySource, said: Said) -> None:
    assert run(["trash", "empty", "museum", "--older-than", "1d"]) == 0
    assert len(list(TRASH.iterdir())) == 2
    assert run(["trash", "empty", "museum", "/objects/0001.txt"]) == 0
    assert [path.name[-8:] for path in TRASH.iterdir()] == ["0002.txt"]
    said.readouterr()

    assert run(["trash", "empty", "museum", "--all", "--json"]) == 0

    end = told(said, "run.end")[0]
    assert (end["files"], end["bytes"], end["failed"]) == (1, 9, 0)
    assert list(TRASH.iterdir()) == []
    assert run(["trash", "list", "museum"]) == 0


def test_nobody_else_may_work_on_the_mirror_meanwhile(mirror: TinySource) -> None:
    with MirrorFolder(Path("museum"), SystemClock()):
        assert run(["trash", "restore", "museum", "--all"]) == 9
        assert run(["trash", "empty", "museum", "--all"]) == 9
        assert run(["trash", "list", "museum"]) == 0
