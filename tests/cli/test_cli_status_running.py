"""``status`` while a pull runs: it shows that, and judges by what the last pull left."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows
from tests.support.servers.tiny_source import TinySource


@contextmanager
def running(mirror: Path) -> Iterator[None]:
    """Hold the lock of a mirror, as a pull does."""
    with (mirror / ".resourcesync" / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def status(said: Said, *words: str) -> tuple[int, str]:
    said.readouterr()
    code = run(["status", *words])
    return code, said.readouterr().out


def test_a_good_mirror_is_good_while_it_is_pulled(source: TinySource, said: Said) -> None:
    assert run(["pull", source.url, "copies"]) == 0

    with running(Path("copies")):
        assert status(said, "copies", "--check")[0] == 0
        figures = status(said, "copies", "--format", "prom")[1]
        assert "syncing" in status(said, "copies")[1]
    assert 'resourcesync_mirror_state{mirror="copies",state="in sync"} 1' in figures
    assert 'resourcesync_mirror_running{mirror="copies"} 1' in figures


def test_a_failing_mirror_is_failing_while_it_is_pulled(source: TinySource, said: Said) -> None:
    assert run(["pull", source.url, "copies"]) == 0
    source.answers.clear()
    assert run(["pull", source.url, "copies", "-o", "retries=0"]) != 0

    with running(Path("copies")):
        assert status(said, "copies", "--check")[0] != 0


def test_a_mirror_that_was_never_in_sync_is_not_good_while_it_is_pulled(
    source: TinySource, said: Said
) -> None:
    assert run(["pull", source.url, "copies", "-o", "max_bytes=1"]) != 0

    with running(Path("copies")):
        code, shown = status(said, "copies", "--check")
        assert code == 1
        assert "a run is under way" in shown
        assert "continue with" not in shown
    assert "continue with: resourcesync pull copies" in status(said, "copies")[1]
    said.readouterr()
    assert run(["status", "copies", "--json"]) == 0
    assert [row["state"] for row in rows(said) if row["type"] == "mirror"] == ["behind"]
