"""The roads to a Source, in their order; what was tried on them is told when nothing is found."""

import pytest

from resourcesync.errors import ConfigurationError, SourceNotFoundError, SourceUnavailableError
from tests.support.worlds.discovering import (
    HOST,
    PAGE,
    SITEMAP,
    Host,
    Said,
    capability_list,
    listing,
)
from tests.support.worlds.network import Answer

CAPABILITIES = capability_list()


def test_pages_that_lead_to_pages_end() -> None:
    said: Said = {
        f"/{number}": Answer(body=PAGE, headers={"link": f'</{number + 1}>; rel="resourcesync"'})
        for number in range(100)
    }
    host = Host(said)

    with pytest.raises(SourceNotFoundError):
        host.find("/0")

    assert len(host.asked) < 12


@pytest.mark.founding(
    "0.9 §9.3.3", "A Link header of any resource leads to a Capability List", "`pull RESOURCE`"
)
@pytest.mark.parametrize("name", ["a", "a.txt", "a.xml", "a.pdf"])
@pytest.mark.parametrize("body", [b"notes", b"%PDF-1.4", b"\x89PNG\r\n", b"{}", PAGE, b"<x/>"])
def test_a_resource_of_any_type_leads_to_its_set(name: str, body: bytes) -> None:
    answer = Answer(body=body, headers={"link": '</caps.xml>; rel="resourcesync"'})
    host = Host({f"/{name}": answer, "/caps.xml": CAPABILITIES})

    assert host.find(f"/{name}").capability_list == f"{HOST}/caps.xml"


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
