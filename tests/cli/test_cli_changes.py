"""``changes``: what it hands over, and when its cursor moves."""

import json
import subprocess
import sys
from pathlib import Path

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, Said, rows
from tests.support.commands.run import environment
from tests.support.servers.tiny_source import TinySource


def pull_news(source: TinySource, said: Said) -> None:
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
