"""Mirrors that are published again: a chain of Sources over HTTP, each a mirror of the one before.

A publishes, B mirrors A and publishes, C mirrors B and publishes, D mirrors C.
"""

import hashlib
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from threading import Event

import pytest

from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.adapters.system import SystemClock
from resourcesync.app import plugins
from resourcesync.app.publishing.accounts import FollowedAccount, publish_account
from resourcesync.app.serving.applications import LateApplication
from resourcesync.app.serving.published_tree import PUBLICATION
from resourcesync.cli.main import run
from resourcesync.model.entries import Resource
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.source.publication_options import PublishRequest
from tests.support.accounts.distributions import install
from tests.support.commands.command_line import Said
from tests.support.commands.run import files_of
from tests.support.documents.text import tell
from tests.support.servers.listening import get
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.aggregating import Site, via

Chain = tuple[Site, Site, Site, Site]


@pytest.fixture(scope="module")
def servers() -> Iterator[list[tuple[LateApplication, str]]]:
    with ExitStack() as held:
        late = [LateApplication() for _ in "abcd"]
        yield [
            (application, held.enter_context(ServerThread(application)).uri) for application in late
        ]


@pytest.fixture
def chain(here: Path, servers: list[tuple[LateApplication, str]]) -> Chain:
    (here / "a" / "sub").mkdir(parents=True)
    first, second, third, last = (
        Site(here / name, *item) for name, item in zip("abcd", servers, strict=True)
    )
    return first, second, third, last


def write(origin: Site, **files: str) -> None:
    for name, text in files.items():
        (origin.folder / name.replace("__", ".")).write_text(text)


def pass_on(*sites: Site, words: Sequence[str] = ()) -> None:
    for before, after in pairwise(sites):
        assert after.pull(before, *words) == 0
        assert after.publish() == 0


def contents(origin: Site) -> dict[str, bytes]:
    found = files_of(origin.folder)
    return {origin.url + name.replace(" ", "%20"): body for name, body in found.items()}


@pytest.mark.founding(
    "WWW §2.3", "Europeana: aggregators pass on to others what they collect", "`publish MIRROR`"
)
@pytest.mark.founding("0.9 §8.7", "An aggregator tells the whole provenance", "`publish MIRROR`")
def test_the_third_source_of_a_chain_has_what_the_first_has_and_says_where_it_is_from(
    chain: Chain,
) -> None:
    first, second, third, last = chain
    dice = random.Random(7)
    names = ["one.txt", "sub/two words.html", "three", "sub/four.pdf", "five.txt", "six.x~"]
    for number in range(3):
        for name in dice.sample(names, 4):
            path = first.folder / name
            if path.exists() and dice.random() < 0.4:
                path.unlink()
            else:
                path.write_text(f"{name} in round {number}")
        assert first.publish() == 0
        pass_on(first, second, third)
        assert last.pull(third) == 0

        told = third.resources()
        vias = {via(resource).href: last.copies()[uri] for uri, resource in told.items()}
        originals = {uri: body for uri, body in contents(first).items() if not uri.endswith("~")}
        assert vias == originals  # bytes, deletions and updates came all the way
        assert all(uri.startswith(third.url) for uri in told)
        for resource in told.values():
            assert via(resource).digests == resource.digests
            assert via(resource).length == resource.length
            assert resource.lastmod is not None
    assert run(["validate", third.url]) == 0
    assert third.publish() == 0  # and nothing is told twice
    changes = get(third.url, "/resourcesync/changelist.xml").body.count(b"<url>")
    assert third.publish() == 0
    assert get(third.url, "/resourcesync/changelist.xml").body.count(b"<url>") == changes


def test_links_lead_to_our_copies_as_soon_as_they_are_here_and_only_then(chain: Chain) -> None:
    first, second, third, _ = chain
    write(first, a__txt="a")
    rule = "describedby:{path}.xml only=*.txt always"
    assert first.publish("--link", rule, "--link", "canonical:{uri}?x", "--link", "next:b") == 0
    pass_on(first, second)
    assert second.links("a.txt") == {
        "via": f"{first.url}a.txt",
        "describedby": f"{first.url}a.txt.xml",
    }

    write(first, a__txt__xml="about a")
    assert first.publish() == 0
    pass_on(first, second, third)
    assert second.links("a.txt")["describedby"] == f"{second.url}a.txt.xml"
    assert third.links("a.txt") == {
        "via": f"{first.url}a.txt",
        "describedby": f"{third.url}a.txt.xml",
    }

    (first.folder / "a.txt.xml").unlink()
    assert first.publish() == 0
    pass_on(first, second)
    assert second.links("a.txt")["describedby"] == f"{first.url}a.txt.xml"


def test_only_copies_are_published_and_served_while_a_pull_holds_the_mirror(chain: Chain) -> None:
    first, second, _, _ = chain
    write(first, a__txt="a", b__txt="b")
    (first.folder / "resourcesync.html").write_text("a name like that of our folder")
    assert first.publish() == 0
    assert second.pull(first) == 0
    write(first, a__txt="anew")
    (first.folder / "b.txt").unlink()
    assert first.publish() == 0
    assert second.pull(first) == 0  # b.txt waits in the trash
    write(second, foreign__txt="mine")
    with MirrorFolder(second.folder, SystemClock()):
        assert second.publish() == 0
    assert second.resources().keys() == {f"{second.url}a.txt", f"{second.url}resourcesync.html"}
    assert get(second.url, "/a.txt")[:2] == (200, b"anew")
    for name in ("foreign.txt", "b.txt", ".resourcesync/state.db"):
        assert get(second.url, f"/{name}").status == 404
    assert run(["pull", second.folder.name]) == 0  # the documents are in nobody's way
    assert not (second.folder / "resourcesync").exists()


def test_a_mirror_of_what_is_published_at_the_same_address_is_refused(
    chain: Chain, said: Said
) -> None:
    first, second, third, _ = chain
    write(first, a__txt="a")
    assert first.publish() == 0
    pass_on(first, second)
    assert third.pull(second) == 0
    said.readouterr()
    assert run(["publish", "c", "--url", first.url]) != 0
    assert "own-publication" in said.readouterr().err
    assert not (third.folder / ".resourcesync/publication/resourcesync").exists()


def test_a_mirror_in_a_store_is_published_where_its_state_is(
    chain: Chain, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "from tests.support.storage.storing import open_shelf\n"
    install(here / "site", "acme_shelf", {plugins.STORES: {"shelf": "acme_shelf:open_shelf"}}, code)
    monkeypatch.syspath_prepend(str(here / "site"))
    monkeypatch.setenv("XDG_STATE_HOME", str(here / "home"))
    first, _, _, _ = chain
    write(first, a__txt="a")
    assert first.publish() == 0
    store = f"shelf:{here}/shelf"
    assert run(["pull", first.url, store]) == 0
    assert run(["publish", f"mirror:{store}", "--url", "https://mine.example/"]) == 0
    (listed,) = (here / "home").rglob("publication/resourcesync/resourcelist.xml")
    (resource,) = tell(listed.read_bytes()).entries
    assert isinstance(resource, Resource)
    found = (resource.uri, via(resource).href)
    assert found == ("https://mine.example/a.txt", f"{first.url}a.txt")
    sys.modules.pop("acme_shelf", None)


def test_publishing_while_pulls_go_on_ends_with_what_the_mirror_has(chain: Chain) -> None:
    first, second, _, _ = chain
    dice = random.Random(5)

    def edit() -> None:
        for number in dice.choices(range(60), k=40):
            path = first.folder / f"{number}.txt"
            if path.exists() and dice.random() < 0.3:
                path.unlink()
            else:
                path.write_text(f"{dice.random()}")
        assert first.publish() == 0

    followed = FollowedAccount(
        address=f"mirror:{second.folder}", values={}, out=second.folder / PUBLICATION
    )

    def publish() -> None:
        publish_account(followed, {"url": second.url}, clock=SystemClock(), asked=PublishRequest())

    def publish_until_told() -> int:
        count = 0
        while not ended.is_set():
            publish()
            count += 1
        return count

    edit()
    assert second.pull(first) == 0
    publish()
    ended = Event()
    with ThreadPoolExecutor() as pool:
        publishing = pool.submit(publish_until_told)
        for _ in range(4):
            edit()
            assert second.pull(first, "--max-delete", "100%") == 0
        ended.set()
        assert publishing.result(60) > 0
    publish()
    told = {
        via(resource).href: resource.digests[0].value for resource in second.resources().values()
    }
    assert told == {uri: hashlib.sha256(body).hexdigest() for uri, body in second.copies().items()}
    assert second.copies() == contents(first)


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
def mirror(chain: Chain) -> Site:
    return chain[1]


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
        assert get(mirror.url, ours.get(target, target))[:2] == (200, body), target
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
        assert get(mirror.url, target).status == 404, target


def test_what_comes_goes_and_yields_is_served_at_once(source: TinySource, mirror: Site) -> None:
    fill(source, mirror, {"/a": b"a", "/gone": b"g"})
    assert [get(mirror.url, name).status for name in ("/a", "/gone", "/a/b")] == [200, 200, 404]

    source.offer({"/a": b"a", "/a/b": b"b"}, at="2026-01-02T00:00:00Z")
    assert pull(source, mirror, "--mode", "baseline", "--max-delete", "100%") == 0

    assert (mirror.folder / "a!9").read_bytes() == b"a"
    assert [get(mirror.url, name).body for name in ("/a", "/a/b")] == [b"a", b"b"]
    assert get(mirror.url, "/gone").status == 404
    assert mirror.publish() == 0
    assert mirror.resources().keys() == {f"{mirror.url}a", f"{mirror.url}a/b"}


def test_a_copy_that_is_lost_is_not_said_to_be_gone(source: TinySource, mirror: Site) -> None:
    fill(source, mirror, {"/a": b"a", "/b": b"b", "/c": b"c"})
    (mirror.folder / "a").unlink()
    (mirror.folder / "b").unlink()
    (mirror.folder / "b").symlink_to("c")

    assert [get(mirror.url, name).status for name in ("/a", "/b", "/c")] == [503, 503, 200]


def test_what_would_hide_our_own_documents_is_not_published(
    source: TinySource, mirror: Site
) -> None:
    taken = ("/resourcesync/x.xml", "/resourcesync-sitemap.xml")
    fill(source, mirror, {"/a": b"a", **dict.fromkeys(taken, b"theirs")})

    assert mirror.resources().keys() == {f"{mirror.url}a"}
    assert run(["validate", mirror.url]) == 0
