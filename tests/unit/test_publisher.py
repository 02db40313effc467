"""Publishing: what is written, in which order, when it is cut, and how it heals."""

import re
import threading
from collections.abc import Iterator, Mapping
from datetime import timedelta
from io import BytesIO
from pathlib import Path

import pytest

from resourcesync.adapters.catalogue import FileCatalogue
from resourcesync.adapters.document_files import FolderDocuments
from resourcesync.adapters.memory import ManualClock, MemoryCatalogue, MemoryDocuments
from resourcesync.documents import reading
from resourcesync.errors import StateError, StorageError
from resourcesync.model.capabilities import Header
from resourcesync.model.digests import Digest
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import format_w3c
from resourcesync.model.vocabulary import Capability
from resourcesync.source import naming
from resourcesync.source.paging import Limits
from resourcesync.source.publisher import Publication, Publisher
from tests.support.publishing import (
    BASE,
    DyingDocuments,
    Killed,
    Reader,
    Source,
    content_of,
)

SMALL = Limits(max_entries=3)


def names_of(publication: Publication) -> list[str]:
    return [written.name for written in publication.written]


def view(source: Source) -> dict[str, str]:
    return Reader(source.documents).view().current()


def header_of(source: Source, name: str) -> Header:
    stream = BytesIO(content_of(source.documents, name))
    return reading.read(stream, uri=name).header


# --- the first time ----------------------------------------------------------------------------


def test_the_first_publication_is_written_children_first_and_the_description_last() -> None:
    source = Source()
    source.put("a", "b")

    publication = source.publish()

    assert publication.first
    assert (publication.created, publication.updated, publication.deleted) == (0, 0, 0)
    assert [
        (item.name, item.uri, item.capability, item.entries) for item in publication.written
    ] == [
        (
            "resourcesync/resourcelist.xml",
            BASE + "resourcesync/resourcelist.xml",
            Capability.RESOURCE_LIST,
            2,
        ),
        (
            "resourcesync/changelist.xml",
            BASE + "resourcesync/changelist.xml",
            Capability.CHANGE_LIST,
            0,
        ),
        (
            "resourcesync/capabilitylist.xml",
            BASE + "resourcesync/capabilitylist.xml",
            Capability.CAPABILITY_LIST,
            2,
        ),
        (".well-known/resourcesync", BASE + ".well-known/resourcesync", Capability.DESCRIPTION, 1),
    ]
    assert {item.name: item.bytes for item in publication.written} == {
        name: len(content) for name, content in source.contents().items()
    }
    found = Reader(source.documents).view()
    assert found.current() == source.truth()
    assert found.at == found.start == source.clock.now()
    assert found.changes == []


def test_every_entry_of_the_resource_list_says_all_that_is_known() -> None:
    source = Source()
    source.put("a")
    source.publish()

    (resource,) = Reader(source.documents).view().resources.values()

    (original,) = source.originals.scan()
    assert resource == source.originals.measure(original)[0]
    assert resource.length == 2
    assert resource.lastmod is not None


def test_an_empty_source_is_published_too() -> None:
    source = Source()

    assert source.publish().first

    assert view(source) == {}


def test_nothing_can_be_published_before_a_scan() -> None:
    source = Source()

    with pytest.raises(StateError, match="nothing was recorded"):
        source.publish_only()

    assert source.contents() == {}


def test_documents_may_live_at_another_address() -> None:
    source = Source()
    source.put("a")
    source.scan()

    publication = Publisher(
        source.catalogue,
        source.documents,
        base_uri="https://h.example/data",
        documents_uri="https://lists.example/x",
        clock=source.clock,
    ).publish()

    assert [written.uri for written in publication.written] == [
        "https://lists.example/x/resourcelist.xml",
        "https://lists.example/x/changelist.xml",
        "https://lists.example/x/capabilitylist.xml",
        "https://h.example/data/.well-known/resourcesync",
    ]


# --- later -------------------------------------------------------------------------------------


def test_an_unchanged_source_writes_nothing() -> None:
    source = Source()
    source.put("a")
    source.publish()
    before = source.contents()

    publication = source.publish()

    assert publication == Publication()
    assert source.contents() == before


def test_touching_is_no_change() -> None:
    source = Source()
    source.put("a")
    source.publish()
    source.put("a")

    assert source.publish() == Publication()


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


def test_changes_carry_everything_and_deletions_only_their_uri() -> None:
    source = Source()
    source.put("a")
    source.publish()
    source.put("b")
    source.remove("a")
    source.publish()

    deleted, created = Reader(source.documents).view().changes

    assert deleted.resource == Resource(uri=BASE + "a")
    (original,) = source.originals.scan()
    assert created.resource == source.originals.measure(original)[0]


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
    one, other = Source(limits=SMALL), Source(limits=SMALL)
    for source in (one, other):
        source.put(*"abcdefg")
        source.publish()
        source.put(*"hijklm")
        source.publish()
    again = MemoryDocuments()

    one.publish_only(again)

    assert one.contents() == other.contents()
    assert content_of(again, naming.CHANGE_LIST) == content_of(other.documents, naming.CHANGE_LIST)


# --- more than one document --------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_resource_list_that_fits_is_one_document(count: int) -> None:
    source = Source(limits=SMALL)
    source.put(*"abc"[:count])

    source.publish()

    assert not header_of(source, naming.RESOURCE_LIST).is_index
    assert view(source) == source.truth()


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
        source = Source(limits=Limits(max_bytes=limit))
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


def test_an_entry_larger_than_the_limit_still_gets_a_document() -> None:
    source = Source(limits=Limits(max_bytes=1))
    source.put(*"abc")
    source.publish()
    source.put(*"def")

    source.publish()

    assert view(source) == source.truth()


@pytest.mark.conformance("G19")
@pytest.mark.slow
def test_the_index_begins_exactly_at_fifty_thousand_and_one() -> None:
    class Many:
        def __init__(self, source: Source, count: int) -> None:
            self.now = source.clock.now()
            with source.catalogue.record(self.now) as recording:
                for number in range(count):
                    digest = Digest("sha-256", f"{number:064x}")
                    uri = f"{BASE}{number:06}"
                    recording.created(Resource(uri=uri, length=1, digests=(digest,)), "f")

    for count, parts in ((50_000, 0), (50_001, 2)):
        source = Source()
        Many(source, count)

        publication = source.publish_only()

        assert header_of(source, naming.RESOURCE_LIST).is_index is bool(parts)
        assert sum(
            item.entries for item in publication.written if item.entries > 2
        ) == count - bool(parts)
        assert len(Reader(source.documents).view().resources) == count


def test_the_first_split_keeps_the_head_and_makes_it_an_index() -> None:
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


def test_after_the_split_changes_go_into_the_open_list_alone() -> None:
    source = Source(limits=SMALL)
    source.publish()
    source.put(*"abcd")
    source.publish()
    source.put("e")

    assert names_of(source.publish()) == ["resourcesync/changelist-000002.xml"]
    assert view(source) == source.truth()


def test_a_later_split_closes_the_open_list_in_place_and_never_touches_closed_ones() -> None:
    source = Source(limits=SMALL)
    source.publish()
    source.put(*"abcdef")
    source.publish()
    closed = content_of(source.documents, "resourcesync/changelist-000001.xml")
    source.put(*"ghijk")

    publication = source.publish()

    assert names_of(publication) == [
        "resourcesync/changelist-000002.xml",
        "resourcesync/changelist-000003.xml",
        "resourcesync/changelist-000004.xml",
        naming.CHANGE_LIST,
    ]
    assert content_of(source.documents, "resourcesync/changelist-000001.xml") == closed
    assert view(source) == source.truth()


@pytest.mark.conformance("G20")
def test_the_limit_of_bytes_splits_change_lists_too_and_none_exceeds_it() -> None:
    source = Source(limits=Limits(max_bytes=1_400))
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


def test_other_limits_leave_what_is_closed_as_it_is() -> None:
    source = Source(limits=SMALL)
    source.publish()
    source.put(*"abcd")
    source.publish()
    closed = content_of(source.documents, "resourcesync/changelist-000001.xml")
    source.limits = Limits(max_entries=2)
    source.put(*"efgh")
    source.publish()
    source.limits = Limits()
    source.put(*"ijkl")
    source.publish()

    assert content_of(source.documents, "resourcesync/changelist-000001.xml") == closed
    assert view(source) == source.truth()


# --- healing -----------------------------------------------------------------------------------


def split_source() -> Source:
    """A Source with parts, a closed Change List and an open one."""
    source = Source(limits=SMALL)
    source.put(*"abcdefg")
    source.publish()
    source.put(*"hijk")
    source.publish()
    return source


@pytest.mark.parametrize("number", range(9))
@pytest.mark.parametrize("harm", ["lost", "altered"])
def test_what_is_lost_or_altered_is_written_again(number: int, harm: str) -> None:
    source = split_source()
    before = source.contents()
    assert len(before) == 9
    name = list(before)[number]
    if harm == "lost":
        source.documents.delete(name)
    else:
        source.documents.write(name, [b"?"])

    publication = source.publish()

    if "resourcelist" in name:
        assert naming.RESOURCE_LIST in names_of(publication)
    else:
        assert names_of(publication) == [name]
        assert source.contents() == before
    assert view(source) == source.truth()
    assert source.publish() == Publication()


def test_a_lost_resource_list_is_replaced_by_one_of_the_present_state() -> None:
    source = split_source()
    old = header_of(source, naming.RESOURCE_LIST).at
    source.documents.delete(naming.RESOURCE_LIST)
    source.put("z")

    publication = source.publish()

    found = Reader(source.documents).view()
    assert publication.created == 1
    assert len(found.resources) == 12
    assert old is not None
    assert found.at > old
    assert found.start == old  # the Change Lists still reach back to the old one


def test_documents_that_were_copied_with_other_times_are_recognised_by_their_bytes() -> None:
    source = split_source()
    for name, content in source.contents().items():
        source.documents.write(name, [content])  # a new signature
    before = source.contents()

    assert source.publish() == Publication()
    assert source.contents() == before
    assert source.publish() == Publication()


def test_another_base_writes_every_document_anew() -> None:
    source = split_source()

    publication = Publisher(
        source.catalogue,
        source.documents,
        base_uri=BASE,
        documents_uri="https://lists.example/",
        clock=source.clock,
        limits=SMALL,
    ).publish()

    assert len(publication.written) == 10
    for written in publication.written:
        content = content_of(source.documents, written.name)
        assert b"https://h.example/data/resourcesync/" not in content


def test_a_catalogue_that_was_started_anew_never_reuses_a_name() -> None:
    source = split_source()
    before = source.contents()
    fresh = Source(limits=SMALL, documents=source.documents, clock=source.clock)
    fresh.put(*"abcdefgh")

    fresh.publish()
    fresh.put(*"pqrs")
    publication = fresh.publish()

    assert names_of(publication)[0] == "resourcesync/changelist-000003.xml"
    after = fresh.contents()
    assert all(after[name] == before[name] for name in before if naming.is_replaceable(name))
    assert view(fresh) == fresh.truth()


def test_what_is_no_longer_listed_is_removed_after_a_day_and_not_before() -> None:
    source = split_source()
    source.documents.write("resourcesync/notes.xml", [b"mine"])
    old = [name for name in source.documents.names() if "resourcelist-" in name]
    source.documents.delete(naming.RESOURCE_LIST)
    source.put("z")
    source.publish()
    assert set(old) <= set(source.documents.names())

    source.clock.advance(hours=23)
    source.publish()
    assert set(old) <= set(source.documents.names())

    source.clock.advance(hours=1)
    source.publish()
    assert not set(old) & set(source.documents.names())
    assert "resourcesync/notes.xml" in source.documents.names()
    assert view(source) == source.truth()


# --- killed ------------------------------------------------------------------------------------


def edits(source: Source) -> Iterator[None]:
    """What happens to a Source over time; with limits of 3 every kind of step is among them."""
    source.put(*"abcdefg")
    yield  # parts and an index
    source.put("h", "i")
    yield  # the open list grows
    source.put("j", "a", content="anew")
    source.remove("b")
    yield  # the first split
    source.put(*"klmnopq")
    yield  # several more at once
    source.documents.delete(naming.RESOURCE_LIST)
    source.put("r")
    yield  # the Resource List is lost
    source.clock.advance(hours=25)
    yield  # old parts are removed


def run(source: Source, rounds: int) -> None:
    for number, _ in enumerate(edits(source), start=1):
        if number == rounds:
            return
        source.publish()


@pytest.mark.parametrize("rounds", range(1, 7))
@pytest.mark.parametrize("meanwhile", ["quiet", "edited", "roomier"])
def test_a_publisher_killed_at_any_step_is_healed_by_the_next(rounds: int, meanwhile: str) -> None:
    undisturbed = Source(limits=SMALL)
    run(undisturbed, rounds)
    undisturbed.publish()
    outcomes = []
    for steps in range(100):
        source = Source(limits=SMALL)
        run(source, rounds)
        dying = DyingDocuments(source.documents, steps)
        try:
            source.publish(dying)
        except Killed:
            outcomes.append("killed")
        else:
            break
        heads = (naming.DESCRIPTION, naming.RESOURCE_LIST)  # round 5 begins with one lost
        if all(source.documents.signature(name) is not None for name in heads):
            Reader(source.documents).view()
        if meanwhile == "edited":
            source.put("s", "t", "u", "v", "c", content="meanwhile")
            source.remove("d")
            source.scan()
        if meanwhile == "roomier":
            source.limits = Limits()

        source.publish_only()

        assert view(source) == source.truth(), steps
        if meanwhile == "quiet":
            assert source.contents() == undisturbed.contents()
        assert source.publish_only().written == ()
    assert len(outcomes) >= 3


class Forgetful(MemoryCatalogue):
    """A catalogue whose process is killed when it takes its n-th note from now on."""

    kills_in = 0

    def write_notes(self, notes: Mapping[str, str]) -> None:
        self.kills_in -= 1
        if self.kills_in == 0:
            raise Killed
        super().write_notes(notes)


@pytest.mark.parametrize("kills_in", [1, 2])
@pytest.mark.parametrize("rounds", range(1, 6))
def test_a_publisher_killed_while_it_takes_notes_is_healed_by_the_next(
    rounds: int, kills_in: int
) -> None:
    catalogue = Forgetful()
    source = Source(limits=SMALL, catalogue=catalogue)
    run(source, rounds)
    catalogue.kills_in = kills_in
    with pytest.raises(Killed):
        source.publish()

    source.put("late")
    source.publish()

    assert view(source) == source.truth()
    assert source.publish() == Publication()


def test_a_full_disk_leaves_what_is_public_and_the_next_run_goes_on() -> None:
    class Full(MemoryDocuments):
        full = False

        def write(self, name: str, chunks: object) -> int:
            if self.full and "000003" in name:
                raise StorageError("no space left")
            return super().write(name, chunks)  # type: ignore[arg-type]  # passed on

    documents = Full()
    source = Source(limits=SMALL, documents=documents)
    source.publish()
    source.put(*"abcd")
    source.publish()
    documents.full = True
    source.put(*"efghi")

    with pytest.raises(StorageError, match="no space"):
        source.publish()

    Reader(documents).view()
    documents.full = False
    source.publish()
    assert view(source) == source.truth()


@pytest.mark.parametrize("key", ["publication-plan", "publication-record"])
@pytest.mark.parametrize("text", ["", "[]", "{}", '{"closed": 1}', '{"documents": {"a": 1}}'])
def test_damaged_bookkeeping_is_told_of_and_changes_nothing(key: str, text: str) -> None:
    source = split_source()
    before = source.contents()
    source.catalogue.write_notes({key: text})

    with pytest.raises(StateError, match="damaged"):
        source.publish_only()

    assert source.contents() == before


# --- readers meanwhile -------------------------------------------------------------------------


def test_a_reader_that_follows_links_always_finds_a_consistent_set() -> None:
    source = Source(limits=SMALL)
    source.put(*"abcd")
    source.publish()
    views = []
    failures: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                views.append(Reader(source.documents).view())
        except BaseException as error:  # noqa: BLE001 - it is shown by the test's own thread
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(60):
        source.put(f"n{number}", f"m{number % 5}", content=str(number))
        if number % 3 == 0:
            source.remove(f"n{number // 2}")
        if number % 20 == 19:
            source.documents.write(naming.RESOURCE_LIST + ".gone", [])
        source.publish()
    done.set()
    for reader in readers:
        reader.join()

    assert failures == []
    with source.catalogue.snapshot() as snapshot:
        log = [change for _, change in snapshot.changes()]
    assert len(views) > 10
    for found in views:
        assert found.changes == log[: len(found.changes)]
        found.current()
    assert view(source) == source.truth()


# --- on the disk -------------------------------------------------------------------------------


def on_disk(tmp_path: Path, catalogue: FileCatalogue) -> Source:
    return Source(limits=SMALL, catalogue=catalogue, documents=FolderDocuments(tmp_path))


def test_the_adapters_for_files_publish_the_same_bytes_as_those_in_memory(tmp_path: Path) -> None:
    with FileCatalogue(tmp_path / ".resourcesync/catalogue.db", ManualClock()) as catalogue:
        on_files, in_memory = on_disk(tmp_path, catalogue), Source(limits=SMALL)
        for source in (on_files, in_memory):
            run(source, 6)
            source.publish()

        assert on_files.contents() == in_memory.contents()
        assert on_files.publish() == Publication()
        assert view(on_files) == on_files.truth()


def test_a_document_altered_on_the_disk_is_noticed_and_written_again(tmp_path: Path) -> None:
    with FileCatalogue(tmp_path / ".resourcesync/catalogue.db", ManualClock()) as catalogue:
        source = on_disk(tmp_path, catalogue)
        run(source, 4)
        source.publish()
        path = tmp_path / "resourcesync/changelist-000001.xml"
        before = path.read_bytes()
        path.write_bytes(before.replace(b"created", b"updated"))

        publication = source.publish()

    assert names_of(publication) == ["resourcesync/changelist-000001.xml"]
    assert path.read_bytes() == before


def test_documents_name_no_time_but_those_of_the_catalogue() -> None:
    source = split_source()

    texts = b"".join(source.contents().values()).decode()

    assert not re.search(r"completed=", texts)
