"""``pull``: what it says, how it ends, what it leaves."""

import os
from pathlib import Path

import pytest

from resourcesync.adapters.mirror.mirror_folder import MirrorFolder
from resourcesync.adapters.system import SystemClock
from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, Said
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import Answer, TinySource, dead_address
from tests.support.sources.several_sets import SETS
from tests.support.sources.several_sets import offer as offer_sets


def test_a_validator_that_is_not_ascii_is_not_sent_back(source: TinySource) -> None:
    for target, answer in source.answers.items():
        headers = {**answer.headers, "ETag": '"caf\xe9"'}
        source.answers[target] = Answer(body=answer.body, headers=headers)
    assert run(["pull", source.url, "museum"]) == 0
    source.asked.clear()

    assert run(["pull", "museum"]) == 0

    assert source.asked
    assert not [asked for asked in source.asked if "If-None-Match" in asked.headers]


def test_a_folder_that_was_there_stays_when_a_first_pull_fails() -> None:
    Path("museum").mkdir()
    Path("museum/mine.txt").write_text("mine")

    with dead_address() as address:
        assert run(["pull", address, "museum", "-o", "retries=0"]) == 4

    assert [path.name for path in Path("museum").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("options", [[], ["--all-sets"]])
def test_a_bare_host_and_its_root_are_one_source(
    options: list[str], source: TinySource, said: Said
) -> None:
    if options:
        offer_sets(source, SETS)
    run(["pull", source.url, "museum", *options])

    assert run(["pull", f"{source.url}/", "museum"]) == 0
    assert run(["pull", f"{source.url}/other", "museum"]) == 2
    assert "another Source" in said.readouterr().err


def test_a_mirror_that_is_held_says_by_whom(source: TinySource, said: Said) -> None:
    run(["pull", source.url, "museum"])
    said.readouterr()

    with MirrorFolder(Path("museum"), SystemClock()):
        assert run(["pull", "museum"]) == 9
        assert run(["status", "museum", "--json", "-q"]) == 0
        run(["status", "museum"])

    captured = said.readouterr()
    assert f"process {os.getpid()}" in captured.err
    assert "syncing" in captured.out


def test_a_file_that_is_in_the_way_is_kept_and_told_of(source: TinySource, said: Said) -> None:
    mine = Path("museum/objects/0003.txt")
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")

    assert run(["pull", source.url, "museum"]) == 0

    err = said.readouterr().err
    kept = [
        path for path in Path("museum/.resourcesync/quarantine").iterdir() if path.suffix != ".note"
    ]
    assert [path.read_text() for path in kept] == ["mine"]
    assert err == (
        "warning[set-aside]: objects/0003.txt had content that is not from the Source: it was moved"
        f" to .resourcesync/quarantine/{kept[0].name}\n"
    )


def test_a_source_is_not_mirrored_into_the_folder_that_it_publishes(
    tree: Path, source: TinySource, said: Said
) -> None:
    assert run(["publish", str(tree), "--url", source.url]) == 0
    before = files_of(tree)

    assert run(["pull", source.url, str(tree)]) == 2

    assert "it is the Source, and cannot be its mirror" in said.readouterr().err
    assert files_of(tree) == before
    assert not source.asked
    assert run(["pull", source.url, "copies"]) == 0
    assert run(["publish", "copies", "--url", "http://other.example/"]) == 0
    assert run(["pull", "copies"]) == 0  # a mirror that is published again goes on


def test_a_person_says_that_the_source_moved(said: Said) -> None:
    with TinySource() as first, TinySource() as second:
        first.offer(FILES)
        assert run(["pull", first.url, "museum"]) == 0
        second.offer(FILES, at=LATER)
        said.readouterr()

        assert run(["pull", second.url, "museum"]) == 2
        assert f"resourcesync pull museum --moved {second.url}" in said.readouterr().err
        assert run(["pull", "museum", "--moved", second.url, "-n"]) == 0
        assert run(["pull", "museum", "--moved", second.url]) == 0
        assert "nothing changed" in said.readouterr().out
        assert run(["pull", "museum"]) == 0
        assert run(["pull", first.url, "museum", "--moved", second.url]) == 2
        assert run(["pull", "--all", "--moved", second.url]) == 2

    assert not FILES.keys() & {asked.target for asked in second.asked}
