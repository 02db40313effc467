"""``explore``: the tree of a Source, its counts, its failures."""

from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said
from tests.support.servers.tiny_source import TinySource

INDEX = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:rs="http://www.openarchives.org/rs/terms/">\n{}\n</sitemapindex>\n'
)
CHANGES = [
    ("a", "created", "2026-01-01T08:00:00Z"),
    ("a", "updated", "2026-01-01T09:00:00Z"),
    ("b", "deleted", "2026-01-01T11:04:09Z"),
]


def offer_all(source: TinySource) -> None:
    """Add a Change List to what the Source lists."""
    pointers = [source.pointer(f"/{name}.xml", name) for name in ("resourcelist", "changelist")]
    source.put_document("/capabilitylist.xml", '<rs:md capability="capabilitylist"/>', pointers)
    source.put_document(
        "/changelist.xml",
        '<rs:md capability="changelist" from="2026-01-01T00:00:00Z"/>',
        [
            f'<url><loc>{source.url}/{name}</loc><rs:md change="{change}" datetime="{at}"/></url>'
            for name, change, at in CHANGES
        ],
    )


def put_index(source: TinySource, parts: list[str]) -> None:
    entries = [f"<sitemap><loc>{source.url}{part}</loc></sitemap>" for part in parts]
    head = f'<rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>{"".join(entries)}'
    source.put("/resourcelist.xml", INDEX.format(head).encode(), "application/xml")


def test_no_resource_is_fetched(source: TinySource) -> None:
    assert run(["explore", source.url]) == 0

    assert {asked.target for asked in source.asked} == {
        "/robots.txt",
        "/.well-known/resourcesync",
        "/capabilitylist.xml",
        "/resourcelist.xml",
    }


def test_a_document_that_fails_is_a_line_and_the_rest_is_shown(
    source: TinySource, said: Said
) -> None:
    offer_all(source)
    del source.answers["/resourcelist.xml"]

    assert run(["explore", source.url]) == 3

    lines = said.readouterr().out.splitlines()
    assert lines[2].startswith("   ├─ /resourcelist.xml")
    assert "  ! missing: " in lines[2]
    assert lines[4] == "      └─ 3 changes  created 1, updated 1, deleted 1  newest 11:04:09Z"
    assert "3 documents, 3 entries, 1 failed" in lines[-2]
    assert lines[-1] == "exit 3"


def test_the_depth_bounds_what_is_read(source: TinySource, said: Said) -> None:
    assert run(["explore", source.url, "--depth", "2"]) == 0

    assert len(said.readouterr().out.splitlines()) == 3
    assert "/resourcelist.xml" not in {asked.target for asked in source.asked}


def test_a_document_that_lists_itself_is_shown_once(source: TinySource, said: Said) -> None:
    put_index(source, ["/resourcelist.xml"])

    assert run(["explore", f"{source.url}/resourcelist.xml"]) == 0

    lines = said.readouterr().out.splitlines()
    assert lines[1].endswith("  shown above")
    assert len(lines) == 3


def test_a_published_tree_is_explored_where_it_lies(tree: Path, said: Said) -> None:
    assert run(["publish", str(tree), "--url", "https://museum.example", "-q"]) == 0
    said.readouterr()

    assert run(["explore", str(tree)]) == 0

    lines = said.readouterr().out.splitlines()
    assert lines[0].startswith("public/.well-known/resourcesync  ")
    assert lines[1].startswith("└─ https://museum.example/resourcesync/capabilitylist.xml  ")
    assert lines[2].startswith("   ├─ /resourcesync/resourcelist.xml  ")
    assert lines[3].startswith("   │  └─ 12 resources  110 B  text/plain 12  sha-256 12/12")


def test_a_file_leads_to_nothing_outside_of_its_folder(here: Path, said: Said) -> None:
    outside = here / "secret.xml"
    outside.write_text('<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>')
    (here / "kept").mkdir()
    for name in ("../secret.xml", str(outside), "https://h.example/kept/../secret.xml"):
        entries = f"<sitemap><loc>{name}</loc></sitemap>"
        (here / "kept" / "index.xml").write_text(INDEX.format(entries))

        assert run(["explore", "kept/index.xml"]) == 3
        assert "! missing: " in said.readouterr().out


@pytest.mark.parametrize(
    ("target", "code", "word"),
    [
        ("nowhere.example", 2, "config"),
        ("/list.xml", 5, "source-not-found"),
        ("/page.xml", 5, "not-a-list"),
    ],
)
def test_nothing_to_show_is_an_error(
    target: str, code: int, word: str, source: TinySource, said: Said
) -> None:
    source.put("/page.xml", b"<html/>", "text/html")
    address = source.url + target if target.startswith("/") else target

    assert run(["explore", address]) == code

    assert said.readouterr().err.startswith(f"error[{word}]: ")
