"""``-q``: nothing when all is well, errors if not, answers in any case."""

from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, Said
from tests.support.commands.settings_file import museum, put
from tests.support.servers.tiny_source import TinySource


@pytest.fixture
def mirror(source: TinySource, said: Said) -> Path:
    put(museum(source))
    assert run(["pull", "museum"]) == 0
    said.readouterr()
    return Path("copies/museum")


@pytest.mark.parametrize(
    "command",
    [
        ["pull", "--all", "-q"],
        ["pull", "museum", "-q"],
        ["audit", "museum", "-q"],
        ["repair", "museum", "-q"],
        ["status", "--check", "-q"],
    ],
)
def test_a_mirror_that_is_well_is_no_news(command: list[str], mirror: Path, said: Said) -> None:
    assert mirror.is_dir()
    assert run(command) == 0
    assert said.readouterr() == ("", "")


def test_what_failed_is_named_with_why_and_what_to_do(
    source: TinySource, mirror: Path, said: Said
) -> None:
    files = {**FILES, **{f"/new/{number:02}.txt": b"%d" % number for number in range(12)}}
    source.offer(files, at=LATER)
    for number in range(12):
        del source.answers[f"/new/{number:02}.txt"]
    assert mirror.is_dir()

    assert run(["pull", "museum", "-q"]) == 3

    captured = said.readouterr()
    lines = captured.err.splitlines()
    assert captured.out == ""
    assert len([line for line in lines if line.startswith("! /new/")]) == 10
    assert "not found on the server (404 Not Found)" in lines[0]
    assert "  and 2 more that failed" in lines
    assert any(line.startswith("Not in sync") for line in lines)
    assert any(line.startswith("  next   ") for line in lines)

    assert run(["pull", "museum", "-qq"]) == 3
    assert said.readouterr() == ("", "")
