"""The first hour with the program: what is advised can be done, and everything is told at once."""

import json
from pathlib import Path

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, Said, rows
from tests.support.servers.tiny_source import TinySource, dead_address


def test_after_config_init_the_advice_is_to_edit_that_file(said: Said) -> None:
    assert run(["config", "init"]) == 0
    said.readouterr()

    assert run(["pull", "--all"]) == 2

    told = said.readouterr().err
    assert "no mirror is configured" in told
    assert "edit that file: add a table [mirror.NAME]" in told
    assert "config init" not in told


def test_a_folder_in_another_is_told_together_with_the_other_mistakes(said: Said) -> None:
    Path("resourcesync.toml").write_text(
        '[mirror.a]\nsource = "https://a.example/"\ndest = "x"\n'
        '[mirror.b]\nsource = "https://b.example/"\ndest = "x/y"\njbs = 1\n'
    )

    assert run(["config", "check"]) == 2

    told = said.readouterr()
    assert "`jbs`" in told.err + told.out
    assert "is inside the folder of [mirror.a]" in told.err + told.out
    assert "contains the folder of [mirror.b]" in told.err + told.out


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


def test_of_entries_that_cannot_be_used_no_further_run_is_advised(
    source: TinySource, said: Said
) -> None:
    body = b"elsewhere"
    entries = [source.entry(target, content) for target, content in FILES.items()]
    entries.append(source.entry("/x", body, uri="https://other.example/x"))
    source.offer_entries(entries)

    assert run(["pull", source.url, "museum"]) == 3

    told = said.readouterr().out
    assert "run it again" not in told
    assert "  next   ask the Source to correct the 1 entry that cannot be used;" in told
    assert "--allow-origin ORIGIN" in told


def test_a_host_that_cannot_be_connected_is_told_with_what_to_do(said: Said) -> None:
    with dead_address() as address:
        assert run(["pull", address, "museum", "--retries", "0"]) == 4

    told = said.readouterr().err
    assert "error[connect]" in told
    assert "check the host and port" in told


def test_the_names_that_the_first_steps_tell_of_are_the_names_that_are_there(
    source: TinySource, said: Said
) -> None:
    source.offer({"/README": b"1", "/v1.2/notes.txt": b"2", "/page.php?id=1": b"3"})
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()

    for name in ("README", "v1.2/notes.txt", "page.php!3fid=1"):
        assert Path("museum", name).is_file()


def test_a_lenient_pull_says_how_many_copies_contradict_the_list(
    source: TinySource, said: Said
) -> None:
    source.put("/objects/0003.txt", b"other")

    assert run(["pull", source.url, "museum", "--verify", "lenient"]) == 3

    said_by_pull = said.readouterr().out
    assert "! /objects/0003.txt   the list says 9 B, the Source served 5 B" in said_by_pull
    assert "; kept (`verify` is lenient)" in said_by_pull
    assert "12 created, 1 not matching the list" in said_by_pull
    assert "1 copy not matching the list (--verify lenient): ask the Source" in said_by_pull
    assert run(["audit", "museum"]) == 1
    said.readouterr()
    assert run(["status", "museum", "--check", "--json"]) == 1
    (mirror,) = [row for row in rows(said) if row["type"] == "mirror"]
    assert (mirror["state"], mirror["pending"], mirror["contradicting"]) == ("behind", 1, 1)
    assert run(["pull", "museum", "--verify", "lenient", "--json"]) == 3
    assert rows(said)[-1]["contradicting"] == 1
