"""``publish --sitemap``: at the top, where the protocol lets a sitemap list all of a site."""

from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, Said, rows
from tests.support.rules.judged import code, codes
from tests.support.servers.tiny_source import TinySource

URL = ("--url", "https://museum.example/")
NAME = "resourcesync-sitemap.xml"


def locations(path: Path) -> list[str]:
    return [line.partition("<")[0] for line in path.read_text().split("<loc>")[1:]]


def test_the_sitemap_and_its_parts_are_at_the_top_and_no_resources(tree: Path, said: Said) -> None:
    (tree / "sitemap.xml").write_text("<!-- the operator's own -->")
    assert (
        run(["publish", "public", *URL, "--sitemap", "-o", "robots=true", "-o", "max_entries=5"])
        == 0
    )

    assert f"Sitemap: https://museum.example/{NAME}\n" in said.readouterr().out
    parts = sorted(path.name for path in tree.glob("resourcesync-sitemap-*.xml"))
    assert len(parts) == 3
    assert locations(tree / NAME) == [f"https://museum.example/{name}" for name in parts]
    listed = [uri for name in parts for uri in locations(tree / name)]
    assert len(listed) == len(FILES) + 1
    assert "https://museum.example/sitemap.xml" in listed
    assert not [uri for uri in listed if "resourcesync" in uri]
    assert (tree / "robots.txt").read_text().endswith(f"https://museum.example/{NAME}\n")

    assert run(["publish", "public", "--json"]) == 0
    assert not [row for row in rows(said) if row["type"] == "written"]
    assert (tree / "sitemap.xml").read_text() == "<!-- the operator's own -->"


@pytest.mark.parametrize("name", [NAME, "resourcesync-sitemap-0001.xml"])
def test_a_file_of_somebody_else_is_not_replaced(name: str, tree: Path, said: Said) -> None:
    (tree / name).write_text("my own list")

    assert run(["publish", "public", *URL, "--sitemap"]) == 2

    assert f"{name} already exists, and was not written by resourcesync" in said.readouterr().err
    assert (tree / name).read_text() == "my own list"
    assert not (tree / "resourcesync").exists()
    assert run(["publish", "public", *URL]) == 0
    assert (tree / name).read_text() == "my own list"
    assert run(["publish", "public", "--sitemap"]) == 2
    assert (tree / name).read_text() == "my own list"


def test_the_protocol_is_kept_at_the_top_and_not_in_a_folder(
    tree: Path, source: TinySource, said: Said
) -> None:
    assert run(["publish", "public", "--url", source.url, "--sitemap"]) == 0
    text = (tree / NAME).read_bytes()
    source.put(f"/{NAME}", text, "application/xml")
    source.put("/resourcesync/sitemap.xml", text, "application/xml")
    said.readouterr()

    assert run(["validate", f"{source.url}/{NAME}", "--profile", "sitemap"]) == 0
    assert run(["validate", f"{source.url}/resourcesync/sitemap.xml", "--profile", "sitemap"]) == 1
    assert set(codes(said.readouterr().out)) == {code("SM01")}
