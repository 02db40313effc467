"""``status``: the table, the gate, the lines for programs."""

import re

from resourcesync.cli.main import run
from tests.support.command_line import FILES, LATER, Said, rows
from tests.support.tiny_source import TinySource


def test_status_is_a_table_of_the_mirrors_here(source: TinySource, said: Said) -> None:
    for name in ("one", "two"):
        run(["pull", source.url, name])
    said.readouterr()

    assert run(["status"]) == 0

    head, *table = said.readouterr().out.splitlines()
    assert head.split("  ")[0] == "MIRROR"
    assert [line.split()[0] for line in table] == ["one", "two"]
    assert all(re.search(r"in sync +100 % +\d+ d +\d+ s ago +12 +0$", line) for line in table)


def test_status_checks_the_state_and_the_lag(source: TinySource, said: Said) -> None:
    run(["pull", source.url, "museum"])

    assert run(["status", "museum", "--check"]) == 0
    assert run(["status", "museum", "--check", "--max-lag", "1s"]) == 1
    assert run(["status", "museum", "--check", "--max-lag", "5000w"]) == 0


def test_status_tells_what_is_wrong(source: TinySource, said: Said) -> None:
    run(["pull", source.url, "museum"])
    source.offer({**FILES, "/new.txt": b"new"}, at=LATER)
    del source.answers["/new.txt"]
    run(["pull", "museum"])
    said.readouterr()

    assert run(["status", "museum", "--check"]) == 1

    out = said.readouterr().out
    assert "behind" in out
    assert "1 listed resource not here as listed" in out
    assert f"! {source.url}/new.txt" in out


def test_status_remembers_that_the_last_pull_failed(source: TinySource, said: Said) -> None:
    run(["pull", source.url, "museum"])
    source.answers.clear()
    assert run(["pull", "museum", "--retries", "0"]) == 5
    said.readouterr()

    assert run(["status", "museum"]) == 0

    out = said.readouterr().out
    assert "failing" in out
    assert "the last pull ended with " in out


def test_status_in_json_has_a_line_per_mirror(source: TinySource, said: Said) -> None:
    run(["pull", source.url, "museum"])
    said.readouterr()

    assert run(["status", "museum", "nothing", "--format", "json"]) == 2

    found = rows(said)
    (mirror,) = [row for row in found if row["type"] == "mirror"]
    assert mirror["state"] == "in sync"
    assert mirror["source"] == source.url
    assert mirror["resources"] == 12
    assert [row["code"] for row in found if row["type"] == "error"] == ["config"]


def test_status_without_a_mirror_says_so(said: Said) -> None:
    assert run(["status"]) == 2
    assert "no mirror in this folder" in said.readouterr().err
