"""The roads to a Source, in their order; what was tried on them is told when nothing is found."""

import gzip

import pytest

from resourcesync.errors import (
    DocumentLimitError,
    SourceNotFoundError,
    SourceRefusedError,
    SourceUnavailableError,
    TruncatedDocumentError,
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
MOST = 40
"""Requests of a search that finds nothing, as `sitemap-forms.md` says."""


USUAL = [
    *(f"sitemap{tail}.xml{end}" for end in ("", ".gz") for tail in ("", "_index", "-index")),
    "sitemap.txt",
]


@pytest.mark.parametrize("address", ["/proj/", "/proj", "/proj/index.html"])
@pytest.mark.parametrize("name", USUAL)
def test_a_site_below_a_path_is_found_by_each_usual_name(name: str, address: str) -> None:
    body = f"{HOST}/proj/page\n".encode() if name.endswith(".txt") else SITEMAP
    body = gzip.compress(body) if name.endswith(".gz") else body
    host = Host({address: PAGE, f"/proj/{name}": body, "/sitemap.xml": SITEMAP})

    assert host.find(address).resource_list == f"{HOST}/proj/{name}"
    assert "/sitemap.xml" not in host.asked


@pytest.mark.parametrize(
    ("place", "body", "site"),
    [
        ("/sitemap.xml", SITEMAP, "/"),
        ("/a/sitemap-index.xml", SITEMAP, "/a/"),
        ("/robots.txt", b"Sitemap: /a.xml\nSitemap: /b.xml", "/"),
        (WELL_KNOWN, listing("description", ("/caps.xml", "")), "/"),
    ],
)
def test_a_list_of_more_than_the_address_is_named_and_not_taken(
    place: str, body: bytes, site: str
) -> None:
    host = Host({"/a/b/c/": PAGE, place: body})

    with pytest.raises(SourceNotFoundError, match=place) as caught:
        host.find("/a/b/c/")

    runs = [text for label, text in caught.value.evidence if label == "run"]
    assert caught.value.code == "whole-site"
    assert runs == [
        f"resourcesync pull {HOST}{site} --include '/a/b/c/**'",
        f"resourcesync pull {HOST}{site}",
    ]
    assert len(host.asked) <= MOST


def test_a_search_that_finds_nothing_says_what_was_tried_in_a_bounded_number_of_requests() -> None:
    host = Host({"/a/b/c/d/e/f/": PAGE})

    with pytest.raises(SourceNotFoundError) as caught:
        host.find("/a/b/c/d/e/f/")

    tried = " ".join(text for label, text in caught.value.evidence if label == "tried")
    assert all(f"/a/b/c/d/e/f/{USUAL[0]}, " in tried and name in tried for name in USUAL)
    assert "/robots.txt  404" in tried
    assert MOST - 5 < len(host.asked) <= MOST


def test_a_page_that_is_not_there_is_not_taken_for_its_site() -> None:
    with pytest.raises(SourceNotFoundError, match="does not have"):
        Host({"/sitemap.xml": SITEMAP}).find("/page.html")


@pytest.mark.parametrize("address", ["", "/old/"])
def test_a_site_is_also_looked_for_where_its_address_is_redirected_to(address: str) -> None:
    moved = Answer(body=PAGE, uri=f"{HOST}/en/latest/")
    host = Host({address or "/": moved, "/en/latest/sitemap.xml": SITEMAP})

    assert host.find(address).resource_list == f"{HOST}/en/latest/sitemap.xml"


def test_a_link_to_a_sitemap_in_the_head_of_a_page_is_followed_on_its_origin() -> None:
    page = "<html><head><link rel=sitemap href={}></head><body><link rel=sitemap href=/b.xml>"
    host = Host({"/p/": page.format("/s.xml"), "/s.xml": SITEMAP, "/b.xml": SITEMAP})

    assert host.find("/p/").resource_list == f"{HOST}/s.xml"
    elsewhere = "https://other.example/s.xml"
    other = Host({"/p/": page.format(elsewhere), elsewhere: SITEMAP})
    with pytest.raises(SourceNotFoundError, match="no sitemap"):
        other.find("/p/")
    assert elsewhere not in other.asked
    assert other.find("/p/", None, "https://other.example").resource_list == elsewhere


@pytest.mark.parametrize("place", [WELL_KNOWN, "/sitemap.xml"])
@pytest.mark.parametrize("is_forbidden", [False, True])
def test_an_address_that_cannot_be_looked_at_ends_no_search(
    place: str, *, is_forbidden: bool
) -> None:
    forbidden = SourceRefusedError("robots.txt disallows it", code="robots")
    said: Said = {place: forbidden if is_forbidden else Answer(status=500)}
    host = Host({**said, "/sitemap-index.xml": SITEMAP})

    found = host.find()

    assert found.resource_list == f"{HOST}/sitemap-index.xml"
    assert found.unanswered == f"{HOST}{place} ({forbidden.message if is_forbidden else 500})"
    with pytest.raises(SourceRefusedError if is_forbidden else SourceUnavailableError):
        Host(said).find()  # what is there may be had another time


def test_an_empty_page_ends_no_search_and_an_empty_answer_may_be_a_list_cut_short() -> None:
    empty = Answer(body=b"", headers={"content-type": "text/html; charset=UTF-8"})

    found = Host({"/": empty, "/sitemap.xml": SITEMAP}).find()

    assert found.resource_list == f"{HOST}/sitemap.xml"
    with pytest.raises(TruncatedDocumentError):
        Host({"/": b"", "/sitemap.xml": SITEMAP}).find()


def test_pages_that_lead_to_pages_end() -> None:
    said: Said = {
        f"/{number}": Answer(body=PAGE, headers={"link": f'</{number + 1}>; rel="resourcesync"'})
        for number in range(100)
    }
    host = Host(said)

    with pytest.raises(SourceNotFoundError):
        host.find("/0")

    assert len(host.asked) <= MOST


@pytest.mark.founding(
    "0.9 §9.3.3", "A Link header of any resource leads to a Capability List", "`pull RESOURCE`"
)
@pytest.mark.parametrize("name", ["a", "a.txt", "a.xml", "a.pdf"])
@pytest.mark.parametrize("body", [b"notes", b"%PDF-1.4", b"\x89PNG\r\n", b"{}", PAGE, b"<x/>"])
def test_a_resource_of_any_type_leads_to_its_set(name: str, body: bytes) -> None:
    answer = Answer(body=body, headers={"link": '</caps.xml>; rel="resourcesync"'})
    host = Host({f"/{name}": answer, "/caps.xml": CAPABILITIES})

    assert host.find(f"/{name}").capability_list == f"{HOST}/caps.xml"


def robots(*targets: str, **said: bytes | str | Answer) -> Host:
    """Return a host whose robots.txt names these; documents by their name without ``.xml``."""
    lines = "".join(f"Sitemap: {target}\n" for target in targets)
    documents = {f"/{name}.xml": what for name, what in said.items()}
    return Host({"/robots.txt": lines, **documents})


def test_of_several_sitemaps_the_one_of_resourcesync_wins_or_their_index() -> None:
    listed = listing("resourcelist", links=[("up", "/caps.xml")])
    refused = Answer(status=403)
    host = robots("/a.xml", "/b.xml", "/c.xml", a=SITEMAP, b=listed, c=refused, caps=CAPABILITIES)
    whole = listing("", ("/a.xml", ""), ("/b.xml", ""), index=True)
    indexed = robots("/a.xml", "/whole.xml", "/b.xml", a=SITEMAP, b=SITEMAP, whole=whole)

    found = host.find()

    assert (found.capability_list, found.is_sitemap) == (f"{HOST}/caps.xml", False)
    assert indexed.find().resource_list == f"{HOST}/whole.xml"


def test_plain_sitemaps_are_one_list_of_which_robots_is_the_index() -> None:
    lines = "".join(f"Sitemap: {name}\n" for name in ("/a.xml", "/b.xml", "/p/c.xml", "/p/d.xml"))
    sitemaps = dict.fromkeys(("/a.xml", "/b.xml", "/p/c.xml", "/p/d.xml"), SITEMAP)
    host = Host({"/robots.txt": lines, "/p/": PAGE, **sitemaps})

    assert host.find().resource_list == f"{HOST}/robots.txt"
    assert [each.uri for each in host.sets()] == [f"{HOST}/robots.txt"]
    assert host.find("/robots.txt").resource_list == f"{HOST}/robots.txt"
    with pytest.raises(SourceNotFoundError, match="robots"):
        host.find("/p/")


def test_sitemaps_of_other_origins_are_asked_for_only_when_allowed() -> None:
    elsewhere = "https://other.example/s.xml"
    said: Said = {"/robots.txt": f"sitemap: {elsewhere}", elsewhere: SITEMAP}

    with pytest.raises(SourceNotFoundError):
        Host(said).find()
    assert Host(said).find("", None, "https://other.example").resource_list == elsewhere


def test_a_hundred_thousand_sitemap_lines_cost_a_bounded_number_of_requests() -> None:
    host = robots(*(f"/{number}.xml" for number in range(100_000)))
    with pytest.raises(DocumentLimitError):
        host.find()
    assert len(host.asked) < 10


@pytest.mark.parametrize("status", [500, 503])
def test_a_robots_file_that_fails_is_no_missing_one(status: int) -> None:
    said: Said = {"/robots.txt": Answer(status=status), "/sitemap.xml": SITEMAP}

    with pytest.raises(SourceUnavailableError):
        Host(said).find()
