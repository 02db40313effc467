"""The first hour with the program: what is advised can be done, and everything is told at once."""

import json
from pathlib import Path

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, Said
from tests.support.servers.tiny_source import TinySource


def test_a_part_that_no_task_needs_is_gone_after_a_complete_pull(
    source: TinySource, said: Said
) -> None:
    assert run(["pull", source.url, "museum"]) == 0
    left = Path("museum/.resourcesync/tmp")
    (left / "one").write_bytes(b"x" * (2 << 20))
    note = {"of": f"{source.url}/gone.bin", "validator": '"tag"'}
    (left / "one.part").write_text(json.dumps(note))
    assert run(["status", "museum"]) == 0
    assert run(["audit", "museum"]) == 0
    assert {path.name for path in left.iterdir()} == {"one", "one.part"}
    source.offer({**FILES, "/lost.txt": b"lost"}, at="2026-01-02T00:00:00Z")
    del source.answers["/lost.txt"]
    assert run(["pull", "museum"]) == 3
    assert {path.name for path in left.iterdir()} == {"one", "one.part"}, "something is missing yet"

    source.put("/lost.txt", b"lost")
    assert run(["pull", "museum"]) == 0

    assert list(left.iterdir()) == []
    said.readouterr()
