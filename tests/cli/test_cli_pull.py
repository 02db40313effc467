"""``pull``: what it says, how it ends, what it leaves."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from resourcesync.adapters.mirror.mirror_folder import MirrorFolder
from resourcesync.adapters.system import SystemClock
from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, MIRRORED, Said, rows
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


def test_a_bad_day_is_told_resource_by_resource(source: TinySource, said: Said) -> None:
    run(["pull", source.url, "museum"])
    source.offer({**FILES, "/objects/0004.txt": b"new four\n", "/new.txt": b"new"}, at=LATER)
    source.put("/objects/0004.txt", b"bad four\n")
    del source.answers["/new.txt"]
    said.readouterr()

    assert run(["pull", "museum", "-o", "retries=0"]) == 3

    lines = said.readouterr().out.splitlines()
    failures = sorted(line for line in lines if line.startswith("! "))
    assert [line.split()[1] for line in failures] == ["/new.txt", "/objects/0004.txt"]
    assert "old copy kept" in failures[1]
    assert lines[-4:] == [
        "Not in sync   11 of 13 (2 failed)  exit 3",
        "  next   1 listed resource not at the Source (404): ask it to correct its list,",
        "         or accept that: resourcesync pull museum --accept-missing",
        "  next   run it again: resourcesync pull museum",
    ]


def test_what_is_listed_and_gone_is_accepted_where_a_person_says_so(
    source: TinySource, said: Said
) -> None:
    del source.answers["/objects/0004.txt"]
    assert run(["pull", source.url, "museum"]) == 3
    assert "run it again" not in said.readouterr().out.partition("--accept-missing")[2]

    assert run(["pull", "museum", "--accept-missing"]) == 0

    lines = said.readouterr().out.splitlines()
    assert lines[0].startswith("~ /objects/0004.txt   absent: ")
    assert lines[-1].strip().startswith("1 listed but absent at the Source (404)")
    assert run(["pull", "museum"]) == 0
    assert run(["status", "museum", "--check"]) == 0
    assert "1 listed but absent at the Source (404)" in said.readouterr().out


def test_filters_choose_and_are_remembered(source: TinySource) -> None:
    run(["pull", source.url, "museum", "--include", "/objects/000*"])
    source.offer({**FILES, "/objects/0099.txt": b"99\n"}, at=LATER)

    assert run(["pull", "museum"]) == 0

    assert len(files_of(Path("museum"))) == 10


def test_a_dry_run_tells_the_plan_and_leaves_no_folder(source: TinySource, said: Said) -> None:
    assert run(["pull", source.url, "museum", "-n"]) == 0

    closing = said.readouterr().out.splitlines()[-1]
    assert closing.startswith(
        "Dry run   would create 12, update 0, delete 0, fetch 110 B; nothing was changed"
    )
    assert not Path("museum").exists()


def test_a_dry_run_names_each_action_that_the_pull_then_takes(
    source: TinySource, said: Said
) -> None:
    assert run(["pull", source.url, "museum", "-n", "-i"]) == 0
    first = said.readouterr().out.splitlines()
    assert [line for line in first if line.startswith("+ ")] == [
        f"+ /{path}   would create" for path in sorted(MIRRORED)
    ]
    run(["pull", source.url, "museum"])
    files = {**FILES, "/objects/0001.txt": b"another\n", "/objects/0099.txt": b"new\n"}
    del files["/objects/0002.txt"]
    source.offer(files, at=LATER)
    said.readouterr()

    assert run(["pull", "museum", "-n", "--json"]) == 0
    would = _actions(said)
    assert run(["pull", "museum", "--json"]) == 0

    assert would == _actions(said)
    assert set(would.values()) == {"create", "update", "delete"}


def _actions(said: Said) -> dict[str, str]:
    return {row["path"]: row["action"] for row in rows(said) if row["type"] == "item"}


def test_a_first_pull_that_fails_leaves_no_folder(said: Said) -> None:
    with dead_address() as address:
        assert run(["pull", address, "museum", "-o", "retries=0"]) == 4

    assert not Path("museum").exists()
    assert said.readouterr().err.endswith("exit 4\n")


def test_a_folder_that_was_there_stays_when_a_first_pull_fails() -> None:
    Path("museum").mkdir()
    Path("museum/mine.txt").write_text("mine")

    with dead_address() as address:
        assert run(["pull", address, "museum", "-o", "retries=0"]) == 4

    assert [path.name for path in Path("museum").iterdir()] == ["mine.txt"]


def test_a_folder_that_is_no_mirror_cannot_be_updated(said: Said) -> None:
    Path("museum").mkdir()

    assert run(["pull", "museum"]) == 2

    assert said.readouterr().err.splitlines()[0] == "error[not-a-mirror]: museum is not a mirror"
    assert list(Path("museum").iterdir()) == []


@pytest.mark.parametrize("address", ["ftp://h/", "http://user:pw@h/", "http://h/../x"])
def test_an_address_that_cannot_be_a_source_is_a_mistake(address: str, said: Said) -> None:
    assert run(["pull", address, "museum"]) == 2

    assert "error[config]" in said.readouterr().err
    assert not Path("museum").exists()


def test_a_mirror_follows_one_source(source: TinySource, said: Said) -> None:
    run(["pull", source.url, "museum"])

    assert run(["pull", "http://other.example/", "museum"]) == 2
    assert "another Source" in said.readouterr().err
    assert files_of(Path("museum")) == MIRRORED


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
    assert f"pid {os.getpid()}" in captured.err
    assert "syncing" in captured.out


def test_too_many_deletions_are_held_and_the_way_out_is_named(said: Said) -> None:
    many = {f"/{number:04d}": b"x" for number in range(60)}
    with TinySource() as source:
        source.offer(many)
        run(["pull", source.url, "museum"])
        source.offer({"/0000": b"x"}, at=LATER)
        said.readouterr()

        assert run(["pull", "museum", "--dry-run"]) == 7
        foreseen = said.readouterr().out.splitlines()
        assert run(["pull", "museum"]) == 7
        first = said.readouterr().out.splitlines()
        held = len(files_of(Path("museum")))
        assert run(["status", "museum", "--check"]) == 1
        told = said.readouterr().out
        assert run(["audit", "museum"]) == 1
        *_, advice, _ = said.readouterr().out.splitlines()
        assert run(advice.split("resourcesync ")[1].split()) == 0

    assert held == 60
    assert "would create 0, update 0, fetch 0 B; nothing was changed" in foreseen[-3]
    assert foreseen[-3].endswith("exit 7")
    assert (
        foreseen[-2].strip() == "would hold back 59 deletions (98.3 % of what was here; limit 10 %)"
    )
    assert foreseen[-1] == first[-1]
    assert first[0] == "Stopped   1 of 60 (59 held)  exit 7"
    assert first[-1].endswith("resourcesync pull museum --max-delete 59")
    assert "stopped" in told
    assert "would delete 59 of 60" in told
    release = "if the Source really shrank: resourcesync pull museum --max-delete 59"
    assert advice == f"  next        {release}"
    assert len(files_of(Path("museum"))) == 1


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


def test_what_is_held_goes_a_day_later_if_the_server_says_that_it_is_gone(said: Said) -> None:
    many = {f"/{number:04d}.txt": b"x" * 2_000 for number in range(60)}
    left = dict(list(many.items())[:20])
    with TinySource() as source:
        source.offer(many)
        run(["pull", source.url, "museum"])
        source.offer(left, at=LATER)
        for target in list(many)[21:]:  # the list is wrong of one: it is still there
            del source.answers[target]
        assert run(["pull", "museum"]) == 7
        with closing(sqlite3.connect("museum/.resourcesync/state.db")) as state, state:
            state.execute("UPDATE pending SET first = first - 86400000000")
        source.asked.clear()
        said.readouterr()

        assert run(["pull", "museum"]) == 7
        out = said.readouterr().out
        assert run(["pull", "museum"]) == 7  # though one of 60 is less than 10 %
        kept = files_of(Path("museum"))
        command = said.readouterr().out.splitlines()[-1].partition("resourcesync ")[2]
        assert run(command.split()) == 0
        targets = [asked.target for asked in source.asked if asked.target in many]

    assert out.splitlines()[0].endswith("(39 deleted, 1 held)  exit 7")
    assert (len(kept), len(files_of(Path("museum")))) == (21, 20)
    assert len(targets) == 41 + 2  # each once, and one that is listed; then both again
