"""Globs of ``publish``: a leading slash is the folder, and one that matches nothing is reported."""

from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said

WARNING = "warning[unmatched-glob]: no file matches"


@pytest.fixture
def museum(here: Path) -> Path:
    for name in ("Thumbs.db", "page.txt", "Gemälde/a.txt", "Gemälde/Thumbs.db"):
        path = Path("museum", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return Path("museum")


def listed(museum: Path) -> str:
    return (museum / "resourcesync/resourcelist.xml").read_text()


def test_a_leading_slash_is_the_folder_itself(museum: Path, said: Said) -> None:
    arguments = ["publish", "museum", "--url", "https://museum.example"]

    assert run([*arguments, "--exclude", "/Thumbs.db"]) == 0

    assert listed(museum).count("Thumbs.db</loc>") == 1
    assert run(["publish", "museum", "--exclude", "/Gemälde/**"]) == 0
    assert "Gem" not in listed(museum)
    assert run(["publish", "museum", "--exclude", "", "--include", "/*.txt"]) == 0
    assert listed(museum).count("<loc>") == 1
    assert WARNING not in said.readouterr().err


def test_a_link_rule_that_gives_no_link_is_reported_when_it_is_new(
    museum: Path, said: Said
) -> None:
    rules = ["--link", "canonical:{dir}{stem}", "--link", "describedby:{path}.xml"]
    warning = "warning[unmatched-link]: 'describedby:{path}.xml' gives no link"

    assert run(["publish", "museum", "--url", "https://museum.example", *rules]) == 0

    assert said.readouterr().err.count("unmatched-link") == 1
    assert 'rel="canonical" href="https://museum.example/page"' in listed(museum)
    assert run(["publish", "museum", *rules, "--link", "describes:{stem}.rdf"]) == 0
    told = said.readouterr().err
    assert warning not in told
    assert "'describes:{stem}.rdf' gives no link" in told
