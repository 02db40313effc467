"""``publish``: policies, forced steps, ``robots.txt``, and a tree that is suddenly empty."""

import shutil
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows

URL = ("--url", "https://museum.example")


@pytest.mark.parametrize(
    "words",
    [
        ["--update", "--rebase"],
        ["--initialise", "--update"],
        ["-o", "dialect=0.9"],
        ["-o", "dialect=2.0"],
        ["-o", "rotate=soon"],
        ["--watch", "-n"],
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    tree: Path, words: list[str], said: Said
) -> None:
    assert run(["publish", "public", *URL, *words]) == 2

    assert not (tree / "resourcesync").exists()


def test_a_tree_that_is_suddenly_empty_is_not_published_unless_it_is_meant(
    tree: Path, said: Said
) -> None:
    run(["publish", "public", *URL])
    before = (tree / "resourcesync/changelist.xml").read_bytes()
    shutil.rmtree(tree / "objects")
    said.readouterr()

    assert run(["publish", "public"]) == 2
    captured = said.readouterr()
    assert "there are no files to publish, and 12 were published before" in captured.err
    assert "--allow-empty" in captured.err
    assert (tree / "resourcesync/changelist.xml").read_bytes() == before

    assert run(["publish", "public", "--allow-empty"]) == 0
    assert "12 deleted" in said.readouterr().out


def test_robots_txt_is_written_where_there_is_none_and_is_no_resource(
    tree: Path, said: Said
) -> None:
    assert run(["publish", "public", *URL, "-o", "robots=true", "--json"]) == 0

    robots = tree / "robots.txt"
    assert robots.read_text().splitlines()[-1] == (
        "Sitemap: https://museum.example/resourcesync/resourcelist.xml"
    )
    assert rows(said)[-1]["resources"] == 12
    assert run(["publish", "public", "--sitemap"]) == 0
    assert robots.read_text().endswith("/resourcesync-sitemap.xml\n")
    assert "robots" not in (tree / "resourcesync/resourcelist.xml").read_text()
    changed = robots.stat().st_mtime_ns
    run(["publish", "public"])
    assert robots.stat().st_mtime_ns == changed


def test_robots_txt_of_somebody_else_is_never_touched(tree: Path, said: Said) -> None:
    (tree / "robots.txt").write_text("User-agent: *\nDisallow: /\n")

    assert run(["publish", "public", *URL, "-o", "robots=true"]) == 2

    assert (tree / "robots.txt").read_text() == "User-agent: *\nDisallow: /\n"
    assert "robots.txt was not written by resourcesync" in said.readouterr().err
    assert run(["publish", "public", *URL]) == 0
