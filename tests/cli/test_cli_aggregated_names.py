"""A mirror that is published: its copies keep the addresses that they have at their Source."""

import hashlib
import http.client
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from resourcesync.app.serving.applications import LateApplication
from resourcesync.cli.main import run
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.aggregating import Site, via

ODD = {
    target: f"content of {target}".encode()
    for target in (
        "/",
        "/a",
        "/a/b",
        "/README",
        "/v1.2/notes.txt",
        "/docs/",
        "/docs/index.html",
        "/docs",
        "/caf%C3%A9.html",
        "/two%20words.txt",
        "/a%2Fb",
        "/a+b",
        "/a%2Bb",
        "/page.php?id=1",
        "/page.php?id=2&x=/",
        "/style.css",
        "/.well-known/security.txt",
        "/.htaccess",
        "/old.txt~",
        "/.resourcesync/state.db",
        "/!6/https/other.example/x",
        "/!216/y",
        "/!x",
        "/" + "long" * 80,
    )
}


@pytest.fixture
def late() -> LateApplication:
    return LateApplication()


@pytest.fixture
def mirror(here: Path, late: LateApplication) -> Iterator[Site]:
    with ServerThread(late) as running:
        yield Site(here / "mirror", late, running.uri)


def get(site: Site, target: str) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection(urlsplit(site.url).netloc)) as connection:
        connection.request("GET", target)
        answer = connection.getresponse()
        return answer.status, answer.read()


def pull(source: TinySource, mirror: Site, *words: str) -> int:
    return run(["pull", source.url, str(mirror.folder), *words])


def fill(source: TinySource, mirror: Site, files: Mapping[str, bytes], *words: str) -> None:
    source.offer(files)
    assert pull(source, mirror, *words) == 0
    assert mirror.publish() == 0


def test_what_a_mirror_holds_is_served_under_the_paths_of_its_uris(
    source: TinySource, mirror: Site
) -> None:
    fill(source, mirror, ODD)

    told = mirror.resources()
    addresses = {via(resource).href.removeprefix(source.url): uri for uri, resource in told.items()}
    # "!" and a digit is ours: below !6 are the copies of other hosts.
    ours = {"/!6/https/other.example/x": "/!216/https/other.example/x", "/!216/y": "/!21216/y"}
    assert addresses == {name: mirror.url.rstrip("/") + ours.get(name, name) for name in ODD}
    for target, body in ODD.items():
        assert get(mirror, ours.get(target, target)) == (200, body), target
        assert told[addresses[target]].digests[0].value == hashlib.sha256(body).hexdigest()


def test_nothing_else_is_served(source: TinySource, mirror: Site) -> None:
    fill(source, mirror, {"/a": b"a", "/a/b": b"b", "/docs/": b"d", "/x%2Fy": b"x"})
    (mirror.folder / "foreign").write_text("mine")
    (mirror.folder / ".resourcesync/note").write_text("mine")
    (mirror.folder / "link").symlink_to("a!9")

    for target in (
        "/foreign",
        "/link",
        "/a!9",
        "/docs/index.html",
        "/x/y",
        "/a/",
        "/a/b/",
        "//a",
        "/./a",
        "/a/../a",
        "/.resourcesync/note",
        "/.resourcesync/state.db",
        "/%2Eresourcesync/note",
        "/.resourcesync%2Fnote",
        "/.resourcesync/publication/resourcesync/resourcelist.xml",
        "/%00",
        "/%zz",
        "/" + "x" * 3000,
    ):
        assert get(mirror, target)[0] == 404, target


def test_what_comes_goes_and_yields_is_served_at_once(source: TinySource, mirror: Site) -> None:
    fill(source, mirror, {"/a": b"a", "/gone": b"g"})
    assert [get(mirror, name)[0] for name in ("/a", "/gone", "/a/b")] == [200, 200, 404]

    source.offer({"/a": b"a", "/a/b": b"b"}, at="2026-01-02T00:00:00Z")
    assert pull(source, mirror, "--mode", "baseline", "--max-delete", "100%") == 0

    assert (mirror.folder / "a!9").read_bytes() == b"a"
    assert [get(mirror, name) for name in ("/a", "/a/b")] == [(200, b"a"), (200, b"b")]
    assert get(mirror, "/gone")[0] == 404
    assert mirror.publish() == 0
    assert mirror.resources().keys() == {f"{mirror.url}a", f"{mirror.url}a/b"}


def test_a_copy_that_is_lost_is_not_said_to_be_gone(source: TinySource, mirror: Site) -> None:
    fill(source, mirror, {"/a": b"a", "/b": b"b", "/c": b"c"})
    (mirror.folder / "a").unlink()
    (mirror.folder / "b").unlink()
    (mirror.folder / "b").symlink_to("c")

    assert [get(mirror, name)[0] for name in ("/a", "/b", "/c")] == [503, 503, 200]


def test_what_would_hide_our_own_documents_is_not_published(
    source: TinySource, mirror: Site
) -> None:
    taken = ("/resourcesync/x.xml", "/resourcesync-sitemap.xml")
    fill(source, mirror, {"/a": b"a", **dict.fromkeys(taken, b"theirs")})

    assert mirror.resources().keys() == {f"{mirror.url}a"}
    assert run(["validate", mirror.url]) == 0
