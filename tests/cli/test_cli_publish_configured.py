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


def test_a_source_is_published_by_its_name(sources: Path, said: Said) -> None:
    assert run(["publish", "museum"]) == 0

    listed = (sources / "public/resourcesync-sitemap.xml").read_text()
    assert "<sitemapindex" in listed  # 12 files, 5 in each
    assert not (sources / "museum").exists()
    assert "secret" not in "".join(
        path.read_text() for path in (sources / "public/resourcesync").iterdir()
    )


def test_a_name_that_is_also_another_folder_is_refused(sources: Path, said: Said) -> None:
    (sources / "museum").mkdir()
    (sources / "museum/a.txt").write_text("a")

    assert run(["publish", "museum"]) == 2

    err = said.readouterr().err
    assert "museum is a folder here, and a source of the configuration file" in err
    assert "resourcesync publish ./museum" in err
    assert run(["publish", "./museum", "--url", "https://other.example/"]) == 0
    assert run(["publish", "--all"]) == 0


def test_the_file_counts_in_each_run_and_the_command_line_stands_above_it(
    sources: Path, said: Said
) -> None:
    run(["publish", "museum"])
    file = sources / "resourcesync.toml"
    file.write_text(TEXT.replace("sitemap = true", "sitemap = false").replace("1d", "2d"))

    assert run(["publish", "museum", "-o", "max_entries=50", "--rebase"]) == 0
    assert "<urlset" in (sources / "public/resourcesync/resourcelist.xml").read_text()


def test_all_sources_are_published_and_one_that_fails_keeps_no_other_back(
    sources: Path, said: Said
) -> None:
    (sources / "public").rename(sources / "gone")

    assert run(["publish", "--all", "--json"]) == 2

    end = rows(said)[-1]
    assert [(row["name"], row["exit"]) for row in end["sources"]] == [("museum", 2), ("prints", 0)]
    assert (sources / "lists/.well-known/resourcesync").exists()
    (sources / "gone").rename(sources / "public")
    assert run(["publish", "--all"]) == 0
    assert "2 of 2 sources OK" in said.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('path = "public"\n', "", "`path` in [source.museum] is missing"),
        ("rotate", "rotat", "unknown key `rotat` in [source.museum]"),
        ('"1d"', '"soon"', "`rotate` in [source.museum]"),
        ('path = "prints"', 'path = "catalogue:"', "`path` in [source.prints]"),
        ('path = "prints"', 'path = "printss"', "`path` in [source.prints] is no folder"),
        ("https://museum.example/", "127.0.0.1:8391", "did you mean http://127.0.0.1:8391?"),
    ],
)
def test_a_mistake_is_told_with_its_place(
    sources: Path, old: str, new: str, complaint: str, said: Said
) -> None:
    (sources / "resourcesync.toml").write_text(TEXT.replace(old, new))

    assert run(["config", "check"]) == 2

    captured = said.readouterr()
    assert complaint in captured.out + captured.err
    assert run(["publish", "--all"]) == 2


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
