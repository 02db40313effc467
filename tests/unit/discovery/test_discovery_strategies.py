"""The roads to a Source, in their order; what was tried on them is told when nothing is found."""

import gzip

import pytest

from resourcesync.errors import (
    ConfigurationError,
    NotAListError,
    ResourceSyncError,
    SourceNotFoundError,
    SourceUnavailableError,
)
from tests.support.worlds.discovering import (
    HOST,
    PAGE,
    SITEMAP,
    WELL_KNOWN,
    Host,
    Said,
    capability_list,
    listing,
)
from tests.support.worlds.network import Answer

CAPABILITIES = capability_list()
DESCRIPTION = listing("description", ("/capabilities.xml", "capabilitylist"))
FIELD = Answer(body=PAGE, headers={"link": '</capabilities.xml>; rel="resourcesync"'})
LINKED = '<html><head><link rel="resourcesync" href="/linked.xml"></head><body>x</body></html>'
ROADS: dict[str, Answer | bytes | str] = {
    WELL_KNOWN: DESCRIPTION,
    "/": Answer(body=LINKED.encode(), headers=FIELD.headers),
    "/capabilities.xml": CAPABILITIES,
    "/linked.xml": capability_list("/linked"),
    "/robots.txt": "User-agent: *\nSITEMAP : http://h.example/robots.xml\n",
    "/robots.xml": SITEMAP,
    "/sitemap.xml": SITEMAP,
    "/sitemap_index.xml": SITEMAP,
    "/sitemap.xml.gz": gzip.compress(SITEMAP),
}
ORDER = [
    ([], "/resourcelist.xml", f"well-known URI of {HOST}"),
    ([WELL_KNOWN], "/resourcelist.xml", f"Link header of {HOST}"),
    (["/capabilities.xml"], "/linked/resourcelist.xml", f"HTML link of {HOST}"),
    (["/linked.xml"], "/robots.xml", f"robots.txt of {HOST}"),
    (["/robots.xml"], "/sitemap.xml", f"usual place of a sitemap at {HOST}"),
    (["/sitemap.xml"], "/sitemap_index.xml", f"usual place of a sitemap at {HOST}"),
    (["/sitemap_index.xml"], "/sitemap.xml.gz", f"usual place of a sitemap at {HOST}"),
]


@pytest.mark.parametrize("number", range(len(ORDER)))
def test_the_next_road_is_taken_where_one_leads_to_nothing(number: int) -> None:
    gone = [path for paths, _, _ in ORDER[: number + 1] for path in paths]
    host = Host({path: said for path, said in ROADS.items() if path not in gone})

    found = host.find()

    assert (found.resource_list, found.road) == (HOST + ORDER[number][1], ORDER[number][2])


@pytest.mark.parametrize("number", range(len(ORDER) - 1))
@pytest.mark.parametrize(
    "broken", [Answer(status=503), Answer(body=b"<urlset")], ids=["503", "cut"]
)
def test_no_road_is_left_for_a_weaker_one_because_it_is_broken(number: int, broken: Answer) -> None:
    gone = [path for paths, _, _ in ORDER[: number + 1] for path in paths]
    first = ORDER[number + 1][0][0]
    said = {path: what for path, what in ROADS.items() if path not in gone} | {first: broken}

    with pytest.raises(ResourceSyncError) as caught:
        Host(said).find()

    assert not isinstance(caught.value, SourceNotFoundError | NotAListError)


def test_pages_that_lead_to_pages_end() -> None:
    said: Said = {
        f"/{number}": Answer(body=PAGE, headers={"link": f'</{number + 1}>; rel="resourcesync"'})
        for number in range(100)
    }
    host = Host(said)

    with pytest.raises(SourceNotFoundError):
        host.find("/0")

    assert len(host.asked) < 12


# --- robots.txt ---


def robots(*targets: str, **said: bytes | str) -> Host:
    """Return a host whose robots.txt names these; documents by their name without ``.xml``."""
    lines = "".join(f"Sitemap: {target}\n" for target in targets)
    documents = {f"/{name}.xml": what for name, what in said.items()}
    return Host({"/robots.txt": lines, **documents})


def test_of_several_sitemaps_the_one_of_resourcesync_wins() -> None:
    listed = listing("resourcelist", links=[("up", "/caps.xml")])
    host = robots("/a.xml", "/b.xml", "/c.xml", a=SITEMAP, b=listed, c=SITEMAP, caps=CAPABILITIES)

    found = host.find()

    assert (found.capability_list, found.is_sitemap) == (f"{HOST}/caps.xml", False)


def test_several_lists_of_one_set_are_that_set() -> None:
    up = [("up", "/caps.xml")]
    a, b = listing("resourcelist", links=up), listing("changelist", links=up)

    host = robots("/a.xml", "/b.xml", a=a, b=b, caps=CAPABILITIES)

    assert host.find().capability_list == f"{HOST}/caps.xml"


def test_an_index_stands_for_the_sitemaps_that_it_lists() -> None:
    whole = listing("", ("/a.xml", ""), ("/b.xml", ""), index=True)

    host = robots("/a.xml", "/whole.xml", "/b.xml", a=SITEMAP, b=SITEMAP, whole=whole)

    assert host.find().resource_list == f"{HOST}/whole.xml"


def test_sitemaps_of_other_origins_are_asked_for_only_when_allowed() -> None:
    elsewhere = "https://other.example/s.xml"
    said: Said = {"/robots.txt": f"sitemap: {elsewhere}", elsewhere: SITEMAP}

    with pytest.raises(SourceNotFoundError):
        Host(said).find()
    assert Host(said).find("", None, "https://other.example").resource_list == elsewhere


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbfSitemap: /s.xml",
        b"User-agent: *\rSitemap: /s.xml\rDisallow:",
        b"sItEmAp:/s.xml # ours\r\n",
        b"\0Sitemap:\t/s.xml\n" + b"# x" * 200_000 + b"\nSitemap: /t.xml",
        b"Sitemap: http://[\nSitemap: /s.xml\nSitemap: /s.xml",
    ],
)
def test_the_lines_of_robots_are_read_with_patience(text: bytes) -> None:
    assert Host({"/robots.txt": Answer(body=text), "/s.xml": SITEMAP}).find().is_sitemap


def test_a_hundred_thousand_sitemap_lines_cost_a_bounded_number_of_requests() -> None:
    host = robots(*(f"/{number}.xml" for number in range(100_000)))
    with pytest.raises(ConfigurationError):
        host.find()
    assert len(host.asked) < 30


@pytest.mark.parametrize("status", [500, 503])
def test_a_robots_file_that_fails_is_no_missing_one(status: int) -> None:
    said: Said = {"/robots.txt": Answer(status=status), "/sitemap.xml": SITEMAP}

    with pytest.raises(SourceUnavailableError):
        Host(said).find()
