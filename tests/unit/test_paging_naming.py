"""Names of documents, and how many entries go into one."""

import itertools
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.errors import ConfigurationError
from resourcesync.source import naming
from resourcesync.source.naming import Naming
from resourcesync.source.paging import Limits, Pages


@pytest.mark.parametrize("base", ["https://h.example/data", "https://h.example/data/"])
def test_documents_are_below_the_base_and_the_description_at_the_well_known_place(
    base: str,
) -> None:
    names = Naming(base_uri=base)

    assert names.uri(naming.RESOURCE_LIST) == "https://h.example/data/resourcesync/resourcelist.xml"
    assert names.uri(naming.CHANGE_LIST) == "https://h.example/data/resourcesync/changelist.xml"
    assert names.uri(naming.DESCRIPTION) == "https://h.example/data/.well-known/resourcesync"


def test_documents_may_be_somewhere_else() -> None:
    names = Naming(base_uri="https://h.example", documents_uri="https://lists.example/h")

    assert names.uri(naming.CAPABILITY_LIST) == "https://lists.example/h/capabilitylist.xml"
    assert names.uri(naming.DESCRIPTION) == "https://h.example/.well-known/resourcesync"


@pytest.mark.parametrize(
    "uri", ["", "h.example", "ftp://h/", "/data/", "https://h/?q", "https://h/#f", "https://h/a b"]
)
def test_what_is_no_folder_on_the_web_is_refused(uri: str) -> None:
    with pytest.raises(ConfigurationError):
        Naming(base_uri=uri)
    with pytest.raises(ConfigurationError):
        Naming(base_uri="https://h/", documents_uri=uri or "x")


def test_parts_carry_the_moment_so_that_a_name_never_means_two_things() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 67, tzinfo=UTC)

    name = naming.resource_list_part(at, 12)

    assert name == "resourcesync/resourcelist-20260102T030405000067Z-0012.xml"
    assert naming.is_replaceable(name)
    assert naming.change_list_number(name) == 0


@pytest.mark.parametrize("number", [1, 999_999, 1_000_000])
def test_change_lists_are_numbered(number: int) -> None:
    name = naming.change_list(number)

    assert naming.change_list_number(name) == number
    assert naming.is_replaceable(name)


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
        Limits(max_entries=entries, max_bytes=size)


def test_the_limits_of_the_specification_are_the_default() -> None:
    assert Limits().allow(50_000, 52_428_800)
    assert not Limits().allow(50_001, 52_428_800)
    assert not Limits().allow(50_000, 52_428_801)


FRAGMENTS = st.lists(st.integers(1, 30).map(lambda size: b"x" * size), max_size=40)


@given(FRAGMENTS, st.integers(1, 10), st.integers(1, 100), st.integers(0, 20))
def test_pages_hold_everything_once_in_order_and_each_as_much_as_it_may(
    fragments: list[bytes], entries: int, size: int, overhead: int
) -> None:
    limits = Limits(max_entries=entries, max_bytes=size)
    pages = Pages(fragments, limits, overhead)

    found = []
    while pages:
        found.append(list(pages.page()))

    assert [fragment for page in found for fragment in page] == fragments
    for page in found:
        assert page
        assert len(page) == 1 or (len(page) <= entries and overhead + len(b"".join(page)) <= size)
    for page, following in itertools.pairwise(found):
        more = [*page, following[0]]
        assert len(more) > entries or overhead + len(b"".join(more)) > size


def test_pages_read_no_further_than_one_entry_ahead() -> None:
    taken = []

    def fragments() -> object:
        for number in range(10):
            taken.append(number)
            yield b"x"

    pages = Pages(fragments(), Limits(max_entries=3), 0)  # type: ignore[arg-type]  # a generator

    list(pages.page())

    assert taken == [0, 1, 2, 3]
    assert pages
