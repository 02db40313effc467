"""A mirror whose copies are in a folder that several machines share."""

import gzip
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from resourcesync.app.mirrors import state_backup
from resourcesync.backends.shared_folder import FolderStore
from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, MIRRORED, Said
from tests.support.servers.tiny_source import TinySource

ROOT = Path(__file__).parents[2]
MANY = {f"/many/{number:03d}.bin": b"%d" % number * 9_000 for number in range(60)}


def copies(folder: Path) -> dict[str, bytes]:
    return {
        key: (folder / key).read_bytes()
        for key in FolderStore(folder).keys("")
        if not key.startswith(".resourcesync/")
    }


def test_copies_go_into_the_folder_and_the_memory_stays_here(
    source: TinySource, here: Path, said: Said
) -> None:
    shared = here / "a share/copies"
    shared.parent.mkdir()
    address = f"file://{shared}".replace(" ", "%20")
    assert run(["pull", source.url, address, "--state", "state"]) == 0
    assert f" in {address}  (12 created" in said.readouterr().out
    assert copies(shared) == MIRRORED
    assert [path.name for path in (here / "state").iterdir()] == [".resourcesync"]
    assert run(["audit", "state"]) == 0

    changed = {**FILES, "/objects/0001.txt": b"newer than that\n"}
    source.offer(changed, at="2026-01-02T00:00:00Z")
    assert run(["pull", "state"]) == 0
    assert (shared / "objects/0001.txt").read_bytes() == b"newer than that\n"
    assert not list((shared / ".resourcesync/shared/on-its-way").iterdir())

    said.readouterr()
    with FolderStore(shared).lock("pid 1 on another machine"):
        assert run(["pull", "state"]) == 9
    assert "pid 1 on another machine" in said.readouterr().err


def test_a_pull_that_is_killed_in_between_is_ended_by_the_next(
    source: TinySource, here: Path
) -> None:
    source.offer(MANY)
    shared = here / "copies"
    words = ["pull", source.url, f"file://{shared}", "--state", "state"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    killed = subprocess.Popen(
        [sys.executable, "-m", "resourcesync", *words],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 30
    while not (shared / "many").is_dir() and time.monotonic() < until:
        time.sleep(0.001)
    killed.kill()
    assert killed.wait() == -9
    found = copies(shared)
    assert found.items() <= {path[1:]: body for path, body in MANY.items()}.items()

    assert run(words) == 0
    assert copies(shared) == {path[1:]: body for path, body in MANY.items()}
    assert run(["audit", "state"]) == 0
    assert not (shared / ".resourcesync/quarantine").exists(), "what it had put is known again"


@pytest.mark.parametrize("state", ["copies", "copies/inner"])
def test_the_memory_is_not_kept_among_the_copies(
    source: TinySource, here: Path, said: Said, state: str
) -> None:
    assert run(["pull", source.url, f"file://{here}/copies", "--state", state]) == 2
    assert "is in the folder of the copies" in said.readouterr().err
    assert not (here / "copies").exists()


def test_a_file_system_that_is_not_mounted_is_no_empty_mirror(
    source: TinySource, here: Path, said: Said
) -> None:
    share = here / "share"
    share.mkdir()
    words = ["pull", source.url, f"file://{share}/copies", "--state", "state"]
    assert run(words) == 0
    (share / "copies").rename(here / "elsewhere")
    assert run(words) == 8
    assert "is not the one of this mirror's state" in said.readouterr().err
    share.rename(here / "unmounted")
    assert run(words) == 2
    assert "there is no folder" in said.readouterr().err
    assert not share.exists()


def test_documents_go_into_such_a_folder_too(tree: Path, here: Path) -> None:
    words = ["publish", str(tree), "--url", "https://museum.example", "--out"]
    assert run([*words, f"file://{here}/documents"]) == 0
    assert (here / "documents/.well-known/resourcesync").is_file()
    assert run([*words, f"file://{here}/documents"]) == 0


def test_a_memory_that_would_fill_the_disk_is_not_begun_with(
    source: TinySource, here: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["pull", source.url, f"file://{here}/copies", "--state"]
    assert run([*words, "first"]) == 0
    monkeypatch.setattr(state_backup, "MIN_LIMIT", 100_000)
    memory = here / "copies" / state_backup.BACKUP_KEY
    memory.write_bytes(gzip.compress(b"\0" * 50_000_000))

    assert run([*words, "second"]) == 8
    assert "damaged: it has more than" in said.readouterr().err
    assert not any((here / "second").rglob("*restored*"))

    memory.unlink()
    assert run([*words, "second"]) == 0
