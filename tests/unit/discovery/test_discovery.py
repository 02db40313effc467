"""Finding a Source's lists: what is there and broken is never replaced by something weaker."""

from io import BytesIO
from typing import Any

import pytest

from resourcesync.discovery.discover import discover
from resourcesync.discovery.document_fetcher import DocumentFetcher
from resourcesync.discovery.links import find_target
from resourcesync.discovery.sets import SourceLists
from resourcesync.errors import (
    ConfigurationError,
    DocumentError,
    MalformedDocumentError,
    NotAListError,
    ResourceSyncError,
    SourceNotFoundError,
    SourceRefusedError,
    SourceUnavailableError,
)
from tests.support.worlds.network import Answer, MemoryFetcher

HOST = "http://h.example"
SITEMAP = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"></urlset>'
PAGE = b"<!DOCTYPE html><html><title>Welcome</title></html>"


def document(capability: str, *entries: tuple[str, str]) -> bytes:
    rows = "".join(
        f'<url><loc>{HOST}/{name}</loc><rs:md capability="{of}"/></url>' for name, of in entries
    )
    return (
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
        ' xmlns:rs="http://www.openarchives.org/rs/terms/">'
        f'<rs:md capability="{capability}"/>{rows}</urlset>'
    ).encode()


DESCRIPTION = document("description", ("capabilities.xml", "capabilitylist"))
CAPABILITIES = document("capabilitylist", ("list.xml", "resourcelist"))


def find(address: str, **answers: Any) -> SourceLists:
    """Discover, at a host that answers as told and 404 otherwise."""

    def serve(uri: str) -> Answer:
        known = answers.get(uri.removeprefix(HOST).strip("/").replace("/", "_") or "root")
        return Answer(body=known) if isinstance(known, bytes) else known or Answer(status=404)

    fetcher = MemoryFetcher(lambda request: serve(request.uri))
    return discover(DocumentFetcher(fetcher, BytesIO), address)


KNOWN: dict[str, Answer | bytes] = {
    ".well-known_resourcesync": DESCRIPTION,
    "capabilities.xml": CAPABILITIES,
}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(status=404), SourceNotFoundError),
        (Answer(status=403), SourceRefusedError),
        (Answer(status=401), SourceRefusedError),
        (Answer(status=503), SourceUnavailableError),
        (Answer(body=PAGE), NotAListError),
        (Answer(body=b""), DocumentError),
        (Answer(body=b"<urlset"), DocumentError),
        (Answer(body=SITEMAP + SITEMAP), MalformedDocumentError),
    ],
    ids=["404", "403", "401", "503", "a page", "nothing", "cut short", "two in one"],
)
def test_a_list_that_was_named_is_that_list_or_an_error(
    answer: Answer, error: type[ResourceSyncError]
) -> None:
    with pytest.raises(error):
        find(f"{HOST}/list.xml", **{"list.xml": answer, "sitemap.xml": SITEMAP}, **KNOWN)


@pytest.mark.parametrize(
    "broken",
    [Answer(status=503), Answer(status=401), Answer(body=b"<urlset"), Answer(body=SITEMAP * 2)],
    ids=["503", "401", "cut short", "two in one"],
)
@pytest.mark.parametrize("which", [".well-known_resourcesync", "capabilities.xml"])
def test_a_source_whose_documents_are_broken_is_not_taken_for_a_plain_site(
    broken: Answer, which: str
) -> None:
    with pytest.raises(ResourceSyncError):
        find(HOST, **(KNOWN | {which: broken, "sitemap.xml": SITEMAP}))


def test_several_sets_are_told_and_none_is_chosen() -> None:
    two = document("description", ("a.xml", "capabilitylist"), ("b.xml", "capabilitylist"))

    with pytest.raises(ConfigurationError) as caught:
        find(HOST, **{".well-known_resourcesync": two})

    assert [text for label, text in caught.value.evidence if label == "set"] == [
        f"1  a  {HOST}/a.xml",
        f"2  b  {HOST}/b.xml",
    ]


@pytest.mark.parametrize("address", ["ftp://h/", "h.example", "/a/path", "http://", "file:///x"])
def test_only_addresses_of_the_web_are_followed(address: str) -> None:
    with pytest.raises(ConfigurationError):
        find(address)


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ('<a>; rel="resourcesync"', "http://h/d/a"),
        ("<a>; rel=resourcesync", "http://h/d/a"),
        ('<a>; rel="next resourcesync"', "http://h/d/a"),
        ('<x>; rel="next", </a>; REL=ResourceSync', "http://h/a"),
        ('<a>; title="x, <y>; rel=resourcesync"; rel="next"', None),
        ('<a>; rel="resourcesync"; anchor="http://other/"', None),
        ('<a; rel="resourcesync"', None),
        ('<a>; title="unbalanced; rel=resourcesync', None),
        ("", None),
    ],
)
def test_the_link_field_is_read_as_rfc_8288_says(field: str, expected: str | None) -> None:
    assert find_target(field, "resourcesync", "http://h/d/page") == expected


def test_a_link_field_without_end_is_read_in_bounded_time() -> None:
    assert (
        find_target('<a>; rel="x", ' * 100_000 + '<b>; rel="resourcesync"', "resourcesync", "")
        is None
    )
