"""Seed 001, DIT-ES: an index that a harvester fills becomes a Source, and a mirror follows it."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

from resourcesync.cli.main import run
from resourcesync.documents import reader
from resourcesync.model.entries import Change, Entry, Resource
from tests.support.accounts.dit_index import ROOT, DitIndex, abs_path, rel_path, url
from tests.support.servers.search_servers import (
    ELASTICSEARCH,
    OPENSEARCH,
    Distribution,
    NotHereError,
    emulating,
    running,
    version_of,
)
from tests.support.servers.tiny_source import TinySource

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(
    scope="module",
    params=[
        *(pytest.param(name, marks=pytest.mark.night) for name in ("elasticsearch", "opensearch")),
        "emulator",
    ],
)
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    known: dict[str, Distribution] = {"elasticsearch": ELASTICSEARCH, "opensearch": OPENSEARCH}
    name = request.param
    if name == "emulator":
        with emulating() as address:
            yield "opensearch", address
        return
    try:
        with running(known[name]) as address:
            print(f"{name} {version_of(address)}")
            yield name, address
    except NotHereError as error:
        pytest.skip(str(error))


class Harvester:
    """The harvester of the seed, and the site that serves what it has downloaded."""

    def __init__(self, index: DitIndex, site: TinySource) -> None:
        self.index = index
        self.site = site
        self.files: dict[str, bytes] = {}

    def put(self, name: str, body: bytes, **more: object) -> None:
        self.files[name] = body
        self.site.put(f"/data/{quote(name)}", body, "application/pdf")
        self.index.put(self.location(name), body, mime="application/pdf", **more)

    def remove(self, name: str) -> None:
        del self.files[name]
        del self.site.answers[f"/data/{quote(name)}"]
        self.index.remove(self.location(name))

    def location(self, name: str) -> dict[str, object]:
        kind = name.partition("/")[0]
        if kind == "abs":
            return abs_path(name)
        return rel_path(name) if kind == "rel" else url(f"{self.site.url}/data/{quote(name)}")


@pytest.fixture
def harvester(server: tuple[str, str]) -> Iterator[Harvester]:
    index = DitIndex(server[1])
    index.make(number_of_shards=3)
    with TinySource() as site:
        yield Harvester(index, site)
    index.drop()


class Publication:
    def __init__(self, scheme: str, harvester: Harvester, folder: Path) -> None:
        self._harvester = harvester
        self.address = f"{scheme}:{harvester.index.url}/{harvester.index.name}"
        self.out = folder / "out"
        self.mirror = folder / "mirror"

    def publish(self, *options: str) -> None:
        self._harvester.index.refresh()
        base = f"{self._harvester.site.url}/"
        values = ("resource_set=pdf", f"resource_root_dir={ROOT}", f"url_prefix={base}data")
        given = [name for value in values for name in ("--with", value)]
        command = ["publish", self.address, "--url", base, "--out", str(self.out), *given]
        assert run([*command, "-o", "max_entries=20", "--quiet", *options]) == 0
        for path in self.out.rglob("*"):
            name = path.relative_to(self.out).as_posix()
            if path.is_file() and not name.startswith(".resourcesync"):
                self._harvester.site.put(f"/{name}", path.read_bytes(), "application/xml")

    def check_mirror(self) -> None:
        assert run(["pull", self._harvester.site.url, str(self.mirror), "--quiet"]) == 0
        copies = self.mirror / "data"
        found = {
            unquote(path.relative_to(copies).as_posix()): path.read_bytes()
            for path in copies.rglob("*")
            if path.is_file()
        }
        assert found == self._harvester.files

    def entries(self, name: str) -> list[Entry]:
        with (self.out / "resourcesync" / name).open("rb") as stream:
            return list(reader.read(stream, uri=name).entries())

    def changes(self) -> list[tuple[str, str]]:
        prefix = f"{self._harvester.site.url}/data/"
        return [
            (entry.kind.value, entry.uri.removeprefix(prefix))
            for entry in self.entries("changelist.xml")
            if isinstance(entry, Change)
        ]

    def pages(self) -> list[list[Entry]]:
        names = [part.uri.rpartition("/")[2] for part in self.entries("resourcelist.xml")]
        return [self.entries(name) for name in names]

    def written(self) -> dict[str, tuple[int, int]]:
        """Return what tells for each document whether it was written again."""
        found = (self.out / "resourcesync").glob("*.xml")
        return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def _md5(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


@pytest.mark.founding(
    "DIT-ES: General", "An index of Elasticsearch becomes a Source", "`publish elasticsearch:URL`"
)
@pytest.mark.founding(
    "DIT-ES: General",
    "Its log of changes becomes Change Lists",
    "`publish elasticsearch:URL --update`",
)
@pytest.mark.founding(
    "DIT-ES: General",
    "A few changes write one document, whatever the size of the list",
    "`publish elasticsearch:URL --update`",
)
def test_an_index_becomes_a_source_and_a_mirror_follows_it(
    server: tuple[str, str], harvester: Harvester, tmp_path: Path
) -> None:
    publication = Publication(server[0], harvester, tmp_path)

    _begin(harvester, publication)
    _follow(harvester, publication)
    _touch_one_page(harvester, publication)


def _begin(harvester: Harvester, publication: Publication) -> None:
    """Strategy `resourcelist`: all three ways to tell where a file is, and links."""
    for number in range(100):
        harvester.put(f"rel/{number:03}.pdf", b"relative %d" % number)
    for number in range(10):
        body = b"absolute %d" % number
        harvester.put(f"abs/{number}.pdf", body, md5=[f"md5:{_md5(body)}"])
    link = {"rel": "describedby", "href": rel_path("meta/0.json"), "mime": "application/json"}
    harvester.put("url/0.pdf", b"by its address", ln=[link])
    other = DitIndex(harvester.index.url, resource_set="metadata")
    other.name = harvester.index.name
    other.put(rel_path("meta/0.json"), b"{}")
    other.refresh()

    publication.publish()

    publication.check_mirror()
    parts = [part.uri.rpartition("/")[2] for part in publication.entries("resourcelist.xml")]
    assert len(parts) == 6
    listed = [entry for name in parts for entry in publication.entries(name)]
    assert len(listed) == 111
    (told,) = [item for item in listed if isinstance(item, Resource) and item.links]
    assert told.uri == f"{harvester.site.url}/data/url/0.pdf"
    assert [str(digest) for digest in told.digests] == [f"md5:{_md5(b'by its address')}"]
    assert (told.length, told.media_type) == (14, "application/pdf")
    (found,) = told.links
    assert (found.rel, found.media_type) == ("describedby", "application/json")
    assert found.href == f"{harvester.site.url}/data/meta/0.json"


def _follow(harvester: Harvester, publication: Publication) -> None:
    """Strategy `inc_changelist`: what is new in the log, each resource as it is now."""
    harvester.put("rel/050.pdf", b"another")
    harvester.put("rel/a new one.pdf", b"new")
    harvester.remove("abs/3.pdf")
    harvester.put("rel/passing.pdf", b"soon gone")
    harvester.remove("rel/passing.pdf")
    publication.publish("--update")

    assert sorted(publication.changes()) == [
        ("created", "rel/a%20new%20one.pdf"),
        ("deleted", "abs/3.pdf"),
        ("updated", "rel/050.pdf"),
    ]
    publication.check_mirror()
    publication.publish("--update")  # all of it is still in the window, and not told again
    assert len(publication.changes()) == 3


def _touch_one_page(harvester: Harvester, publication: Publication) -> None:
    """One change: one document is written; then one page of a new Resource List differs."""
    for number in range(25, 50):
        harvester.put(f"rel/{number:03}.pdf", b"again %d" % number)
    publication.publish("--update")
    assert len(publication.entries("changelist.xml")) == 2
    before = publication.written()
    harvester.put("rel/020.pdf", b"the only change")

    publication.publish("--update")

    after = publication.written()
    (written,) = {name for name in after if before.get(name) != after[name]}
    assert written == publication.entries("changelist.xml")[-1].uri.rpartition("/")[2]
    assert set(before) <= set(after)
    publication.check_mirror()
    publication.publish("--rebase")
    pages = publication.pages()
    harvester.put("rel/020.pdf", b"once more")
    publication.publish("--rebase")
    again = publication.pages()
    assert len(again) == len(pages) == 6
    differing = [old != new for old, new in zip(pages, again, strict=True)]
    assert differing.count(True) == 1
    assert set(before) <= set(
        publication.written()
    )  # nothing is erased while a reader may be at it
    publication.check_mirror()
