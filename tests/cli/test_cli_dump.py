"""``publish --dumps``: what it packs, says and leads to; and links by rule in what is published."""

from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows

PUBLIC = Path("public")
DOCUMENTS = PUBLIC / "resourcesync"


def archives() -> list[Path]:
    return sorted(DOCUMENTS.glob("*.zip"))


def test_all_dumps_have_the_files_and_then_the_changes(tree: Path, said: Said) -> None:
    assert run(["publish", "public", "--url", "https://museum.example", "--dumps", "all"]) == 0
    lines = said.readouterr().out.splitlines()
    assert lines[0].startswith("Scanned   12 files")
    assert lines[-1].startswith("Packed    12 entries in 1 package, ")
    packages = {path.name: path.read_bytes() for path in archives()}
    (tree / "objects/0000.txt").write_text("altered\n")

    assert run(["publish", "public", "--dumps", "changes", "--json"]) == 0

    end = rows(said)[-1]
    assert end["packed_entries"] == 1
    assert {name: (DOCUMENTS / name).read_bytes() for name in packages} == packages
    assert (DOCUMENTS / "changedump-000001.zip").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["public", "--watch"], "--watch"),
        (["public", "-n"], "--dry-run"),
        (["ndjson:-", "--out", "documents"], "only for folders"),
        (["s3://bucket/objects", "--out", "documents"], "only for folders"),
    ],
)
def test_dumps_are_refused_where_they_cannot_be_made(
    words: list[str], reason: str, tree: Path, said: Said
) -> None:
    assert run(["publish", *words, "--url", "https://museum.example", "--dumps", "all"]) == 2

    assert reason in said.readouterr().err
    assert not DOCUMENTS.exists()


def test_dumping_again_packs_only_what_changed(tree: Path, said: Said) -> None:
    run(
        [
            "publish",
            "public",
            "--dumps",
            "resources",
            "--url",
            "https://museum.example",
            "-o",
            "max_package=40",
        ]
    )
    before = {path: path.read_bytes() for path in archives()}
    said.readouterr()

    assert run(["publish", "public", "--dumps", "resources"]) == 0
    unchanged = said.readouterr().out
    (tree / "objects/0000.txt").write_text("altered\n")
    assert run(["publish", "public", "--dumps", "all"]) == 0
    changed = said.readouterr().out.splitlines()

    assert unchanged == "Nothing changed\nPacked    nothing new; 3 packages unchanged\n"
    assert changed[-1].startswith("Packed    ")
    assert changed[-1].endswith("2 packages unchanged")
    assert {path: path.read_bytes() for path in before} == before
    assert (DOCUMENTS / "changedump-000001.zip").exists()


def test_a_dump_of_somebody_else_is_never_replaced(tree: Path, said: Said) -> None:
    run(["publish", "public", "--url", "https://museum.example"])
    foreign = DOCUMENTS / "resourcedump.xml"
    foreign.write_text("<urlset/>")
    said.readouterr()

    assert run(["publish", "public", "--dumps", "resources"]) == 2

    assert "was not written by resourcesync" in said.readouterr().err
    assert foreign.read_text() == "<urlset/>"
    assert archives() == []


# --- links by rule -------------------------------------------------------------------------------


def test_links_by_rule_are_published_and_remembered(tree: Path, said: Said) -> None:
    (tree / "objects/0002.txt.xml").write_text("<about/>")
    rule = "describedby:{path}.xml only=*.txt type=application/xml"

    assert run(["publish", "public", "--url", "https://museum.example", "--link", rule]) == 0
    first = (DOCUMENTS / "resourcelist.xml").read_text()
    (tree / "objects/0002.txt").write_text("altered\n")
    assert run(["publish", "public"]) == 0
    changes = (DOCUMENTS / "changelist.xml").read_text()
    assert run(["publish", "public", "--link", ""]) == 0
    without = (DOCUMENTS / "resourcelist.xml").read_text()

    link = (
        '<rs:ln rel="describedby" href="https://museum.example/objects/0002.txt.xml"'
        ' type="application/xml"/>'
    )
    assert first.count("describedby") == 1
    assert link in first
    assert link in changes
    assert "describedby" not in without
    said.readouterr()


@pytest.mark.usefixtures("tree")
def test_a_rule_that_is_none_is_refused_before_anything_is_written(said: Said) -> None:
    assert run(["publish", "public", "--url", "https://museum.example", "--link", "nonsense"]) == 2

    assert "REL:TEMPLATE" in said.readouterr().err
    assert not DOCUMENTS.exists()


@pytest.mark.parametrize("version", ["1.0", "0.9", "0.6"])
def test_a_source_of_an_older_version_is_as_that_version_says(version: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.txt").write_text("a")
    way = ["--change-lists", "per-run", "--dumps", "all", "-q"]
    first = ["--url", "https://museum.example", "-o", f"dialect={version}"]
    assert run(["publish", str(tree), *first, *way]) == 0
    (tree / "b.txt").write_text("b")
    (tree / "a.txt").unlink()
    assert run(["publish", str(tree), "--dumps", "all", "-q"]) == 0

    assert run(["validate", str(tree), "--profile", f"rs-{version}", "--fail-on", "warning"]) == 0
    assert run(["validate", str(tree), "-q"]) == (0 if version == "1.0" else 1)
