"""The first hour with the program: what is advised can be done, and everything is told at once."""

import json
from pathlib import Path

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, Said, rows
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


def test_a_lenient_pull_says_how_many_copies_contradict_the_list(
    source: TinySource, said: Said
) -> None:
    source.put("/objects/0003.txt", b"other")

    assert run(["pull", source.url, "museum", "-o", "verify=lenient"]) == 3

    said_by_pull = said.readouterr().out
    assert "! /objects/0003.txt   the list says 9 B, the Source served 5 B" in said_by_pull
    assert "; kept (`verify` is lenient)" in said_by_pull
    assert "12 created, 1 not matching the list" in said_by_pull
    assert "1 copy not matching the list (-o verify=lenient): ask the Source" in said_by_pull
    assert run(["audit", "museum"]) == 1
    said.readouterr()
    assert run(["status", "museum", "--check", "--json"]) == 1
    (mirror,) = [row for row in rows(said) if row["type"] == "mirror"]
    assert (mirror["listed"]["pending"], mirror["retained"]["contradicting"]) == (1, 1)
    assert mirror["state"] == "behind"
    assert run(["pull", "museum", "-o", "verify=lenient", "--json"]) == 3
    assert rows(said)[-1]["retained"]["contradicting"] == 1
