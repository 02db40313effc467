"""``changes``: what it hands over, and when its cursor moves."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, MIRRORED, Said, rows
from tests.support.commands.run import environment
from tests.support.servers.tiny_source import TinySource

PATHS = sorted(MIRRORED)


@pytest.fixture
def museum(source: TinySource, said: Said) -> str:
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()
    return "museum"


def pull_news(source: TinySource, said: Said) -> None:
    """One resource is new, one is updated, one is gone."""
    files = {**FILES, "/objects/0001.txt": b"another\n", "/objects/0099.txt": b"new\n"}
    del files["/objects/0002.txt"]
    source.offer(files, at=LATER)
    assert run(["pull", "museum"]) == 0
    said.readouterr()


def seen(said: Said) -> list[tuple[str, str]]:
    return sorted((row["change"], row["path"]) for row in rows(said) if row["type"] == "change")


NEWS = [
    ("created", "objects/0099.txt"),
    ("deleted", "objects/0002.txt"),
    ("updated", "objects/0001.txt"),
]


def test_a_new_consumer_is_told_of_all_that_is_here_and_then_of_changes_only(
    source: TinySource, museum: str, said: Said
) -> None:
    command = ["changes", museum, "--consumer", "rag", "--ack", "--json"]

    assert run(command) == 0
    assert seen(said) == [("created", path) for path in PATHS]
    assert run(command) == 0
    assert seen(said) == []
    pull_news(source, said)
    assert run(command) == 0
    assert seen(said) == NEWS
    assert run(command) == 0
    assert seen(said) == []


def test_without_ack_a_consumer_sees_the_same_again(museum: str, said: Said) -> None:
    for _ in range(2):
        assert run(["changes", museum, "--consumer", "rag", "--json"]) == 0
        assert len(seen(said)) == len(FILES)


def test_changes_since_a_number_and_since_a_time(
    source: TinySource, museum: str, said: Said
) -> None:
    pull_news(source, said)

    assert run(["changes", museum, "--since", str(len(FILES)), "--json"]) == 0
    assert seen(said) == NEWS
    assert run(["changes", museum, "--since", "-1h", "--json"]) == 0
    assert len(seen(said)) == len(FILES) + 3
    assert run(["changes", museum, "--since", "2999-01-01", "--json"]) == 0
    assert seen(said) == []


def test_a_cursor_that_the_log_does_not_reach_is_an_error_and_restart_helps(
    source: TinySource, museum: str, said: Said
) -> None:
    command = ["changes", museum, "--consumer", "rag", "--ack"]
    run(command)
    Path(museum, ".resourcesync/consumers/rag.json").write_text('{"acknowledged": 9000, "time": 1}')
    said.readouterr()

    assert run(command) == 7
    assert "error[changes-lost]" in said.readouterr().err
    assert run([*command, "--restart", "--json"]) == 0
    assert len(seen(said)) == len(FILES)
    assert run([*command, "--json"]) == 0
    assert seen(said) == []


def test_a_damaged_cursor_is_an_error(museum: str, said: Said) -> None:
    run(["changes", museum, "--consumer", "rag", "--ack"])
    Path(museum, ".resourcesync/consumers/rag.json").write_text("{")

    assert run(["changes", museum, "--consumer", "rag"]) == 8
    assert "is damaged" in said.readouterr().err


def test_text_csv_and_paths_say_the_same(source: TinySource, museum: str, said: Said) -> None:
    pull_news(source, said)
    since = ["changes", museum, "--since", str(len(FILES))]

    assert run(since) == 0
    lines = said.readouterr().out.splitlines()
    assert run([*since, "--csv"]) == 0
    table = list(csv.DictReader(said.readouterr().out.splitlines()))
    assert run([*since, "--paths0"]) == 0
    paths = said.readouterr().out.split("\0")

    assert sorted(line[:19] for line in lines) == sorted(
        ["+ /objects/0099.txt", "* /objects/0001.txt", "- /objects/0002.txt"]
    )
    assert sorted((row["change"], row["path"]) for row in table) == NEWS
    assert sorted(paths) == ["", *sorted(path for kind, path in NEWS if kind != "deleted")]


@pytest.mark.parametrize(
    "more",
    [
        ["--ack"],
        ["--restart"],
        ["--consumer", "rag", "--since", "3"],
        ["--consumer", "rag", "--ack", "-q"],
        ["--csv", "--paths0"],
        ["--csv", "--json"],
        ["--since", "some day"],
        ["--consumer", "../rag"],
    ],
)
def test_what_makes_no_sense_is_said(museum: str, said: Said, more: list[str]) -> None:
    assert run(["changes", museum, *more]) == 2
    assert not Path(museum, ".resourcesync/consumers").exists()


def test_paths_are_those_that_are_here_and_deleted_ones_are_asked_for(
    source: TinySource, museum: str, said: Said
) -> None:
    pull_news(source, said)
    since = ["changes", museum, "--since", str(len(FILES))]

    assert run([*since, "--paths0"]) == 0
    assert sorted(said.readouterr().out.split("\0")) == [
        "",
        "objects/0001.txt",
        "objects/0099.txt",
    ]
    assert run([*since, "--deleted-paths0"]) == 0
    assert said.readouterr().out == "objects/0002.txt\0"


def test_a_cursor_beyond_the_end_is_called_that_and_the_way_out_works(
    museum: str, said: Said
) -> None:
    assert run(["changes", museum, "--since", "999"]) == 7

    told = said.readouterr().err
    assert "cursor 999 is beyond the end of the mirror's change log" in told
    assert f"start over: resourcesync changes {museum} --since start" in told
    assert run(["changes", museum, "--since", "start"]) == 0


def test_a_program_that_stores_its_position_may_stop_after_any_line(
    source: TinySource, museum: str, said: Said
) -> None:
    assert run(["changes", museum, "--since", "start", "--json"]) == 0
    whole = rows(said)
    for number, row in enumerate(whole[1:-1], 1):
        assert run(["changes", museum, "--since", row["position"], "--json"]) == 0
        rest = rows(said)
        assert [line["uri"] for line in rest[1:-1]] == [
            line["uri"] for line in whole[number + 1 : -1]
        ]
        assert rest[-1]["position"] == whole[-1]["position"]
    pull_news(source, said)

    assert run(["changes", museum, "--since", whole[-1]["position"], "--json"]) == 0
    assert seen(said) == NEWS
    assert run(["changes", museum, "--since", whole[-2]["position"], "--json"]) == 0
    assert set(seen(said)) >= set(NEWS)


def test_a_position_of_another_mirror_is_lost_and_start_helps(
    source: TinySource, museum: str, said: Said
) -> None:
    run(["changes", museum, "--since", "start", "--json"])
    position = rows(said)[-1]["position"]
    run(["changes", museum, "--consumer", "rag", "--ack"])
    consumers = Path(museum, ".resourcesync/consumers").rename("consumers")
    shutil.rmtree(museum)
    assert run(["pull", source.url, museum]) == 0
    consumers.rename(Path(museum, ".resourcesync/consumers"))
    said.readouterr()

    for last in (["--since", position], ["--consumer", "rag"]):
        assert run(["changes", museum, *last]) == 7
        assert "error[changes-lost]" in said.readouterr().err
    assert run(["changes", museum, "--since", "start", "--json"]) == 0
    assert len(seen(said)) == len(FILES)


@pytest.mark.parametrize("text", ["[]", '{"acknowledged": 1}', '{"acknowledged": 1, "time": "x"}'])
def test_a_position_that_is_none_is_an_error(museum: str, said: Said, text: str) -> None:
    run(["changes", museum, "--consumer", "rag", "--ack"])
    Path(museum, ".resourcesync/consumers/rag.json").write_text(text)

    assert run(["changes", museum, "--consumer", "rag"]) == 8
    assert "is damaged" in said.readouterr().err


def test_a_program_that_follows_gets_later_changes_also_of_a_mirror_that_was_made_again(
    source: TinySource, museum: str, said: Said
) -> None:
    words = ["changes", museum, "--since", "start", "--follow", "--interval", "0.1s", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "resourcesync", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(Path.cwd()),
    ) as process:
        assert process.stdout is not None
        first = [process.stdout.readline() for _ in range(1 + len(FILES))]
        pull_news(source, said)
        later = [json.loads(process.stdout.readline()) for _ in NEWS]
        assert run(["pull", source.url, "again"]) == 0
        Path(museum).rename("former")
        Path("again").rename(museum)
        lost, end = [json.loads(line) for line in process.stdout]

    assert [json.loads(line)["type"] for line in first] == ["run.start"] + ["change"] * len(FILES)
    assert sorted((row["change"], row["path"]) for row in later) == NEWS
    assert (lost["type"], end["type"]) == ("error", "run.end")
    # Between the two renames there is no mirror.
    assert (lost["code"], process.returncode) in {("changes-lost", 7), ("not-a-mirror", 2)}
