"""Addresses in documents and fields that no program can split: refused by name, not by a crash."""

from io import BytesIO

import pytest

from resourcesync.adapters.http.addresses import parse_address
from resourcesync.destination.lists.list_documents import parts_of
from resourcesync.discovery.links import find_target
from resourcesync.documents.reader import read
from resourcesync.errors import ResourceSyncError, SourceRefusedError
from tests.support.documents.text import URI, document
from tests.support.worlds.discovering import HOST, Host

UNSPLITTABLE = ["http://[", "http://[::1", "http://\u2100/"]


def listing(capability: str, *children: str, root: str = "urlset") -> bytes:
    return document(*children, root=root, md=f'<rs:md capability="{capability}"/>')


@pytest.mark.parametrize("target", [*UNSPLITTABLE, "//[x]/"])
def test_a_link_field_with_such_a_target_leads_nowhere(target: str) -> None:
    assert find_target(f"<{target}>; rel=resourcesync", "resourcesync", f"{HOST}/") is None


@pytest.mark.parametrize(
    ("listed", "capability"),
    [("description", "capabilitylist"), ("capabilitylist", "resourcelist")],
)
@pytest.mark.parametrize("target", UNSPLITTABLE)
def test_a_document_that_leads_to_such_an_address_is_an_error_of_ours(
    target: str, listed: str, capability: str
) -> None:
    entry = f'<url><loc>{target}</loc><rs:md capability="{capability}"/></url>'

    with pytest.raises(ResourceSyncError):
        Host({"/a.xml": listing(listed, entry)}).find("/a.xml")


@pytest.mark.parametrize("relation", ["up", "index"])
@pytest.mark.parametrize("target", UNSPLITTABLE)
def test_a_list_whose_link_leads_to_such_an_address_spoils_nothing(
    target: str, relation: str
) -> None:
    link = f'<rs:ln rel="{relation}" href="{target}"/>'

    Host({"/list.xml": listing("resourcelist", link)}).find("/list.xml")


@pytest.mark.parametrize("target", UNSPLITTABLE)
def test_a_part_of_an_index_at_such_an_address_is_refused_when_it_is_asked_for(target: str) -> None:
    entry = f"<sitemap><loc>{target}</loc></sitemap>"
    opened = read(BytesIO(listing("resourcelist", entry, root="sitemapindex")), uri=URI)

    (part,) = parts_of(opened)
    with pytest.raises(SourceRefusedError):
        parse_address(part)
