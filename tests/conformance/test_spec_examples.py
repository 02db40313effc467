"""The specification's own examples, versions 1.0 and 1.1, with what they say written out."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from resourcesync.documents.writing import write
from resourcesync.model.capabilities import CapabilityEntry, Header, Package, Part
from resourcesync.model.digests import disagree
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import Capability, ChangeKind, Dialect, Relation
from tests.support.documents import Told, tell

CORPUS: Final = Path(__file__).parents[2].parent / "shared" / "corpus"
pytestmark = pytest.mark.skipif(
    not (CORPUS / "spec-1.1").is_dir(), reason="the specification's examples are not here"
)


def example(version: str, number: int) -> Told:
    return tell((CORPUS / f"spec-{version}" / f"resourcesync_ex_{number}.xml").read_bytes())


def day(number: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2013, 1, number, hour, minute, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What an example says: kind, entries, times, the root's ``up`` and ``index``."""

    capability: Capability
    count: int
    at: datetime | None = None
    completed: datetime | None = None
    from_: datetime | None = None
    until: datetime | None = None
    is_index: bool = False
    up: str | None = None
    index: str | None = None


def summary(told: Told) -> Expected:
    header = told.header
    assert header.capability is not None
    return Expected(
        capability=header.capability,
        count=len(told.entries),
        at=header.at,
        completed=header.completed,
        from_=header.from_,
        until=header.until,
        is_index=header.is_index,
        up=header.link(Relation.UP),
        index=header.link(Relation.INDEX),
    )


LIST, CHANGES = Capability.RESOURCE_LIST, Capability.CHANGE_LIST
UP: Final = "http://example.com/dataset1/capabilitylist.xml"
SINCE_THIRD: Final = Expected(capability=CHANGES, count=1, from_=day(3), up=UP)

EXPECTED: Final = {
    1: Expected(capability=LIST, count=2, at=day(3, 9)),
    2: Expected(capability=LIST, count=2, at=day(3, 9)),
    3: Expected(capability=CHANGES, count=3, from_=day(2), until=day(3)),
    4: Expected(capability=Capability.RESOURCE_DUMP, count=1, at=day(3, 9)),
    5: Expected(capability=Capability.RESOURCE_DUMP_MANIFEST, count=2, at=day(3, 9)),
    6: Expected(
        capability=Capability.CAPABILITY_LIST,
        count=3,
        up="http://example.com/resourcesync_description.xml",
    ),
    7: Expected(capability=Capability.DESCRIPTION, count=1),
    8: Expected(capability=LIST, count=2, at=day(3, 9), is_index=True),
    12: Expected(capability=Capability.DESCRIPTION, count=3),
    13: Expected(
        capability=Capability.CAPABILITY_LIST,
        count=4,
        up="http://example.com/resourcesync_description.xml",
    ),
    14: Expected(capability=LIST, count=2, at=day(3, 9), completed=day(3, 9, 1), up=UP),
    15: Expected(
        capability=LIST, count=3, at=day(3, 9), completed=day(3, 9, 10), is_index=True, up=UP
    ),
    16: Expected(
        capability=LIST,
        count=2,
        at=day(3, 9),
        up=UP,
        index="http://example.com/dataset1/resourcelist-index.xml",
    ),
    17: Expected(
        capability=Capability.RESOURCE_DUMP, count=3, at=day(3, 9), completed=day(3, 9, 4), up=UP
    ),
    18: Expected(
        capability=Capability.RESOURCE_DUMP_MANIFEST,
        count=2,
        at=day(3, 9),
        completed=day(3, 9, 2),
        up=UP,
    ),
    19: Expected(capability=CHANGES, count=4, from_=day(3), up=UP),
    20: Expected(capability=CHANGES, count=3, from_=day(1), is_index=True, up=UP),
    21: Expected(
        capability=CHANGES,
        count=4,
        from_=day(2),
        until=day(3),
        up=UP,
        index="http://example.com/dataset1/changelist.xml",
    ),
    22: Expected(capability=Capability.CHANGE_DUMP, count=3, from_=day(1), up=UP),
    23: Expected(
        capability=Capability.CHANGE_DUMP_MANIFEST, count=4, from_=day(2), until=day(3), up=UP
    ),
    24: SINCE_THIRD,
    25: replace(SINCE_THIRD, from_=day(3, 11)),
    26: SINCE_THIRD,
    27: replace(SINCE_THIRD, count=2),
    28: replace(SINCE_THIRD, count=2),
    29: SINCE_THIRD,
    30: SINCE_THIRD,
    31: SINCE_THIRD,
    32: replace(
        SINCE_THIRD,
        from_=day(3, 11),
        up="http://aggregator1.example.com/dataset1/capabilitylist.xml",
    ),
    33: replace(
        SINCE_THIRD,
        from_=day(3, 12),
        up="http://aggregator2.example.com/dataset1/capabilitylist.xml",
    ),
}
DIFFERENT_IN_1_0: Final = {3: replace(EXPECTED[3], count=2)}


@pytest.mark.parametrize("number", EXPECTED)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_an_example_says_what_it_says(version: str, number: int) -> None:
    expected = EXPECTED[number]
    if version == "1.0":
        expected = DIFFERENT_IN_1_0.get(number, expected)

    told = example(version, number)

    assert summary(told) == expected
    assert told.refusals == []
    assert told.header.extra == ()


def test_all_examples_are_expected_to_be_something() -> None:
    for version in ("1.0", "1.1"):
        numbers = {
            int(path.stem.rsplit("_", 1)[1]) for path in (CORPUS / f"spec-{version}").iterdir()
        }
        assert numbers == EXPECTED.keys()


@pytest.mark.parametrize("number", EXPECTED)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_an_example_written_again_says_the_same(version: str, number: int) -> None:
    told = example(version, number)

    again = tell(b"".join(write(told.header, told.entries)))

    assert again.header == told.header
    # A change without datetime has the time of its lastmod, and is written with both.
    assert again.entries == told.entries


# --- single examples ---------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "dialect"), [("1.0", Dialect.V1_0), ("1.1", Dialect.V1_1)])
def test_example_19_shows_its_version(version: str, dialect: Dialect) -> None:
    assert example(version, 19).dialect is dialect


def test_example_2_has_a_hash_and_a_mirror_for_each() -> None:
    first, second = example("1.1", 2).entries
    assert isinstance(first, Resource)
    assert isinstance(second, Resource)

    assert first.lastmod == day(2, 13)
    assert [str(digest) for digest in first.digests] == ["md5:1584abdf8ebdc9802ac0c6a7402c03b6"]
    assert [(link.rel, link.href) for link in second.links] == [
        ("duplicate", "http://mirror.example.com/res2")
    ]


def test_example_3_lists_three_changes() -> None:
    changes = example("1.1", 3).entries

    assert [
        (change.kind, change.time, change.resource.lastmod, change.uri)
        for change in changes
        if isinstance(change, Change)
    ] == [
        (ChangeKind.UPDATED, day(2, 13), day(2, 13), "http://example.com/res1.pdf"),
        (ChangeKind.DELETED, day(2, 14), None, "http://example.com/res2.pdf"),
        (
            ChangeKind.CREATED,
            day(2, 15),
            datetime(2011, 1, 1, tzinfo=UTC),
            "http://example.com/res3.tiff",
        ),
    ]


def test_example_12_describes_three_sets() -> None:
    for number, entry in enumerate(example("1.1", 12).entries, 1):
        assert isinstance(entry, CapabilityEntry)
        assert entry.uri == f"http://example.com/capabilitylist{number}.xml"
        assert entry.capability is Capability.CAPABILITY_LIST
        assert [link.rel for link in entry.links] == ["describedby"]


def test_example_13_offers_four_capabilities() -> None:
    told = [
        (entry.label, entry.capability)
        for entry in example("1.1", 13).entries
        if isinstance(entry, CapabilityEntry)
    ]

    assert told == [
        ("resourcelist", Capability.RESOURCE_LIST),
        ("resourcedump", Capability.RESOURCE_DUMP),
        ("changelist", Capability.CHANGE_LIST),
        ("changedump", Capability.CHANGE_DUMP),
    ]


def test_example_14_has_two_hashes_with_a_line_break_between_them() -> None:
    resource = example("1.1", 14).entries[1]
    assert isinstance(resource, Resource)

    assert [digest.algorithm for digest in resource.digests] == ["md5", "sha-256"]
    assert all(digest.is_usable for digest in resource.digests)
    assert (resource.length, resource.media_type) == (14599, "application/pdf")


def test_examples_15_and_20_tell_the_times_of_each_part() -> None:
    lists, changes = example("1.1", 15).entries, example("1.1", 20).entries

    assert lists == [
        Part(uri=f"http://example.com/resourcelist{n}.xml", at=day(3, 9, minute))
        for n, minute in ((1, 0), (2, 3), (3, 7))
    ]
    assert changes == [
        Part(
            uri=f"http://example.com/2013010{n}-changelist.xml",
            from_=day(n),
            until=day(n + 1) if n < 3 else None,
        )
        for n in (1, 2, 3)
    ]


def test_example_17_offers_three_packages_each_with_its_manifest() -> None:
    packages = example("1.1", 17).entries

    assert packages[1] == Package(
        uri="http://example.com/resourcedump-part2.zip",
        media_type="application/zip",
        length=9875,
        at=day(3, 9, 1),
        completed=day(3, 9, 3),
        links=(
            Link(
                rel="contents",
                href="http://example.com/resourcedump_manifest-part2.xml",
                media_type="application/xml",
            ),
        ),
    )
    assert [package.uri[-5] for package in packages] == ["1", "2", "3"]


def test_example_18_says_where_in_the_package_each_resource_is() -> None:
    resources = [one for one in example("1.1", 18).entries if isinstance(one, Resource)]

    assert [(one.path, one.extra) for one in resources] == [
        ("/resources/res1", ()),
        ("/resources/res2", ()),
    ]


def test_example_22_offers_a_package_of_changes_for_each_day() -> None:
    packages = [one for one in example("1.1", 22).entries if isinstance(one, Package)]

    assert [(one.from_, one.until, one.length) for one in packages] == [
        (day(1), day(2), 3109),
        (day(2), day(3), 6629),
        (day(3), day(4), 8124),
    ]
    assert all(one.contents is not None for one in packages)


def test_example_23_tells_no_path_for_a_deletion() -> None:
    changes = [one for one in example("1.1", 23).entries if isinstance(one, Change)]

    assert [(one.kind.value, one.resource.path) for one in changes] == [
        ("created", "/changes/res7.html"),
        ("updated", "/changes/res9.pdf"),
        ("deleted", ""),
        ("updated", "/changes/res7-v2.html"),
    ]


def test_example_19_has_a_change_without_a_time() -> None:
    changes = [entry for entry in example("1.1", 19).entries if isinstance(entry, Change)]

    assert [(change.kind.value, change.time) for change in changes] == [
        ("created", day(3, 11)),
        ("updated", day(3, 13)),
        ("deleted", day(3, 18)),
        ("updated", None),
    ]
    assert changes[0].resource.lastmod == datetime(2000, 1, 1, 1, 1, tzinfo=UTC)


def test_example_24_ranks_three_mirrors() -> None:
    change = example("1.1", 24).entries[0]
    assert isinstance(change, Change)

    assert [(link.priority, link.href) for link in change.resource.links] == [
        (1, "http://mirror1.example.com/res1"),
        (2, "http://mirror2.example.com/res1"),
        (3, "gsiftp://gridftp.example.com/res1"),
    ]
    assert change.time == day(3, 18)


def test_example_27_has_hashes_that_cannot_be_verified_and_are_no_mismatch() -> None:
    for version in ("1.0", "1.1"):
        for change in example(version, 27).entries:
            assert isinstance(change, Change)
            for digests in (
                change.resource.digests,
                *(link.digests for link in change.resource.links),
            ):
                [digest] = digests
                assert digest.algorithm == "sha-256"
                assert not digest.is_usable
                assert not disagree(digests, digests)


def test_example_29_keeps_what_a_memento_says() -> None:
    change = example("1.1", 29).entries[0]
    assert isinstance(change, Change)

    memento, timegate, timemap = change.resource.links
    assert memento.modified == day(2, 18)
    assert (memento.length, memento.media_type) == (8876, "text/html")
    assert timegate.has_relation("timegate")
    assert timemap.media_type == "application/link-format"


def test_a_header_of_an_example_is_what_the_model_says() -> None:
    header = example("1.1", 21).header

    assert isinstance(header, Header)
    assert not header.is_open
    assert example("1.1", 19).header.is_open
