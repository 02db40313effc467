"""``publish NAME`` and ``publish --all``: trees of the configuration file."""

from pathlib import Path

import pytest

from resourcesync import Catalogue, Resource
from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows

TEXT = """
[source.museum]
path = "public"
url = "https://museum.example/"
exclude = ["*.key"]
rotate = "1d"
keep = "90d"
max_entries = 5
sitemap = true

[source.prints]
path = "prints"
url = "https://prints.example/"
change_lists = "per-run"
out = "lists"
"""


@pytest.fixture
def sources(tree: Path) -> Path:
    (tree / "secret.key").write_text("s3cret")
    prints = tree.parent / "prints"
    prints.mkdir()
    (prints / "a.txt").write_text("a")
    (tree.parent / "resourcesync.toml").write_text(TEXT)
    return tree.parent


def test_the_file_counts_in_each_run_and_the_command_line_stands_above_it(
    sources: Path, said: Said
) -> None:
    run(["publish", "museum"])
    file = sources / "resourcesync.toml"
    file.write_text(TEXT.replace("sitemap = true", "sitemap = false").replace("1d", "2d"))

    assert run(["publish", "museum", "-o", "max_entries=50", "--rebase"]) == 0
    assert "<urlset" in (sources / "public/resourcesync/resourcelist.xml").read_text()


def test_a_catalogue_is_a_source_of_the_file_too(
    sources: Path,
    said: Said,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    file = (sources / "resourcesync.toml").resolve()
    file.write_text(
        TEXT
        + """
[source.loans]
path = "catalogue:loans.db"
url = "https://loans.example/"
out = "loans"
rebase_every = "7d"
"""
    )
    Catalogue(sources / "loans.db").fill([Resource(uri="https://loans.example/a", length=3)])
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))

    assert run(["publish", "loans", "--config", str(file)]) == 0

    assert (
        "https://loans.example/a"
        in (file.parent / "loans/resourcesync/resourcelist.xml").read_text()
    )
    said.readouterr()
    assert run(["publish", "--all", "--config", str(file), "--json"]) == 0
    assert {row["name"] for row in rows(said)[-1]["sources"]} == {"museum", "prints", "loans"}
    assert run(["config", "check", "--config", str(file)]) == 0
