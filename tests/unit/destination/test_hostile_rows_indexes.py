"""X25: indexes that lead to themselves, to each other, to indexes, or to too much."""

from io import BytesIO
from pathlib import Path

import pytest

from resourcesync.destination.lists import list_documents
from resourcesync.destination.lists.list_documents import parts_of
from resourcesync.destination.reports import MirrorState
from resourcesync.documents.reader import read
from resourcesync.errors import DocumentLimitError, UnexpectedDocumentError
from tests.support.documents.text import URI, document, url
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

RESOURCES = f"{BASE}resourcesync/resourcelist.xml"
CHANGES = f"{BASE}resourcesync/changelist.xml"
OTHER = f"{BASE}resourcesync/other.xml"
STAMP = "2013-01-01T00:00:00Z"


def index(capability: str, *parts: str) -> bytes:
    time = "at" if capability == "resourcelist" else "from"
    children = (f"<sitemap><loc>{part}</loc></sitemap>" for part in parts)
    md = f'<rs:md capability="{capability}" {time}="{STAMP}"/>'
    return document(*children, root="sitemapindex", md=md)


@pytest.fixture
def small(tmp_path: Path) -> World[PublishedSource]:
    world = World(tmp_path / "mirror")
    world.source.put("a.txt", "a")
    world.source.publish()
    return world


@pytest.mark.parametrize("head", [RESOURCES, CHANGES], ids=["resources", "changes"])
@pytest.mark.parametrize(
    "leads", [["itself"], ["another", "itself"], ["another", "third"]], ids=" ".join
)
def test_an_index_that_leads_to_an_index_is_refused_and_nothing_changes(
    small: World[PublishedSource], head: str, leads: list[str]
) -> None:
    capability, before = "resourcelist", dict[str, bytes]()
    if head == CHANGES:
        capability = "changelist"
        assert small.pull().state is MirrorState.IN_SYNC
        small.source.put("b.txt", "b")
        small.source.publish()
        before = small.files()
    places = {"itself": head, "another": OTHER, "third": f"{BASE}third.xml"}
    for uri, lead in zip((head, OTHER), leads, strict=False):
        small.network.answers[uri] = Answer(body=index(capability, places[lead]))

    with pytest.raises(UnexpectedDocumentError):
        small.pull()

    assert small.files() == before
    assert len(small.fetcher.asked) < 15


def test_a_part_that_is_listed_twice_is_read_once(small: World[PublishedSource]) -> None:
    md = f'<rs:md capability="resourcelist" at="{STAMP}"/>'
    small.network.answers[RESOURCES] = Answer(body=index("resourcelist", OTHER, OTHER, "other.xml"))
    small.network.answers[OTHER] = Answer(body=document(url(f"{BASE}a.txt"), md=md))

    small.pull()

    assert small.fetcher.asked.count(OTHER) == 1
    assert small.files() == {f"{BASE}a.txt": b"a"}


@pytest.mark.parametrize("room", [-1, 0])
def test_an_index_has_a_largest_number_of_parts(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list_documents.MAX_PARTS == 50_000
    monkeypatch.setattr(list_documents, "MAX_PARTS", 100 + room)
    parts = [f"http://a/{number}" for number in range(100)]
    opened = read(BytesIO(index("resourcelist", *parts)), uri=URI)

    if room < 0:
        with pytest.raises(DocumentLimitError):
            parts_of(opened)
    else:
        assert list(parts_of(opened)) == parts
