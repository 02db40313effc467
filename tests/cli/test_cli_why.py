"""``why``: one resource explained, whatever became of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.command_line import FILES, LATER, Said, rows
from tests.support.tiny_source import TinySource

ONE = "/objects/0001.txt"


@pytest.fixture
def museum(source: TinySource, said: Said) -> str:
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()
    return "museum"


def verdict(said: Said) -> str:
    return str(rows(said)[-1]["verdict"])


def test_a_resource_that_is_well_is_said_to_be(source: TinySource, museum: str, said: Said) -> None:
    for name in (ONE, ONE[1:], f"{source.url}{ONE}"):
        assert run(["why", museum, name]) == 0

        here, listed, _, conclusion = said.readouterr().out.splitlines()
        assert here.startswith("Here      9 B  sha-256 ")
        assert here.endswith(", verified")
        assert listed.startswith("Source    listed  ")
        assert listed.endswith("/resourcelist.xml")
        assert conclusion == "Verdict   it is here as the Source lists it"


def test_a_list_and_its_content_that_disagree_are_told_with_what_was_tried(
    source: TinySource, museum: str, said: Said
) -> None:
    source.offer({**FILES, ONE: b"listed so\n"}, at=LATER)
    source.answers[ONE] = replace(source.answers[ONE], body=b"served so\n")
    assert run(["pull", museum]) == 3
    said.readouterr()

    assert run(["why", museum, ONE]) == 1

    lines = said.readouterr().out.splitlines()
    assert [line[:10].strip() for line in lines[:6]] == [
        "Here", "Source", "", "Tried", "Verdict", "Ask them",
    ]  # fmt: skip
    assert "the list says sha-256:" in lines[3]
    assert lines[4].endswith("list and its content disagree; kept our verified copy")
    assert lines[5].startswith("Ask them  resourcesync validate http://")
    assert lines[6] == "exit 1"


def test_a_lost_and_an_altered_file_are_told(museum: str, said: Said) -> None:
    Path(museum, ONE[1:]).write_text("altered")
    assert run(["why", museum, ONE, "--json"]) == 1
    assert verdict(said) == "altered"
    Path(museum, ONE[1:]).unlink()
    assert run(["why", museum, ONE]) == 1
    lines = said.readouterr().out.splitlines()
    assert lines[0].endswith("the file is missing")
    assert lines[-2] == "Next      resourcesync repair museum"


def test_an_update_that_is_not_here_yet_is_told_and_offline_is_not_known(
    source: TinySource, museum: str, said: Said
) -> None:
    source.offer({**FILES, ONE: b"newer\n", "/new.txt": b"new\n"}, at=LATER)

    assert run(["why", museum, ONE, "--json"]) == 1
    assert verdict(said) == "outdated"
    assert run(["why", museum, "/new.txt", "--json"]) == 1
    assert verdict(said) == "waiting"
    source.asked.clear()
    assert run(["why", museum, ONE, "--offline", "--json"]) == 0
    assert verdict(said) == "as_fetched"
    assert source.asked == []


def test_a_deletion_done_and_a_deletion_held_are_told(
    source: TinySource, museum: str, said: Said
) -> None:
    files = {name: body for name, body in FILES.items() if name != ONE}
    source.offer(files, at=LATER)
    assert run(["pull", museum, "--max-delete", "0"]) == 7
    said.readouterr()
    assert run(["why", museum, ONE, "--json"]) == 1
    assert verdict(said) == "held"
    assert run(["pull", museum, "--max-delete", "1"]) == 0
    said.readouterr()

    assert run(["why", museum, ONE]) == 0
    lines = said.readouterr().out.splitlines()
    assert lines[0].startswith("Here      nothing; in the trash since ")
    assert lines[1] == "Source    does not list it"
    assert lines[2] == "Verdict   the Source took it away, and so did we"


def test_what_the_filters_do_not_want_and_what_was_never_listed_are_told(
    source: TinySource, said: Said
) -> None:
    run(["pull", source.url, "museum", "--exclude", "objects/0001*"])
    said.readouterr()

    assert run(["why", "museum", ONE, "--json"]) == 0
    assert verdict(said) == "filtered"
    assert run(["why", "museum", "/never.txt", "--json"]) == 1
    assert verdict(said) == "unknown"
    assert run(["why", "museum", "/never.txt", "--offline", "--json"]) == 1
    assert verdict(said) == "unasked"


def test_a_foreign_entry_is_told_with_the_reason(source: TinySource, said: Said) -> None:
    run(["pull", source.url, "museum"])
    said.readouterr()

    assert run(["why", "museum", "https://elsewhere.example/a", "--json"]) == 1
    assert verdict(said) == "unknown"


def test_a_source_that_does_not_answer_leaves_what_is_remembered(
    source: TinySource, museum: str, said: Said
) -> None:
    source.answers.clear()

    assert run(["why", museum, ONE]) == 0

    lines = said.readouterr().out.splitlines()
    assert lines[1].startswith("Source    could not be asked: ")
    assert lines[-1].startswith("Verdict   it is here as it was fetched")


def test_why_needs_a_mirror_and_makes_none(said: Said) -> None:
    assert run(["why", "nothing", ONE]) == 2
    assert not Path("nothing").exists()
