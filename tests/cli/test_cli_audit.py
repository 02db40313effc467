"""``audit``: what it finds and where it says so."""

import re
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows, spoil
from tests.support.servers.tiny_source import TinySource


def test_findings_go_to_files(source: TinySource, said: Said) -> None:
    run(["pull", source.url, "museum"])
    spoil("museum")
    lists = ["--combined", "all", "--missing", "m", "--different", "d", "--extra", "e"]

    assert run(["audit", "museum", *lists]) == 1

    assert sorted(Path("all").read_text().splitlines()) == [
        "* objects/0005.txt",
        "+ objects/0003.txt",
        "- mine.txt",
    ]
    assert Path("m").read_text() == "objects/0003.txt\n"
    assert Path("d").read_text() == "objects/0005.txt\n"
    assert Path("e").read_text() == "mine.txt\n"


def test_a_file_of_findings_that_cannot_be_written_is_an_error(
    source: TinySource, said: Said
) -> None:
    run(["pull", source.url, "museum"])

    assert run(["audit", "museum", "--missing", "no/such/folder"]) == 8
    assert "cannot write no/such/folder" in said.readouterr().err


def test_several_mirrors_are_audited_and_the_worst_code_wins(
    source: TinySource, said: Said
) -> None:
    for name in ("good", "bad"):
        run(["pull", source.url, name])
    spoil("bad")
    said.readouterr()

    assert run(["audit", "good", "bad"]) == 1
    text = said.readouterr().out
    assert run(["audit", "bad", "nothing", "good", "--json"]) == 2
    found = rows(said)

    assert text.index("Mirror    good") < text.index("Mirror    bad") < text.index("* /")
    assert re.match(r"Mirror    good\nReference .*\nMirror    bad\nReference ", text)
    assert [mirror["exit"] for mirror in found[-1]["mirrors"]] == [1, 2, 0]
    assert {row["mirror"] for row in found if row["type"] == "finding"} == {"bad"}

    assert run(["audit", "good", "bad", "-q"]) == 1
    assert "good" not in said.readouterr().err


def test_an_audit_asks_nobody_when_told_so(source: TinySource, said: Said) -> None:
    run(["pull", source.url, "museum"])
    source.asked.clear()

    assert run(["audit", "museum", "--offline", "--method", "stat"]) == 0

    assert source.asked == []


@pytest.mark.parametrize("command", ["audit", "status", "repair"])
def test_a_published_folder_is_not_made_a_mirror(command: str, tree: Path, said: Said) -> None:
    assert run(["publish", "public", "--url", "https://museum.example"]) == 0

    assert run([command, "public"]) == 2

    err = said.readouterr().err
    assert "public is a published folder, not a mirror" in err
    assert "resourcesync pull" not in err
    assert "resourcesync validate public" in err
    assert not Path("nothing").exists()
