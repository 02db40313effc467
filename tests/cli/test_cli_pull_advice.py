"""``pull``: what it says before and after a run that is not all that it seems."""

from pathlib import Path

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, Said
from tests.support.servers.tiny_source import Answer, TinySource


def test_a_dry_run_says_how_many_files_of_others_are_in_the_way(
    source: TinySource, said: Said
) -> None:
    Path("museum/objects").mkdir(parents=True)
    for name in ("objects/0001.txt", "objects/0002.txt", "mine.txt"):
        Path("museum", name).write_text("mine")

    assert run(["pull", source.url, "museum", "-n"]) == 0

    captured = said.readouterr()
    assert "warning[set-aside]: 2 files are at the paths of resources: " in captured.err
    assert "would create 12, " in captured.out
    assert Path("museum/objects/0001.txt").read_text() == "mine"


def test_a_dry_run_tells_apart_what_is_known_to_be_absent(source: TinySource, said: Said) -> None:
    del source.answers["/objects/0004.txt"]
    assert run(["pull", source.url, "museum", "--accept-missing"]) == 0
    source.offer({**FILES, "/new.txt": b"new"}, at=LATER)
    del source.answers["/objects/0004.txt"]
    said.readouterr()

    assert run(["pull", "museum", "-n"]) == 0

    *_, counts, absent = said.readouterr().out.splitlines()
    assert "would create 2, update 0, delete 0" in counts
    assert absent == "          1 of these was not delivered before: a pull requests it again"


def test_what_the_server_refuses_is_not_advised_to_run_again(
    source: TinySource, said: Said
) -> None:
    source.answers["/objects/0004.txt"] = Answer(status=403)

    assert run(["pull", source.url, "museum"]) == 3

    last, *steps = said.readouterr().out.splitlines()[-3:]
    assert last.startswith("Not in sync   11 of 12 (11 created, 1 failed)")
    assert steps == [
        "  next   1 listed resource refused by the server (401, 403): give its credentials",
        "         (--auth NAME), leave it out (--exclude GLOB), or ask the Source",
    ]
