"""Finding a Source's lists: what is there and broken is never replaced by something weaker."""

from io import BytesIO
from typing import Any

import pytest

from resourcesync.discovery.discover import discover
from resourcesync.discovery.document_fetcher import DocumentFetcher
from resourcesync.discovery.links import find_target
from resourcesync.discovery.sets import SourceLists
from resourcesync.errors import ConfigurationError
from tests.support.worlds.network import Answer, MemoryFetcher

HOST = "http://h.example"


def find(address: str, **answers: Any) -> SourceLists:
    """Discover, at a host that answers as told and 404 otherwise."""

    def serve(uri: str) -> Answer:
        known = answers.get(uri.removeprefix(HOST).strip("/").replace("/", "_") or "root")
        return Answer(body=known) if isinstance(known, bytes) else known or Answer(status=404)

    fetcher = MemoryFetcher(lambda request: serve(request.uri))
    return discover(DocumentFetcher(fetcher, BytesIO), address)


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
