"""Audits of a part of the files, of the Source itself, and options that exclude each other."""

from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said
from tests.support.servers.tiny_source import TinySource


@pytest.fixture
def museum(source: TinySource, said: Said) -> str:
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()
    return "museum"


def test_a_rolling_audit_proves_every_file_in_turn(museum: str, said: Said) -> None:
    command = ["audit", museum, "--sample", "25%", "--oldest-first"]
    Path(museum, "objects/0005.txt").write_bytes(b"objecT 5\n")
    codes = []

    for _ in range(6):
        codes.append(run(command))
        text = said.readouterr().out
        assert "3 of 12 files read" in text or "objects/0005.txt" in text

    assert codes == sorted(codes)  # what is bad stays the first to be looked at
    assert codes[-1] == 1
