"""``publish --dumps``: what it packs, says and leads to; and links by rule in what is published."""

from pathlib import Path

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said

PUBLIC = Path("public")
DOCUMENTS = PUBLIC / "resourcesync"


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
