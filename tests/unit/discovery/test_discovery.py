"""Finding a Source's lists: what is there and broken is never replaced by something weaker."""

import pytest

from resourcesync.discovery.links import find_target
from resourcesync.discovery.resolver import discover
from resourcesync.errors import ConfigurationError
from tests.support.worlds.discovering import Host


@pytest.mark.parametrize("address", ["ftp://h/", "h.example", "/a/path", "http://", "file:///x"])
def test_only_addresses_of_the_web_are_followed(address: str) -> None:
    with pytest.raises(ConfigurationError):
        discover(Host({}).documents, address)


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
