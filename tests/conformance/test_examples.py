"""Examples of versions 0.9, 1.0 and 1.1 and of the Archives specification, and what they say."""

from datetime import UTC, datetime
from typing import Final

import pytest

from resourcesync.documents.writer import write
from resourcesync.model.entries import CapabilityEntry, Change, Part, Resource
from resourcesync.model.vocabulary import Capability, Dialect, Relation
from tests.support.documents.examples import MUSEUM, Example, examples, ours
from tests.support.documents.text import tell


def march(number: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2024, 3, number, hour, minute, tzinfo=UTC)


EXAMPLES: Final = examples("1.0", "1.1", "archives")


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_every_entry_of_an_example_is_read(example: Example) -> None:
    """What they say is held against another reader in tests/properties."""
    told = example.tell()

    assert told.refusals == []
    assert told.header.extra == ()
    if told.header.capability is not None and told.header.capability.is_archive:
        assert all(isinstance(entry, Part) for entry in told.entries)


def test_there_is_an_example_of_everything() -> None:
    shown = {example.tell().header.capability for example in examples("1.1", "archives")}
    assert shown == {*Capability}


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_written_again_says_the_same(example: Example) -> None:
    told = example.tell()

    again = tell(b"".join(write(told.header, told.entries)))

    assert again.header == told.header
    # A change without datetime has the time of its lastmod, and is written with both.
    assert again.entries == told.entries


@pytest.mark.parametrize(
    "example",
    [example for example in examples("1.0", "1.1") if example.name == "open-change-list"],
    ids=str,
)
def test_the_times_of_changes_show_the_version(example: Example) -> None:
    assert example.tell().dialect is {"1.0": Dialect.V1_0, "1.1": Dialect.V1_1}[example.version]


# --- what single documents say -----------------------------------------------------------------


def changes(name: str, version: str = "1.1") -> list[Change]:
    return [entry for entry in ours(version, name).entries if isinstance(entry, Change)]


@pytest.mark.founding("0.9 §4.1", "A resource has several hashes", "`documents.read`")
def test_two_hashes_may_have_a_line_break_between_them() -> None:
    resource = ours("1.1", "resource-list").entries[1]
    assert isinstance(resource, Resource)

    assert [digest.algorithm for digest in resource.digests] == ["md5", "sha-256"]
    assert all(digest.is_usable for digest in resource.digests)
    assert (resource.length, resource.media_type) == (731904, "application/pdf")


def test_a_change_may_have_no_time_at_all() -> None:
    found = changes("open-change-list")

    assert [(change.kind.value, change.time) for change in found] == [
        ("created", march(12, 7)),
        ("updated", march(12, 9, 5)),
        ("deleted", march(12, 16, 45)),
        ("updated", None),
    ]
    assert found[0].resource.lastmod == datetime(1999, 11, 5, 5, 55, tzinfo=UTC)
    assert changes("open-change-list", "1.0")[3].time == march(12, 20, 10)


# --- archives ------------------------------------------------------------------------------------


MAPS: Final = f"{MUSEUM}/maps"


def test_the_documents_in_an_archive_keep_their_own_times() -> None:
    assert ours("archives", "resource-list-archive").entries == [
        Part(uri=f"{MAPS}/old/resourcelist-{year}.xml", at=datetime(year, 3, 4, 6, 30, tzinfo=UTC))
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
ALIKE: Final = {"closed-change-list": Dialect.V1_0, "small-capability-list": Dialect.V1_1}
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


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_snapshot_of_0_9_has_an_at_and_leads_up(name: str) -> None:
    header = ours("0.9", name).header

    assert header.at is not None
    assert header.from_ is None
    assert name != "resource-list" or header.at == datetime(2024, 3, 4, 6, 30, tzinfo=UTC)
    assert (header.link(Relation.UP) or "").endswith("/capabilitylist.xml")
    if name == "resource-list-part":
        assert header.link(Relation.INDEX) == f"{MAPS}/resourcelist.xml"


def test_the_capability_list_of_0_9_leads_to_the_source_description() -> None:
    told = ours("0.9", "capability-list")

    assert (told.header.capability, len(told.entries)) == (Capability.CAPABILITY_LIST, 4)
    assert told.header.link(Relation.UP) == f"{MUSEUM}/.well-known/resourcesync"
    assert ours("0.9", "description").header.capability is Capability.DESCRIPTION
