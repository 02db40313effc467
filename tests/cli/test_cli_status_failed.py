"""``status`` after a run that failed: when, why, with which exit code, and what to do now."""

from typing import Any

import pytest

from resourcesync.cli.main import run
from resourcesync.destination.status import read_failed
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import RunRow
from tests.support.commands.command_line import Said, rows
from tests.support.commands.settings_file import museum, put
from tests.support.servers.tiny_source import TinySource

MUSEUM = ["status", "museum"]
NEXT = "give the list's own address: resourcesync pull https://HOST/PATH/list.xml"


def told(said: Said) -> dict[str, Any]:
    (mirror,) = [row for row in rows(said) if row["type"] == "mirror"]
    return mirror


@pytest.fixture
def away(source: TinySource) -> TinySource:
    """Give a Source that offers nothing for now, and a mirror that is configured to follow it."""
    put(museum(source, "retries = 0"))
    source.answers.clear()
    return source


def test_a_first_pull_that_failed_is_told_of_with_the_reason_and_the_next_step(
    away: TinySource, said: Said
) -> None:
    assert run(["pull", "museum"]) == 5
    said.readouterr()

    assert run([*MUSEUM, "--check"]) == 1

    head, row, _, first, following = said.readouterr().out.splitlines()[:5]
    assert head.startswith("MIRROR")
    assert row.split()[:4] == ["museum", "failing", "-", "-"]
    assert "never" not in row
    assert first.startswith("museum  the last pull failed 20")
    assert f"no ResourceSync documents and no sitemap at {away.url}" in first
    assert first.endswith("  exit 5")
    assert following.strip() == f"next   {NEXT}"


def test_programs_are_told_why_the_last_run_failed(away: TinySource, said: Said) -> None:
    run(["pull", "museum"])
    said.readouterr()

    assert run([*MUSEUM, "--json"]) == 0
    mirror = told(said)
    assert (mirror["state"], mirror["source"]) == ("failing", away.url)
    assert mirror["failed_run"]["code"] == mirror["outcome"] == "source-not-found"
    assert mirror["failed_run"]["exit"] == 5
    assert mirror["failed_run"]["message"].startswith("no ResourceSync documents")
    assert mirror["failed_run"]["hint"] == NEXT
    assert mirror["last_run"] is not None
    assert run([*MUSEUM, "--check"]) == 1


@pytest.mark.parametrize("command", ["audit", "repair", "why", "changes"])
def test_no_other_command_takes_a_mirror_that_never_found_its_source_for_a_good_one(
    command: str, away: TinySource, said: Said
) -> None:
    run(["pull", "museum"])
    more = ["x"] if command == "why" else []
    said.readouterr()

    assert run([command, "museum", *more]) in ({0} if command == "changes" else {1, 2, 3, 5})

    captured = said.readouterr()
    assert "internal" not in captured.err
    assert "in sync" not in captured.out.lower().replace("not in sync", "")


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
