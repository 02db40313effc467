"""Examples of version 0.9, and of the Archives specification, with what they say."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import pytest

from resourcesync.model.entries import CapabilityEntry, Part
from resourcesync.model.vocabulary import Capability, Dialect, Relation
from tests.support.documents.examples import MUSEUM, Example, examples, ours
from tests.support.documents.text import Told

MAPS: Final = f"{MUSEUM}/maps"


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What an example of an archive is: kind, entries, the root's ``archives``."""

    capability: Capability
    count: int
    is_index: bool = False
    archives: int = 0


def summary(told: Told) -> Expected:
    header = told.header
    assert header.capability is not None
    return Expected(
        capability=header.capability,
        count=len(told.entries),
        is_index=header.is_index,
        archives=sum(link.has_relation("archives") for link in header.links),
    )


ARCHIVES: Final = {
    "capability-list": Expected(capability=Capability.CAPABILITY_LIST, count=8),
    "change-list-with-archive": Expected(capability=Capability.CHANGE_LIST, count=2, archives=1),
    "resource-list-archive": Expected(capability=Capability.RESOURCE_LIST_ARCHIVE, count=3),
    "resource-list-archive-index": Expected(
        capability=Capability.RESOURCE_LIST_ARCHIVE, count=2, is_index=True
    ),
    "resource-dump-archive": Expected(capability=Capability.RESOURCE_DUMP_ARCHIVE, count=2),
    "change-list-archive": Expected(capability=Capability.CHANGE_LIST_ARCHIVE, count=3),
    "change-dump-archive": Expected(capability=Capability.CHANGE_DUMP_ARCHIVE, count=2),
}


@pytest.mark.parametrize("example", examples("archives"), ids=str)
def test_an_archive_says_what_it_says(example: Example) -> None:
    told = example.tell()

    assert summary(told) == ARCHIVES[example.name]
    assert told.refusals == []
    assert told.header.link(Relation.UP)
    if told.header.capability is not None and told.header.capability.is_archive:
        assert all(isinstance(entry, Part) for entry in told.entries)


def test_there_is_an_example_of_every_archive() -> None:
    assert {example.name for example in examples("archives")} == ARCHIVES.keys()
    assert {archive.capability for archive in ARCHIVES.values()} >= {
        capability for capability in Capability if capability.is_archive
    }


def test_the_documents_in_an_archive_keep_their_own_times() -> None:
    assert ours("archives", "resource-list-archive").entries == [
        Part(
            uri=f"{MAPS}/old/resourcelist-{year}.xml",
            at=datetime(year, 3, 4, 6, 30, tzinfo=UTC),
        )
        for year in (2021, 2022, 2023)
    ]
    assert ours("archives", "change-dump-archive").entries[1] == Part(
        uri=f"{MAPS}/old/changedump-week-9.xml",
        lastmod=datetime(2024, 3, 4, 0, 0, 30, tzinfo=UTC),
        from_=datetime(2024, 2, 26, tzinfo=UTC),
        until=datetime(2024, 3, 4, tzinfo=UTC),
    )


def test_a_capability_list_may_offer_archives() -> None:
    entries = ours("archives", "capability-list").entries

    assert all(isinstance(entry, CapabilityEntry) for entry in entries)
    assert [entry.uri for entry in entries][-1] == f"{MAPS}/changedump-archive.xml"


# --- 0.9 ---------------------------------------------------------------------------------------

# Excerpts that show nothing by which 0.9 could be told from what came later.
ALIKE: Final = {
    "closed-change-list": Dialect.V1_0,
    "small-capability-list": Dialect.V1_1,
}
FORGIVEN: Final = {"time-from", "relation-old", "capability-spelled", "hash-invalid"}


@pytest.mark.founding("0.9 §2-9", "The examples are read, every entry", "`documents.read`")
@pytest.mark.parametrize("example", examples("0.9"), ids=str)
def test_an_example_of_0_9_is_known_as_one_and_every_entry_is_read(example: Example) -> None:
    told = example.tell()

    assert told.dialect is ALIKE.get(example.name, Dialect.V0_9)
    assert told.refusals == []
    assert told.entries
    assert FORGIVEN.issuperset(told.codes)
    assert bool(told.codes) is (example.name not in ALIKE)
    assert told.header.from_ is None or not told.header.capability or told.header.capability.is_log


SNAPSHOTS: Final = [
    *("resource-list", "resource-list-index", "resource-list-part"),
    *("resource-dump", "resource-dump-manifest"),
]


@pytest.mark.parametrize(
    "example", [example for example in examples("0.9") if example.name in SNAPSHOTS], ids=str
)
def test_a_snapshot_of_0_9_has_an_at_and_leads_up(example: Example) -> None:
    header = example.tell().header

    assert header.at is not None
    assert header.from_ is None
    assert example.name != "resource-list" or header.at == datetime(2024, 3, 4, 6, 30, tzinfo=UTC)
    assert (header.link(Relation.UP) or "").endswith("/capabilitylist.xml")
    if example.name == "resource-list-part":
        assert header.link(Relation.INDEX) == f"{MAPS}/resourcelist.xml"


def test_the_capability_list_of_0_9_leads_to_the_source_description() -> None:
    told = ours("0.9", "capability-list")

    assert summary(told) == Expected(capability=Capability.CAPABILITY_LIST, count=4)
    assert told.header.link(Relation.UP) == f"{MUSEUM}/.well-known/resourcesync"
    assert summary(ours("0.9", "description")).capability is Capability.DESCRIPTION
