"""Any site with a sitemap gets a ResourceSync twin, which a mirror follows."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.serving.applications import LateApplication, find_tree
from resourcesync.cli.main import run
from resourcesync.documents import reader
from resourcesync.model.resources import Change, Resource
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.commands.command_line import Said
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import Answer, TinySource
from tests.support.worlds.site_maps import index, urlset

BODIES = {"/a.html": b"<p>a</p>", "/b": b"b" * 50}


def offer(site: TinySource, **dates: str) -> str:
    """Let the site list its pages; return the address of its sitemap."""
    uris = [(f"{site.url}{path}", dates.get(path.strip("/")[:1], "")) for path in BODIES]
    site.answers["/sitemap.xml"] = Answer(body=index(f"{site.url}/pages.xml"))
    site.answers["/pages.xml"] = Answer(body=urlset(*uris))
    for path, body in BODIES.items():
        fields = {"Content-Type": "text/html; charset=utf-8"} if path.endswith("html") else {}
        site.answers[path] = Answer(body=body, headers=fields)
    return f"sitemap:{site.url}/sitemap.xml"


def entries(name: str) -> list[Resource | Change]:
    path = Path("twin/resourcesync") / name
    with path.open("rb") as stream:
        found = list(reader.read_stream(stream, uri=path.name).entries())
    return [item for item in found if isinstance(item, Resource | Change)]


def signposts(name: str) -> dict[str, list[tuple[str, str]]]:
    """Return the links of the entries of a list, by their paths."""
    resources = [item.resource if isinstance(item, Change) else item for item in entries(name)]
    return {
        "/" + resource.uri.rpartition("/")[2]: [(link.rel, link.href) for link in resource.links]
        for resource in resources
    }


@pytest.fixture
def site() -> TinySource:
    return TinySource()


def test_a_twin_is_followed_by_a_mirror_and_asks_only_what_changed(
    site: TinySource, capsys: pytest.CaptureFixture[str]
) -> None:
    late = LateApplication()
    with site, ServerThread(late) as server:
        address = offer(site, a="2026-01-01", b="2026-01-01")
        publish = ["publish", address, "--url", server.uri, "--out", "twin"]
        assert run([*publish, "--with", "measure=head"]) == 0
        check = f"resourcesync pull {server.uri} ./copy --allow-origin {site.url} --dry-run"
        assert check in capsys.readouterr().out
        late.application = find_tree(Path("twin")).application(SystemClock())
        told = {entry.uri.removeprefix(site.url): entry for entry in entries("resourcelist.xml")}
        assert {uri: getattr(item, "length", 0) for uri, item in told.items()} == {
            "/a.html": 8,
            "/b": 50,
        }
        assert getattr(told["/a.html"], "media_type", "") == "text/html"
        pull = ["pull", server.uri, "copy", "--allow-origin", site.url]
        assert run(pull) == 0
        assert sorted(files_of(Path("copy")).values()) == sorted(BODIES.values())

        site.asked.clear()
        offer(site, a="2026-01-02", b="2026-01-01")
        site.answers["/a.html"] = Answer(body=b"<p>new</p>")
        assert run([*publish, "--with", "measure=head"]) == 0
        asked = [(asked.method, asked.target) for asked in site.asked if asked.target in BODIES]
        assert asked == [("HEAD", "/a.html")]
        assert [entry.uri for entry in entries("changelist.xml")] == [f"{site.url}/a.html"]
        assert run(pull) == 0
        assert b"<p>new</p>" in files_of(Path("copy")).values()


@pytest.mark.parametrize("how", ["head", "get"])
def test_a_twin_has_the_signposts_of_what_it_measures_anyway(site: TinySource, how: str) -> None:
    links = '<meta.json>; rel="describedby"; type="application/json", </x.css>; rel=stylesheet'
    licence = "<https://cc.example/by>; rel=license"
    with site:
        address = offer(site, a="2026-01-01", b="2026-01-01")
        publish = ["publish", address, "--url", "https://twin.example/", "--out", "twin"]
        measured = [*publish, "--with", f"measure={how}"]
        dated = {"Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "Link": links}
        site.answers["/a.html"] = Answer(body=BODIES["/a.html"], headers=dated)
        assert run([*publish, "--with", "measure=head"]) == 0
        before = len([asked for asked in site.asked if asked.target in BODIES])
        assert before == len(BODIES)
        assert signposts("resourcelist.xml") == {
            "/a.html": [("describedby", f"{site.url}/meta.json")],
            "/b": [],
        }

        offer(site, a="2026-01-02", b="2026-01-01")
        dated = {"Link": licence}
        site.answers["/a.html"] = Answer(body=BODIES["/a.html"], headers=dated)
        assert run(measured) == 0
        assert signposts("changelist.xml")["/a.html"] == [("license", "https://cc.example/by")]


def test_the_measurements_of_an_earlier_version_are_still_good(site: TinySource) -> None:
    with site:
        address = offer(site, a="2026-01-01", b="2026-01-01")
        publish = ["publish", address, "--url", "https://twin.example/", "--out", "twin"]
        assert run([*publish, "--with", "measure=head"]) == 0
        [path] = Path().rglob("measured.db")
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(
                "ALTER TABLE measured DROP COLUMN links; PRAGMA user_version = 1"
            )
        site.asked.clear()

        assert run([*publish, "--with", "measure=head"]) == 0
        assert [asked.target for asked in site.asked if asked.target in BODIES] == []


def test_a_sitemap_without_one_of_its_parts_is_followed_and_told_as_not_in_sync(
    site: TinySource, capsys: pytest.CaptureFixture[str]
) -> None:
    with site:
        offer(site)
        site.answers["/sitemap.xml"] = Answer(
            body=index(f"{site.url}/pages.xml", f"{site.url}/gone.xml")
        )

        assert run(["pull", f"{site.url}/sitemap.xml", "copy"]) == 3

        lines = capsys.readouterr().out.splitlines()
        [named] = [line for line in lines if line.startswith("! ")]
        assert f"{site.url}/gone.xml   this part of the list cannot be read: " in named
        assert lines[-3:] == [
            "Not in sync   2 of at least 3 (2 created, 1 part of the list not read)  exit 3",
            "  next   a part of the list cannot be read, and nothing was deleted: ask the",
            "         Source to correct it, then: resourcesync pull copy",
        ]
        assert sorted(files_of(Path("copy")).values()) == sorted(BODIES.values())


@pytest.mark.parametrize(
    "bad",
    [
        {"/pages.xml": Answer(body=urlset(("http://h/", ""))[:-9])},
        {"/pages.xml": Answer(body=b"<html><body>log in</body></html>")},
        {"/sitemap.xml": Answer(body=urlset())},
        {"/pages.xml": Answer(status=404)},
    ],
    ids=["cut", "page", "empty", "gone"],
)
def test_a_sitemap_that_is_not_whole_deletes_nothing(
    site: TinySource, bad: dict[str, Answer], said: Said
) -> None:
    with site:
        address = offer(site)
        publish = ["publish", address, "--url", "https://mine.example/", "--out", "twin"]
        assert run(publish) == 0
        before = files_of(Path("twin")), sorted(Path("twin/resourcesync").iterdir())
        lists = [path.read_bytes() for path in before[1]]
        site.answers |= bad
        said.readouterr()
        assert run(publish) != 0
        assert "error[" in said.readouterr().err
        assert [path.read_bytes() for path in before[1]] == lists


def test_a_robots_txt_that_is_a_page_now_hides_no_sitemap(site: TinySource, said: Said) -> None:
    with site:
        offer(site)
        site.answers["/other.xml"] = Answer(body=urlset((f"{site.url}/other.html", "2026-01-01")))
        named = f"Sitemap: {site.url}/sitemap.xml\nSitemap: {site.url}/other.xml\n"
        site.answers["/robots.txt"] = Answer(body=named.encode())
        publish = ["publish", f"sitemap:{site.url}/", "--url", "https://mine.example/"]
        assert run([*publish, "--out", "twin"]) == 0
        before = entries("resourcelist.xml")
        assert f"{site.url}/other.html" in {
            item.uri for item in before if isinstance(item, Resource)
        }

        site.answers["/robots.txt"] = Answer(body=b"<!doctype html><title>log in</title>")
        said.readouterr()
        assert run([*publish, "--out", "twin"]) != 0

        assert "robots.txt is a page" in said.readouterr().err
        assert entries("resourcelist.xml") == before


def test_the_twin_of_the_plain_sitemap_of_a_twin_lists_the_same(site: TinySource) -> None:
    with site:
        address = offer(site, a="2026-01-01")
        publish = ["publish", address, "--url", site.url, "--out", "twin", "--sitemap"]
        assert run(publish) == 0
        (plain,) = Path("twin").glob("resourcesync-sitemap*.xml")
        assert b"openarchives" not in plain.read_bytes()
        site.answers["/clean.xml"] = Answer(body=plain.read_bytes())
        words = ["--url", "https://mine.example/", "--out", "again"]
        assert run(["publish", f"sitemap:{site.url}/clean.xml", *words]) == 0
        listed = Path("again/resourcesync/resourcelist.xml").read_text()
        assert listed.count("<url>") == len(BODIES)
        assert "2026-01-01" in listed


def test_entries_that_cannot_be_used_do_not_look_like_deletions(
    site: TinySource, said: Said
) -> None:
    with site:
        uris = [f"{site.url}/{number:03}" for number in range(150)]
        whole = urlset(*((uri, "2026-01-01") for uri in uris))
        site.answers["/sitemap.xml"] = Answer(body=whole)
        command = ["publish", f"sitemap:{site.url}/sitemap.xml", "--out", "twin", "--rescan", "0"]
        assert run([*command, "--url", "https://twin.example/"]) == 0
        emptied = whole
        for uri in uris[:70]:
            emptied = emptied.replace(f"<loc>{uri}</loc>".encode(), b"<loc></loc>")
        site.answers["/sitemap.xml"] = Answer(body=emptied)
        assert run(command) != 0
        assert "70 of 150 entries of a sitemap are unusable" in said.readouterr().err
        assert not entries("changelist.xml")

        chunk = whole.replace(f"<loc>{uris[0]}</loc>".encode(), b"<loc></loc>")
        site.answers["/sitemap.xml"] = Answer(body=chunk)
        assert run(command) == 0
        assert "an entry without a location" in said.readouterr().err


def test_what_leaves_a_feed_stays_published_and_leniencies_are_told(
    site: TinySource, capsys: pytest.CaptureFixture[str]
) -> None:
    with site:
        site.answers["/sitemap.txt"] = Answer(body=f"\n{site.url}/a\n{site.url}/b\n".encode())
        address = f"sitemap:{site.url}/sitemap.txt"
        publish = ["publish", address, "--url", "https://mine.example/", "--out", "twin"]
        assert run([*publish, "--verbose"]) == 0
        assert "The sitemap is a text file  (1 place" in capsys.readouterr().out

        site.answers["/sitemap.txt"] = Answer(body=f"{site.url}/b".encode())
        assert run([*publish, "--json"]) == 0
        told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert {row["code"] for row in told if row["type"] == "leniency"} == {
            "text-form",
            "text-open",
        }
        assert not Path("twin/resourcesync/changelist.xml").exists() or not entries(
            "changelist.xml"
        )

        site.answers["/sitemap.txt"] = Answer(body=f"{site.url}/b\n".encode())
        assert run(publish) == 0
        [gone] = entries("changelist.xml")
        assert gone.uri == f"{site.url}/a"
