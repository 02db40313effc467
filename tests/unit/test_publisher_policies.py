"""When lists are closed, dropped, archived and written anew; the steps that DSpace had."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import BinaryIO

import pytest

from resourcesync.adapters.memory import ManualClock, MemoryDocuments
from resourcesync.documents import reading
from resourcesync.errors import ConfigurationError, DiskFullError, StorageError
from resourcesync.model.capabilities import CapabilityEntry, Part
from resourcesync.model.vocabulary import Capability, Dialect, Relation
from resourcesync.source import ledger, naming, policy
from resourcesync.source.ledger import Offer
from resourcesync.source.paging import Limits
from resourcesync.source.policy import ChangeLists, Policy, Step
from resourcesync.source.publisher import Publication
from tests.support.publishing import (
    DOCUMENTS,
    DyingDocuments,
    Killed,
    Reader,
    Source,
    content_of,
    header_of,
    names_of,
    view,
)

HOUR = 3_600_000_000
DAY = 24 * HOUR
ABOUT = naming.ABOUT


def files_of(source: Source) -> list[str]:
    """The folder of documents, as ``ls`` shows it, but for the page about the set."""
    names = [name for name in source.documents.names() if name.startswith("resourcesync/")]
    return sorted(name.removeprefix("resourcesync/") for name in names if name != ABOUT)


def offered(source: Source) -> list[Capability | None]:
    with source.documents.open(naming.CAPABILITY_LIST) as stream:  # type: ignore[union-attr]
        entries = list(reading.read(stream, uri="x").entries())
    return [entry.capability for entry in entries if isinstance(entry, CapabilityEntry)]


def parts_of(source: Source, name: str) -> list[Part]:
    with source.documents.open(name) as stream:  # type: ignore[union-attr]
        return [item for item in reading.read(stream, uri=name).entries() if isinstance(item, Part)]


# --- DSpace, 2013 -------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", [Dialect.V1_1, Dialect.V0_6])
@pytest.mark.parametrize(
    ("shape", "head"),
    [(ChangeLists.ARCHIVE, "changelistarchive.xml"), (ChangeLists.PER_RUN, "changelist.xml")],
)
def test_the_steps_of_dspace_leave_the_files_of_dspace(
    shape: ChangeLists, head: str, dialect: Dialect
) -> None:
    clock = ManualClock(datetime(2013, 5, 22, 17, 0, 0, tzinfo=UTC))
    source = Source(clock=clock, policy=Policy(change_lists=shape, dialect=dialect))
    source.put("item/1", "item/2")
    lists = {
        ChangeLists.ARCHIVE: Capability.CHANGE_LIST_ARCHIVE,
        ChangeLists.PER_RUN: Capability.CHANGE_LIST,
    }

    source.publish(step=Step.INITIALISE)

    assert files_of(source) == ["capabilitylist.xml", "resourcelist.xml"]
    assert offered(source) == [Capability.RESOURCE_LIST]
    first = content_of(source.documents, naming.RESOURCE_LIST)

    clock.set(datetime(2013, 5, 22, 17, 20, 39, tzinfo=UTC))
    source.put("item/3")
    source.publish(step=Step.UPDATE)

    assert files_of(source) == sorted(
        ["capabilitylist.xml", "resourcelist.xml", head, "changelist_2013-05-22T172139.000001Z.xml"]
    )
    assert offered(source) == [Capability.RESOURCE_LIST, lists[shape]]
    assert content_of(source.documents, naming.RESOURCE_LIST) == first

    clock.set(datetime(2013, 5, 22, 17, 37, 37, tzinfo=UTC))
    source.remove("item/1")
    source.publish(step=Step.REBASE)

    assert files_of(source) == sorted(
        [
            "capabilitylist.xml",
            "resourcelist.xml",
            head,
            "changelist_2013-05-22T172139.000001Z.xml",
            "changelist_2013-05-22T173837.000001Z.xml",
        ]
    )
    assert content_of(source.documents, naming.RESOURCE_LIST) != first
    assert [part.uri for part in parts_of(source, f"resourcesync/{head}")] == [
        f"{DOCUMENTS}changelist_2013-05-22T172139.000001Z.xml",
        f"{DOCUMENTS}changelist_2013-05-22T173837.000001Z.xml",
    ]


def test_an_update_without_changes_writes_an_empty_list_of_its_time() -> None:
    source = Source(policy=Policy(change_lists=ChangeLists.PER_RUN))
    source.put("a")
    source.publish()
    began = source.clock.now()
    source.publish()

    publication = source.publish()

    (last,) = [item for item in publication.written if "changelist_" in item.name]
    header = header_of(source, last.name)
    assert last.entries == 0
    assert header.until == source.clock.now()
    assert header.from_ == began + timedelta(seconds=60)
    assert last.name == naming.dated_change_list(source.clock.now())
    assert ":" not in last.name


def test_a_run_that_was_killed_in_the_first_publication_begins_no_list() -> None:
    source = Source(policy=Policy(change_lists=ChangeLists.PER_RUN))
    source.put("a")
    with pytest.raises(Killed):
        source.publish(DyingDocuments(source.documents, 4))

    source.publish()

    assert not [name for name in files_of(source) if name.startswith("changelist")]


def test_starting_over_lists_no_change_and_uses_no_name_again() -> None:
    source = Source(limits=Limits(max_entries=2))
    source.put("a")
    source.publish()
    source.put(*"bcdef")
    source.publish()
    before = set(files_of(source))

    publication = source.publish(step=Step.INITIALISE)

    assert (publication.created, publication.first) == (0, False)
    found = Reader(source.documents).view()
    assert found.changes == []
    assert found.at == found.start == source.clock.now()
    source.put(*"ghijk")
    source.publish()
    fresh = {name for name in files_of(source) if name.startswith("changelist-")} - before
    assert len(fresh) == 3
    assert view(source) == source.truth()


# --- rotation -----------------------------------------------------------------------------------


def test_an_open_list_is_closed_at_its_age_and_an_empty_one_never() -> None:
    source = Source(policy=Policy(rotate=6 * HOUR))
    source.put("a")
    source.publish()
    source.clock.advance(hours=48)
    assert source.publish() == Publication()  # nothing to close
    source.put("b")
    source.publish()
    changed = source.clock.now()
    assert not header_of(source, naming.CHANGE_LIST).is_index

    source.put("c")
    publication = source.publish()

    assert names_of(publication) == [
        "resourcesync/changelist-000001.xml",
        "resourcesync/changelist-000002.xml",
        naming.CHANGE_LIST,
    ]
    assert header_of(source, "resourcesync/changelist-000001.xml").until == changed
    assert header_of(source, "resourcesync/changelist-000002.xml").from_ == changed
    assert view(source) == source.truth()


def test_a_clock_that_steps_back_over_a_rotation_dates_no_change_before_the_list() -> None:
    source = Source(policy=Policy(rotate=HOUR, change_lists=ChangeLists.APPEND))
    source.put("a")
    source.publish()
    for hours in (2, -30, 2, 40, -1):
        source.clock.set(source.clock.now() + timedelta(hours=hours))
        source.put("a", content=str(hours))
        source.put("b", content=str(hours))
        source.publish()
        assert view(source) == source.truth()


def test_a_rebase_without_changes_is_of_a_later_moment() -> None:
    source = Source(policy=Policy(rebase=DAY))
    source.put("a")
    source.publish()
    at = Reader(source.documents).view().at
    source.clock.advance(hours=23)
    assert source.publish() == Publication()

    source.clock.advance(hours=1)
    publication = source.publish()

    assert names_of(publication) == [naming.RESOURCE_LIST]
    found = Reader(source.documents).view()
    assert found.at == source.clock.now() > at
    assert found.start == at


def test_update_writes_no_resource_list_however_old_it_is() -> None:
    source = Source(policy=Policy(rebase=DAY))
    source.put("a")
    source.publish()
    source.clock.advance(hours=100)
    source.put("b")

    assert names_of(source.publish(step=Step.UPDATE)) == [naming.CHANGE_LIST]
    assert naming.RESOURCE_LIST in names_of(source.publish())


# --- retention ----------------------------------------------------------------------------------


def test_old_lists_are_dropped_once_nobody_can_need_them_and_removed_a_day_later() -> None:
    source = Source(policy=Policy(rotate=HOUR, keep=3 * HOUR))
    source.put("a")
    source.publish()
    for number in range(8):
        source.clock.advance(hours=2)
        source.put("a", content=str(number))
        source.publish()
    listed = parts_of(source, naming.CHANGE_LIST)
    assert len(listed) == 8  # the Resource List is as old as they are

    source.publish(step=Step.REBASE)
    assert len(parts_of(source, naming.CHANGE_LIST)) == 9  # somebody may just have read the old one

    source.clock.advance(hours=25)
    source.publish()
    left = parts_of(source, naming.CHANGE_LIST)
    assert len(left) == 2  # one that is closed, and the open one
    assert "changelist-000001.xml" in files_of(source)

    source.clock.advance(hours=25)
    source.publish()
    assert [name for name in files_of(source) if name.startswith("changelist-")] == [
        part.uri.removeprefix(DOCUMENTS) for part in left
    ]
    assert view(source) == source.truth()


def test_a_dump_that_is_offered_keeps_the_lists_that_lead_on_from_it() -> None:
    source = Source(policy=Policy(rotate=HOUR, keep=HOUR, rebase=HOUR))
    source.put("a")
    source.publish()
    at = Reader(source.documents).view().at
    dump = Offer(
        capability=Capability.RESOURCE_DUMP,
        name="resourcesync/resourcedump.xml",
        documents=("resourcesync/changelist_2000-01-01T000000Z.xml",),
        at=int(at.timestamp() * 1_000_000),
    )
    source.documents.write(dump.name, [b"?"])
    source.documents.write(dump.documents[0], [b"?"])
    ledger.write_offers(source.catalogue, [dump])

    for number in range(6):
        source.clock.advance(hours=30)
        source.put("a", content=str(number))
        source.publish()

    assert parts_of(source, naming.CHANGE_LIST)[0].from_ == at
    assert offered(source) == [
        Capability.RESOURCE_LIST,
        Capability.RESOURCE_DUMP,
        Capability.CHANGE_LIST,
    ]
    assert set(source.documents.names()) >= {dump.name, *dump.documents}

    ledger.write_offers(source.catalogue, [])
    source.publish()
    assert parts_of(source, naming.CHANGE_LIST)[0].from_ != at
    assert Capability.RESOURCE_DUMP not in offered(source)


def test_an_index_never_holds_more_lists_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "MOST_LISTS", 5)
    source = Source(policy=Policy(change_lists=ChangeLists.PER_RUN))
    source.put("a")
    source.publish()
    rebased = 0
    for number in range(40):
        source.clock.advance(hours=5)
        source.put("a", content=str(number))
        rebased += naming.RESOURCE_LIST in names_of(source.publish())
        assert view(source) == source.truth()
        assert len(parts_of(source, naming.CHANGE_LIST)) <= 5 + 6  # those of a day that is over
    assert 2 < rebased < 20


# --- archives -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 9])
def test_what_is_superseded_goes_into_archives_for_its_time(count: int) -> None:
    source = Source(
        limits=Limits(max_entries=4),
        policy=Policy(rotate=HOUR, keep=30 * HOUR, rebase=20 * HOUR, archive=5 * DAY),
    )
    source.put(*"abcdefghi"[:count])
    source.publish()
    first = content_of(source.documents, naming.RESOURCE_LIST)
    at = Reader(source.documents).view().at
    assert offered(source) == [Capability.RESOURCE_LIST, Capability.CHANGE_LIST]
    source.clock.advance(hours=21)
    source.put("a", content="1")
    source.publish()

    assert Capability.RESOURCE_LIST_ARCHIVE in offered(source)
    archive = naming.ARCHIVES[Capability.RESOURCE_LIST_ARCHIVE]
    (part,) = parts_of(source, archive)
    assert part.at == at
    assert content_of(source.documents, "resourcesync/" + part.uri.removeprefix(DOCUMENTS)) == first
    link = header_of(source, naming.RESOURCE_LIST).link(Relation.ARCHIVES)
    assert link == DOCUMENTS + "resourcelistarchive.xml"

    for number in range(5):
        source.clock.advance(hours=21)
        source.put("a", content=f"more {number}")
        source.publish()
        Reader(source.documents).view()
    past = parts_of(source, naming.ARCHIVES[Capability.CHANGE_LIST_ARCHIVE])
    assert past[0].from_ == at
    assert past[-1].until == parts_of(source, naming.CHANGE_LIST)[0].from_
    index = header_of(source, naming.CHANGE_LIST)
    assert index.link(Relation.ARCHIVES) == DOCUMENTS + "changelistarchive.xml"
    assert next(part.at for part in parts_of(source, archive)) == at

    source.clock.advance(hours=5 * 24)
    source.publish()
    assert at not in [part.at for part in parts_of(source, archive)]
    Reader(source.documents).view()


def test_an_archive_that_is_given_up_is_offered_and_linked_no_more() -> None:
    source = Source(policy=Policy(rebase=HOUR, archive=DAY))
    source.put("a")
    source.publish()
    source.clock.advance(hours=2)
    source.publish()
    assert Capability.RESOURCE_LIST_ARCHIVE in offered(source)

    source.policy = Policy()
    source.publish()

    assert offered(source) == [Capability.RESOURCE_LIST, Capability.CHANGE_LIST]
    assert header_of(source, naming.RESOURCE_LIST).link(Relation.ARCHIVES) is None
    assert source.publish() == Publication()
    source.clock.advance(hours=25)
    source.publish()
    assert files_of(source) == ["capabilitylist.xml", "changelist.xml", "resourcelist.xml"]


def test_a_resource_list_that_was_lost_before_it_was_kept_is_not_in_the_archive() -> None:
    source = Source(policy=Policy(archive=DAY))
    source.put("a")
    source.publish()
    source.documents.delete(naming.RESOURCE_LIST)

    source.publish(step=Step.REBASE)

    assert offered(source) == [Capability.RESOURCE_LIST, Capability.CHANGE_LIST]
    assert view(source) == source.truth()


# --- the policy changes -------------------------------------------------------------------------


def test_every_policy_goes_on_from_every_other() -> None:
    source = Source(limits=Limits(max_entries=3))
    source.put(*"abcd")
    source.publish()
    shapes = [ChangeLists.PER_RUN, ChangeLists.APPEND, ChangeLists.ARCHIVE, ChangeLists.APPEND]
    for number, shape in enumerate((*shapes, ChangeLists.ARCHIVE, ChangeLists.PER_RUN)):
        source.policy = Policy(change_lists=shape)
        for again in range(2):
            source.put("a", "z", content=f"{number} {again}")
            source.publish()
            assert view(source) == source.truth()
    with source.catalogue.snapshot() as snapshot:
        log = [change for _, change in snapshot.changes()]
    assert Reader(source.documents).view().changes == log


def test_a_head_that_is_no_longer_used_is_removed_after_a_day() -> None:
    source = Source()
    source.put("a")
    source.publish()
    source.policy = Policy(change_lists=ChangeLists.ARCHIVE)
    source.publish()
    assert naming.CHANGE_LIST in source.documents.names()

    source.clock.advance(hours=25)
    source.publish()

    assert naming.CHANGE_LIST not in source.documents.names()
    assert view(source) == source.truth()


def test_another_dialect_writes_everything_anew_in_it() -> None:
    source = Source(policy=Policy(rotate=HOUR))
    source.put("a")
    source.publish()
    source.put("b")
    source.publish()
    source.policy = Policy(rotate=HOUR, dialect=Dialect.V1_0)

    publication = source.publish()

    assert naming.CHANGE_LIST in names_of(publication)
    assert b"datetime=" not in content_of(source.documents, naming.CHANGE_LIST)
    source.policy = Policy(rotate=HOUR)
    source.publish()
    assert b"datetime=" in content_of(source.documents, naming.CHANGE_LIST)
    assert view(source) == source.truth()


@pytest.mark.parametrize(
    "choice",
    [
        {"rotate": -1}, {"dialect": Dialect.P1}, {"dialect": Dialect.SITEMAP},
        {"dialect": Dialect.V0_9},
        {"dialect": Dialect.V0_5, "change_lists": ChangeLists.PER_RUN, "archive": 1},
    ],
)  # fmt: skip
def test_a_policy_that_cannot_be_is_refused(choice: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        Policy(**choice)  # type: ignore[arg-type]  # what a caller may get wrong


# --- the plain twin -----------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "parts"), [(0, 0), (3, 0), (4, 2)])
def test_the_plain_twin_lists_every_resource_and_says_nothing_of_resourcesync(
    count: int, parts: int
) -> None:
    source = Source(limits=Limits(max_entries=3), policy=Policy(sitemap=True))
    source.put(*"abcd"[:count])

    publication = source.publish()

    names = [item.name for item in publication.written if "sitemap" in item.name]
    assert len(names) == parts + 1
    found = []
    for name in names:
        content = content_of(source.documents, name)
        assert b"rs:" not in content
        assert b"openarchives" not in content
        with source.documents.open(name) as stream:  # type: ignore[union-attr]
            found += [getattr(item, "uri", "") for item in reading.read(stream, uri="x").entries()]
    assert [uri for uri in found if "resourcesync" not in uri] == sorted(source.truth())
    assert source.publish() == Publication()
    source.policy = Policy()
    source.publish()
    source.clock.advance(hours=25)
    source.publish()
    assert not [name for name in files_of(source) if "sitemap" in name]


# --- reading back -------------------------------------------------------------------------------


class Corrupting(MemoryDocuments):
    """A disk that stores something else than it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.name, self.old, self.new = "", b"", b""

    def write(
        self, name: str, chunks: Iterable[bytes], check: Callable[[BinaryIO], None] | None = None
    ) -> int:
        if name == self.name:
            chunks = [b"".join(chunks).replace(self.old, self.new)]
        return super().write(name, chunks, check)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (naming.CHANGE_LIST, b"created", b"updated"),
        (naming.CHANGE_LIST, b"data/c", b"data/x"),
        (naming.CHANGE_LIST, b"data/b", b"data/y"),  # copied from the list before
        (naming.CHANGE_LIST, b"</urlset>", b""),
        (naming.CHANGE_LIST, b'length="2"', b'length="3"'),
        (naming.CHANGE_LIST, b" from=", b" until="),
        (naming.RESOURCE_LIST, b"sha-256:", b"sha-256:0"),
        (naming.RESOURCE_LIST, b"<url>", b"<url><loc/>"),
        (naming.CAPABILITY_LIST, b"resourcelist.xml", b"resourcelost.xml"),
    ],
)
def test_what_does_not_read_back_replaces_nothing(name: str, old: bytes, new: bytes) -> None:
    documents = Corrupting()
    source = Source(documents=documents)
    source.put("a")
    source.publish()
    source.put("b")
    source.publish()
    source.put("c")
    before, held = source.contents(), view(source)
    documents.name, documents.old, documents.new = name, old, new
    if name == naming.CAPABILITY_LIST:
        source.policy = Policy(change_lists=ChangeLists.ARCHIVE)

    with pytest.raises(StorageError) as caught:
        source.publish(step=Step.REBASE)

    assert caught.value.code == "read-back"
    assert ("kept", "what was published before") in caught.value.evidence
    assert content_of(documents, name) == before[name]
    Reader(documents).view().current()
    assert held != source.truth()
    documents.name = ""
    source.publish_only()
    assert view(source) == source.truth()


def test_a_list_whose_copy_was_altered_meanwhile_is_written_from_the_catalogue() -> None:
    source = Source()
    source.put("a")
    source.publish()
    source.put("b")
    source.publish()
    altered = content_of(source.documents, naming.CHANGE_LIST).replace(b"data/b", b"data/x")
    source.documents.write(naming.CHANGE_LIST, [altered])
    source.put("c")

    source.publish()

    assert view(source) == source.truth()


@pytest.mark.parametrize("shape", list(ChangeLists))
def test_a_disk_that_is_full_in_the_middle_of_a_rotation_leaves_what_was_there(
    shape: ChangeLists,
) -> None:
    class Full(MemoryDocuments):
        room = 1_000

        def write(
            self,
            name: str,
            chunks: Iterable[bytes],
            check: Callable[[BinaryIO], None] | None = None,
        ) -> int:
            self.room -= 1
            if self.room < 0:
                raise DiskFullError("no space left")
            return super().write(name, chunks, check)

    for room in range(8):
        documents = Full()
        source = Source(
            limits=Limits(max_entries=2),
            documents=documents,
            policy=Policy(change_lists=shape, rotate=HOUR, rebase=HOUR, archive=DAY, sitemap=True),
        )
        source.put("a", "b", "c")
        source.publish()
        source.put("d")
        source.publish()
        source.clock.advance(hours=2)
        source.put("e", "f", "g")
        documents.room = room
        try:
            source.publish()
        except DiskFullError:
            Reader(documents).view().current()
        documents.room = 1_000
        source.publish()
        assert view(source) == source.truth()
