"""Names of documents, and how many entries go into one."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.errors import ConfigurationError
from resourcesync.source import naming
from resourcesync.source.naming import SourceNaming
from resourcesync.source.paging import PageLimits, Paginator


@pytest.mark.parametrize(
    "uri", ["", "h.example", "ftp://h/", "/data/", "https://h/?q", "https://h/#f", "https://h/a b"]
)
def test_what_is_no_folder_on_the_web_is_refused(uri: str) -> None:
    with pytest.raises(ConfigurationError):
        SourceNaming(base_uri=uri)
    with pytest.raises(ConfigurationError):
        SourceNaming(base_uri="https://h/", documents_uri=uri or "x")


def test_parts_carry_the_moment_so_that_a_name_never_means_two_things() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 67, tzinfo=UTC)

    name = naming.resource_list_part(at, 12)

    assert name == "resourcesync/resourcelist-20260102T030405000067Z-0012.xml"
    assert naming.is_replaceable(name)
    assert naming.change_list_number(name) == 0


@pytest.mark.parametrize(
    "name",
    [
        naming.RESOURCE_LIST, naming.CHANGE_LIST, naming.CAPABILITY_LIST, naming.DESCRIPTION,
        "resourcesync/index.html", "resourcesync/changelist-1.xml", "changelist-000001.xml",
        "resourcesync/changelist-000001.xml.bak", "resourcesync/resourcelist-0001.xml",
    ],
)  # fmt: skip
def test_no_head_and_nothing_of_somebody_else_is_ever_cleared_away(name: str) -> None:
    assert not naming.is_replaceable(name)


@pytest.mark.parametrize(
    ("entries", "size"), [(0, 1), (50_001, 1), (-1, 1), (1, 0), (1, 52_428_801)]
)
def test_limits_beyond_the_specification_are_refused(entries: int, size: int) -> None:
    with pytest.raises(ConfigurationError):
        PageLimits(max_entries=entries, max_bytes=size)


FRAGMENTS = st.lists(st.integers(1, 30).map(lambda size: b"x" * size), max_size=40)


def joined(fragments: Sequence[bytes]) -> bytes:
    return b"".join(fragments)


@given(FRAGMENTS, st.integers(1, 10), st.integers(1, 100), st.integers(0, 20), st.integers(1, 9))
def test_pages_hold_everything_once_in_order_and_each_as_much_as_it_may(
    fragments: list[bytes], entries: int, size: int, overhead: int, block: int
) -> None:
    limits = PageLimits(max_entries=entries, max_bytes=size)
    pages = Paginator(fragments, joined, limits, block=block)
    found = []
    while pages:
        found.append([item for part in pages.page(overhead) for item in part.entries])

    assert [fragment for page in found for fragment in page] == fragments
    for page in found:
        assert page
        assert len(page) == 1 or (len(page) <= entries and overhead + len(joined(page)) <= size)
    for page, following in pairwise(found):
        more = [*page, following[0]]
        assert len(more) > entries or overhead + len(joined(more)) > size
