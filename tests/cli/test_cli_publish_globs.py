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
    assert listed(museum).count("<loc>") == 2
    assert WARNING not in said.readouterr().err


def test_globs_that_new_ones_replace_are_named(museum: Path, said: Said) -> None:
    arguments = ["publish", "museum", "--url", "https://museum.example"]
    (museum / "lost").symlink_to("nowhere")
    assert run([*arguments, "--exclude", "/page.txt"]) == 0
    assert "leave it out: --exclude /page.txt --exclude /lost" in said.readouterr().err

    assert run(["publish", "museum", "--exclude", "/lost"]) == 0

    warning = said.readouterr().err
    assert "warning[globs-dropped]: no longer in force: --exclude /page.txt" in warning
    assert run(["publish", "museum"]) == 0
    assert "globs-dropped" not in said.readouterr().err


def test_a_new_glob_that_matches_no_file_is_reported_once(museum: Path, said: Said) -> None:
    arguments = ["publish", "museum", "--url", "https://museum.example"]
    assert run([*arguments, "--exclude", "Thums.db", "--exclude", "page.*"]) == 0
    assert f"{WARNING} 'Thums.db'" in said.readouterr().err

    assert run(["publish", "museum"]) == 0
    assert WARNING not in said.readouterr().err
    assert run(["publish", "museum", "-n"]) == 0
    assert f"{WARNING} 'Thums.db'" in said.readouterr().err
