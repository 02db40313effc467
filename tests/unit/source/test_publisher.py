"""Publishing: what is written, in which order, and when it is cut."""

from datetime import timedelta

import pytest

from resourcesync.errors import StateError
from resourcesync.model.entries import Resource
from resourcesync.model.timestamps import format_w3c
from resourcesync.model.vocabulary import Capability
from resourcesync.source import naming
from resourcesync.source.paging import PageLimits
from tests.support.in_memory import MemoryDocuments
from tests.support.sources.publishing import (
    BASE,
    SMALL,
    Reader,
    Source,
    content_of,
    header_of,
    names_of,
    view,
)


def test_the_first_publication_is_written_children_first_and_the_description_last() -> None:
    source = Source()
    source.put("a", "b")

    publication = source.publish()

    assert publication.first
    assert (publication.created, publication.updated, publication.deleted) == (0, 0, 0)
    assert [(item.name, item.capability, item.entries) for item in publication.written] == [
        (naming.RESOURCE_LIST, Capability.RESOURCE_LIST, 2),
        (naming.CHANGE_LIST, Capability.CHANGE_LIST, 0),
        (naming.CAPABILITY_LIST, Capability.CAPABILITY_LIST, 2),
        (naming.DESCRIPTION, Capability.DESCRIPTION, 1),
    ]
    assert all(item.uri == BASE + item.name for item in publication.written)
    assert {item.name: item.bytes for item in publication.written} == {
        name: len(content) for name, content in source.contents().items()
    }
    found = Reader(source.documents).view()
    assert found.current() == source.truth()
    assert found.at == found.start == source.clock.now()
    assert found.changes == []


def test_nothing_can_be_published_before_a_scan_and_then_also_an_empty_source() -> None:
    source = Source()

    with pytest.raises(StateError, match="nothing was recorded"):
        source.publish_only()

    assert source.contents() == {}
    assert source.publish().first
    assert view(source) == {}


def test_changes_are_added_to_the_one_change_list_and_nothing_else_is_written() -> None:
    source = Source()
    source.put("a", "b", "c")
    source.publish()
    source.put("d", "e")
    source.put("a", content="anew")
    source.remove("b")

    publication = source.publish()

    assert names_of(publication) == [naming.CHANGE_LIST]
    assert (publication.created, publication.updated, publication.deleted) == (2, 1, 1)
    assert not publication.first
    assert publication.written[0].entries == 4
    assert view(source) == source.truth()
    source.remove("c")
    assert source.publish().written[0].entries == 5
    assert view(source) == source.truth()


def test_entries_carry_all_that_is_known_and_deletions_only_their_uri() -> None:
    source = Source()
    source.put("a")
    source.publish()
    (listed,) = Reader(source.documents).view().resources.values()
    (original,) = source.originals.scan()
    assert listed == source.originals.measure(original)[0]
    source.put("b")
    source.remove("a")
    source.publish()

    deleted, created = Reader(source.documents).view().changes

    assert deleted.resource == Resource(uri=BASE + "a")
    (original,) = source.originals.scan()
    assert created.resource == source.originals.measure(original)[0]


@pytest.mark.founding("0.9 §6.1", "URI and time identify each change", "`publish`")
def test_changes_are_dated_to_the_microsecond_and_rise_when_the_clock_steps_back() -> None:
    source = Source()
    source.put("a")
    source.publish()
    at = Reader(source.documents).view().at
    source.clock.set(at - timedelta(hours=1))
    source.put("b", "c")
    source.publish()

    first, second = Reader(source.documents).view().changes

    assert first.time == at + timedelta(microseconds=1)
    assert second.time == at + timedelta(microseconds=2)
    assert format_w3c(first.time) in content_of(source.documents, naming.CHANGE_LIST).decode()


def test_the_same_catalogue_gives_the_same_bytes() -> None:
    item, other = Source(limits=SMALL), Source(limits=SMALL)
    for source in (item, other):
        source.put(*"abcdefg")
        source.publish()
        source.put(*"hijklm")
        source.publish()
    again = MemoryDocuments()

    item.publish_only(again)

    assert item.contents() == other.contents()
    assert content_of(again, naming.CHANGE_LIST) == content_of(other.documents, naming.CHANGE_LIST)


@pytest.mark.founding("D-Lib §2", "A Source that grows has several Resource Lists", "`publish`")
@pytest.mark.parametrize(("count", "parts"), [(4, 2), (6, 2), (7, 3)])
def test_one_entry_more_makes_an_index_over_parts(count: int, parts: int) -> None:
    source = Source(limits=SMALL)
    source.put(*"abcdefg"[:count])

    publication = source.publish()

    assert header_of(source, naming.RESOURCE_LIST).is_index
    stamp = f"{source.clock.now():%Y%m%dT%H%M%S%f}Z"
    assert names_of(publication)[: parts + 1] == [
        *(f"resourcesync/resourcelist-{stamp}-{number:04}.xml" for number in range(1, parts + 1)),
        naming.RESOURCE_LIST,
    ]
    assert publication.written[parts].entries == parts
    assert view(source) == source.truth()


@pytest.mark.conformance("G20")
def test_the_limit_of_bytes_makes_parts_too_and_no_document_exceeds_it() -> None:
    whole = Source()
    whole.put(*"abcdefgh")
    size = next(item.bytes for item in whole.publish().written)
    for limit in (size, size - 1, size // 2, 900):
        source = Source(limits=PageLimits(max_bytes=limit))
        source.put(*"abcdefgh")

        publication = source.publish()

        assert view(source) == source.truth()
        parts = [
            item
            for item in publication.written
            if item.capability is Capability.RESOURCE_LIST and item.name != naming.RESOURCE_LIST
        ]
        assert (len(parts) > 1) is (limit < size)
        assert all(item.bytes <= limit for item in parts)


@pytest.mark.conformance("G19")
@pytest.mark.slow
def test_the_index_begins_exactly_at_fifty_thousand_and_one() -> None:
    source = Source()
    with source.catalogue.record(source.clock.now()) as recording:
        for number in range(50_001):
            recording.created(Resource(uri=f"{BASE}{number:06}"), "f")

    publication = source.publish_only()

    assert header_of(source, naming.RESOURCE_LIST).is_index
    pages = [
        document.entries for document in publication.written if naming.is_replaceable(document.name)
    ]
    assert sorted(pages) == [1, 50_000]


@pytest.mark.founding(
    "D-Lib §5", "A Source holds more changes than one list has room for", "`publish`"
)
def test_the_first_split_makes_the_head_an_index_and_closed_lists_stay_untouched() -> None:
    source = Source(limits=SMALL)
    source.put("a")
    source.publish()
    source.put(*"bcd")
    source.publish()
    capability_list = content_of(source.documents, naming.CAPABILITY_LIST)
    source.put("e")

    publication = source.publish()

    assert names_of(publication) == [
        "resourcesync/changelist-000001.xml",
        "resourcesync/changelist-000002.xml",
        naming.CHANGE_LIST,
    ]
    assert [written.entries for written in publication.written] == [3, 1, 2]
    assert publication.created == 1
    assert header_of(source, naming.CHANGE_LIST).is_index
    assert header_of(source, "resourcesync/changelist-000001.xml").until is not None
    assert header_of(source, "resourcesync/changelist-000002.xml").is_open
    assert content_of(source.documents, naming.CAPABILITY_LIST) == capability_list
    assert view(source) == source.truth()
    closed = content_of(source.documents, "resourcesync/changelist-000001.xml")
    source.put("f")

    assert names_of(source.publish()) == ["resourcesync/changelist-000002.xml"]
    assert view(source) == source.truth()
    source.put(*"ghijk")

    assert names_of(source.publish()) == [
        "resourcesync/changelist-000002.xml",
        "resourcesync/changelist-000003.xml",
        "resourcesync/changelist-000004.xml",
        naming.CHANGE_LIST,
    ]
    assert content_of(source.documents, "resourcesync/changelist-000001.xml") == closed
    assert view(source) == source.truth()


@pytest.mark.conformance("G20")
def test_the_limit_of_bytes_splits_change_lists_too_and_none_exceeds_it() -> None:
    source = Source(limits=PageLimits(max_bytes=1_400))
    source.publish()
    for number in range(12):
        source.put(f"{number}", f"{number}b")
        source.publish()
        assert view(source) == source.truth()

    sizes = {
        name: len(content)
        for name, content in source.contents().items()
        if naming.change_list_number(name)
    }
    assert len(sizes) > 3
    assert all(size <= 1_400 for size in sizes.values())
    assert header_of(source, naming.CHANGE_LIST).is_index
