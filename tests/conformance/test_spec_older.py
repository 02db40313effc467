"""The examples of version 0.9, and of the Archives specification, with what they say."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from resourcesync.model.capabilities import CapabilityEntry, Part
from resourcesync.model.vocabulary import Capability, Dialect, Relation
from tests.support.documents import Told, tell

CORPUS: Final = Path(__file__).parents[2].parent / "shared" / "corpus"
pytestmark = pytest.mark.skipif(
    not (CORPUS / "spec-0.9").is_dir(), reason="the specification's examples are not here"
)
UP: Final = "http://example.com/dataset1/capabilitylist.xml"


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What an example says: kind, entries, the root's ``up``."""

    capability: Capability
    count: int
    up: str | None = None
    is_index: bool = False


def summary(told: Told) -> Expected:
    header = told.header
    assert header.capability is not None
    return Expected(
        capability=header.capability,
        count=len(told.entries),
        up=header.link(Relation.UP),
        is_index=header.is_index,
    )


ARCHIVES: Final = {
    "3_1": Expected(capability=Capability.RESOURCE_LIST_ARCHIVE, count=3, up=UP),
    "3_2": Expected(capability=Capability.RESOURCE_LIST_ARCHIVE, count=2, is_index=True, up=UP),
    "4_1": Expected(capability=Capability.RESOURCE_DUMP_ARCHIVE, count=2, up=UP),
    "5_1": Expected(capability=Capability.CHANGE_LIST_ARCHIVE, count=3, up=UP),
    "6_1": Expected(capability=Capability.CHANGE_DUMP_ARCHIVE, count=2, up=UP),
}


def archive(name: str) -> Told:
    return tell((CORPUS / "archives-1.0" / f"archives_ex_{name}.xml").read_bytes())


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_says_what_it_says(name: str) -> None:
    told = archive(name)

    assert summary(told) == ARCHIVES[name]
    assert told.refusals == []
    assert all(isinstance(entry, Part) for entry in told.entries)


def test_the_documents_in_an_archive_keep_their_own_times() -> None:
    lists, dumps = archive("3_1").entries, archive("6_1").entries

    assert lists == [
        Part(
            uri=f"http://example.com/resourcelist{n}.xml",
            at=datetime(year, month, 3, 9, tzinfo=UTC),
        )
        for n, (year, month) in enumerate([(2012, 11), (2012, 12), (2013, 1)], 1)
    ]
    # The example itself has the wrong year, and intervals that overlap: not ours to judge here.
    assert dumps[0] == Part(
        uri="http://example.com/changedump-w1.xml",
        lastmod=datetime(2012, 12, 20, 9, 2, 43, tzinfo=UTC),
        from_=datetime(2012, 1, 13, 9, tzinfo=UTC),
        until=datetime(2013, 1, 20, 9, tzinfo=UTC),
    )


def test_lists_that_only_mention_archives_are_read() -> None:
    told = tell((CORPUS / "archives-1.0" / "archives_ex_2_1.xml").read_bytes())

    assert told.header.capability is Capability.CAPABILITY_LIST
    assert all(isinstance(entry, CapabilityEntry) for entry in told.entries)
    changes = tell((CORPUS / "archives-1.0" / "archives_ex_2_2.xml").read_bytes())
    assert changes.header.capability is Capability.CHANGE_LIST
    assert any(link.has_relation("archives") for link in changes.header.links)


# --- 0.9 ---------------------------------------------------------------------------------------

# Excerpts that show nothing by which 0.9 could be told from what came later.
ALIKE: Final = {"2_3": Dialect.V1_0, "2_6": Dialect.V1_1}
NAMES: Final = [
    path.stem.partition("_ex_")[2] for path in sorted((CORPUS / "spec-0.9").glob("*.xml"))
]
FORGIVEN: Final = {"time-from", "relation-old", "capability-spelled"}


def example(name: str) -> Told:
    return tell((CORPUS / "spec-0.9" / f"resourcesync_ex_{name}.xml").read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_an_example_of_0_9_is_known_as_one_and_every_entry_is_read(name: str) -> None:
    told = example(name)

    assert told.dialect is ALIKE.get(name, Dialect.V0_9)
    assert told.refusals == []
    assert told.entries
    assert FORGIVEN.issuperset(told.codes)
    assert bool(told.codes) is (name not in ALIKE)
    assert told.header.from_ is None or not told.header.capability or told.header.capability.is_log


@pytest.mark.parametrize("name", ["4_1", "4_2", "4_3", "5_1", "5_2"])
def test_a_snapshot_of_0_9_has_an_at_and_leads_up(name: str) -> None:
    header = example(name).header

    assert (header.at, header.from_) == (datetime(2013, 1, 3, 9, tzinfo=UTC), None)
    assert header.link(Relation.UP) == UP


def test_a_part_of_0_9_leads_to_its_index() -> None:
    header = example("4_3").header

    assert header.link(Relation.INDEX) == "http://example.com/dataset1/resourcelist-index.xml"


def test_the_capability_list_of_0_9_leads_to_the_source_description() -> None:
    assert summary(example("9_2")) == Expected(
        capability=Capability.CAPABILITY_LIST,
        count=4,
        up="http://example.com/resourcesync_description.xml",
    )
    assert summary(example("9_1")) == Expected(capability=Capability.DESCRIPTION, count=3)
