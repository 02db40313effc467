"""``status`` after a run that failed: when, why, with which exit code, and what to do now."""

from typing import Any

import pytest

from resourcesync.cli.main import run
from resourcesync.destination.status import read_failed
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import RunRow
from tests.support.commands.command_line import Said, rows
from tests.support.servers.tiny_source import TinySource


def told(said: Said) -> dict[str, Any]:
    (mirror,) = [row for row in rows(said) if row["type"] == "mirror"]
    return mirror


def test_a_failed_run_whose_row_is_damaged_is_told_by_its_code() -> None:
    with SqliteMirrorState(":memory:") as state:
        row = RunRow(run="1", started=1, ended=2, mode="", outcome="dns", counts="{}")
        state.add_run(row)
        failed = read_failed(state.last_run())

    assert failed is not None
    assert (failed.code, failed.message) == ("dns", "")


@pytest.mark.parametrize(
    "mistake",
    [
        ["http://127.0.0.1:9/other", "copy"],
        ["copy", "--include", "[a-z]"],
        ["copy", "-o", "map=no-such-rule"],
        ["copy", "--set", "no-such-set"],
        ["copy", "-o", "proxy=gopher://h/"],
    ],
    ids=["another Source", "a bad glob", "another mapping", "another set", "a bad proxy"],
)
def test_a_mistake_on_the_command_line_says_nothing_of_the_mirror(
    mistake: list[str], source: TinySource, said: Said
) -> None:
    assert run(["pull", source.url, "copy"]) == 0
    said.readouterr()
    run(["status", "copy", "--json"])
    before = told(said)

    assert run(["pull", *mistake]) == 2

    said.readouterr()
    assert run(["status", "copy", "--check"]) == 0
    said.readouterr()
    run(["status", "copy", "--json"])
    assert told(said)["last_run"] == before["last_run"]
