"""Examples of versions 1.0 and 1.1, with what they say written out."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import pytest

from resourcesync.documents.writer import write
from resourcesync.model.capabilities import CapabilityEntry, Header, Package, Part
from resourcesync.model.digests import disagree
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import Capability, ChangeKind, Dialect, Relation
from tests.support.documents.examples import MUSEUM, Example, examples, ours
from tests.support.documents.text import Told, tell

MAPS: Final = f"{MUSEUM}/maps"


def march(number: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2024, 3, number, hour, minute, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What an example is: kind, entries, which times and links its root has."""

    capability: Capability
    count: int
    times: tuple[str, ...] = ()
    links: tuple[str, ...] = ("up",)
    is_index: bool = False


def summary(told: Told) -> Expected:
    header = told.header
    assert header.capability is not None
    times = {
        "at": header.at,
        "completed": header.completed,
        "from": header.from_,
        "until": header.until,
    }
    return Expected(
        capability=header.capability,
        count=len(told.entries),
        times=tuple(name for name, time in times.items() if time),
        links=tuple(link.rel for link in header.links),
        is_index=header.is_index,
    )


LIST, CHANGES = Capability.RESOURCE_LIST, Capability.CHANGE_LIST
DUMP, MANIFEST = Capability.RESOURCE_DUMP, Capability.RESOURCE_DUMP_MANIFEST
WHOLE: Final = ("at", "completed")
OPEN: Final = ("from",)
CLOSED: Final = ("from", "until")
DESCRIBED: Final = ("describedby", "up")
ONE_CHANGE: Final = Expected(capability=CHANGES, count=1, times=OPEN)

EXPECTED: Final = {
    "bare-resource-list": Expected(capability=LIST, count=2, times=("at",), links=()),
    "hashed-resource-list": Expected(capability=LIST, count=2, times=("at",), links=()),
    "closed-change-list": Expected(capability=CHANGES, count=3, times=CLOSED, links=()),
    "bare-resource-dump": Expected(capability=DUMP, count=1, times=("at",), links=()),
    "bare-dump-manifest": Expected(capability=MANIFEST, count=2, times=("at",), links=()),
    "small-capability-list": Expected(
        capability=Capability.CAPABILITY_LIST, count=3, links=DESCRIBED
    ),
    "small-description": Expected(
        capability=Capability.DESCRIPTION, count=1, links=("describedby",)
    ),
    "bare-resource-list-index": Expected(
        capability=LIST, count=2, times=("at",), links=(), is_index=True
    ),
    "description": Expected(capability=Capability.DESCRIPTION, count=3, links=("describedby",)),
    "capability-list": Expected(capability=Capability.CAPABILITY_LIST, count=4, links=DESCRIBED),
    "resource-list": Expected(capability=LIST, count=2, times=WHOLE),
    "resource-list-index": Expected(capability=LIST, count=3, times=WHOLE, is_index=True),
    "resource-list-part": Expected(capability=LIST, count=2, times=("at",), links=("up", "index")),
    "resource-list-with-other-markup": Expected(capability=LIST, count=2, times=("at",)),
    "resource-dump": Expected(capability=DUMP, count=3, times=WHOLE),
    "resource-dump-manifest": Expected(capability=MANIFEST, count=2, times=WHOLE),
    "open-change-list": replace(ONE_CHANGE, count=4),
    "change-list-index": replace(ONE_CHANGE, count=3, is_index=True),
    "change-list-part": Expected(capability=CHANGES, count=4, times=CLOSED, links=("up", "index")),
    "change-dump": Expected(capability=Capability.CHANGE_DUMP, count=3, times=OPEN),
    "change-dump-manifest": Expected(
        capability=Capability.CHANGE_DUMP_MANIFEST, count=4, times=CLOSED
    ),
    "change-notification": Expected(
        capability=Capability.CHANGE_NOTIFICATION,
        count=1,
        times=CLOSED,
        links=("up", "hub", "self"),
    ),
    "framework-notification": Expected(
        capability=Capability.FRAMEWORK_NOTIFICATION, count=1, links=("hub", "self")
    ),
    "link-duplicate": ONE_CHANGE,
    "link-alternate": ONE_CHANGE,
    "link-canonical": ONE_CHANGE,
    "link-patch": replace(ONE_CHANGE, count=2),
    "link-describedby": replace(ONE_CHANGE, count=2),
    "link-memento": ONE_CHANGE,
    "link-collection": ONE_CHANGE,
    "aggregated-original": ONE_CHANGE,
    "aggregated-first": ONE_CHANGE,
    "aggregated-again": ONE_CHANGE,
}
DIFFERENT_IN_1_0: Final = {
    "closed-change-list": replace(EXPECTED["closed-change-list"], count=2),
}


@pytest.mark.parametrize("example", examples("1.0", "1.1"), ids=str)
def test_an_example_says_what_it_says(example: Example) -> None:
    expected = EXPECTED[example.name]
    if example.version == "1.0":
        expected = DIFFERENT_IN_1_0.get(example.name, expected)

    told = example.tell()

    assert summary(told) == expected
    assert told.refusals == []
    assert told.header.extra == ()


def test_there_is_an_example_of_everything() -> None:
    assert {example.name for example in examples("1.1")} == EXPECTED.keys()
    assert {kind.capability for kind in EXPECTED.values()} == {
        kind for kind in Capability if not kind.is_archive
    }


@pytest.mark.parametrize("example", examples("1.0", "1.1"), ids=str)
def test_an_example_written_again_says_the_same(example: Example) -> None:
    told = example.tell()

    again = tell(b"".join(write(told.header, told.entries)))

    assert again.header == told.header
    # A change without datetime has the time of its lastmod, and is written with both.
    assert again.entries == told.entries


@pytest.mark.parametrize("example", examples("1.0", "1.1"), ids=str)
def test_a_hash_that_cannot_be_verified_is_no_mismatch(example: Example) -> None:
    for entry in example.tell().entries:
        if not isinstance(entry, Change):
            continue
        for digests in (entry.resource.digests, *(link.digests for link in entry.resource.links)):
            assert all(digest.is_usable is (example.name != "link-patch") for digest in digests)
            assert not disagree(digests, digests)


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


def test_a_resource_list_has_a_hash_and_a_mirror_for_a_resource() -> None:
    first, second = ours("1.1", "hashed-resource-list").entries
    assert isinstance(first, Resource)
    assert isinstance(second, Resource)

    assert first.lastmod == march(1, 8, 15)
    assert [str(digest) for digest in first.digests] == ["md5:5c59736b84cbdb1eb0e43a8d0f124a12"]
    assert [(link.rel, link.href) for link in second.links] == [
        ("duplicate", "https://copies.example.net/globe.pdf")
    ]


def test_a_change_has_its_own_time_beside_that_of_the_resource() -> None:
    assert [
        (change.kind, change.time, change.resource.lastmod, change.uri)
        for change in changes("closed-change-list")
    ] == [
        (ChangeKind.UPDATED, march(10, 9, 5), march(10, 9, 5), f"{MAPS}/globe.pdf"),
        (ChangeKind.DELETED, march(10, 16, 45), None, f"{MAPS}/harbour.tiff"),
        (
            ChangeKind.CREATED,
            march(11, 7, 20),
            datetime(2019, 6, 30, 10, tzinfo=UTC),
            f"{MAPS}/coast.tiff",
        ),
    ]


def test_a_description_leads_to_three_sets() -> None:
    sets = ("maps", "letters", "portraits")
    for name, entry in zip(sets, ours("1.1", "description").entries, strict=True):
        assert isinstance(entry, CapabilityEntry)
        assert entry.uri == f"{MUSEUM}/{name}/capabilitylist.xml"
        assert entry.capability is Capability.CAPABILITY_LIST
        assert [link.rel for link in entry.links] == ["describedby"]


def test_a_capability_list_offers_four_capabilities() -> None:
    told = [
        (entry.label, entry.capability)
        for entry in ours("1.1", "capability-list").entries
        if isinstance(entry, CapabilityEntry)
    ]

    assert told == [
        ("resourcelist", Capability.RESOURCE_LIST),
        ("resourcedump", Capability.RESOURCE_DUMP),
        ("changelist", Capability.CHANGE_LIST),
        ("changedump", Capability.CHANGE_DUMP),
    ]


def test_two_hashes_may_have_a_line_break_between_them() -> None:
    resource = ours("1.1", "resource-list").entries[1]
    assert isinstance(resource, Resource)

    assert [digest.algorithm for digest in resource.digests] == ["md5", "sha-256"]
    assert all(digest.is_usable for digest in resource.digests)
    assert (resource.length, resource.media_type) == (731904, "application/pdf")


def test_an_index_says_the_times_of_each_part() -> None:
    assert ours("1.1", "resource-list-index").entries == [
        Part(uri=f"{MAPS}/resourcelist-{name}.xml", at=march(4, 6, minute))
        for name, minute in (("a", 30), ("b", 36), ("c", 41))
    ]
    assert ours("1.1", "change-list-index").entries == [
        Part(
            uri=f"{MAPS}/changes-2024-03-{day}.xml",
            from_=march(day),
            until=march(day + 1) if day < 12 else None,
        )
        for day in (10, 11, 12)
    ]


def test_a_part_leads_to_its_index() -> None:
    assert (
        ours("1.1", "resource-list-part").header.link(Relation.INDEX) == f"{MAPS}/resourcelist.xml"
    )
    assert ours("1.1", "change-list-part").header.link(Relation.INDEX) == f"{MAPS}/changelist.xml"


def test_a_dump_offers_three_packages_each_with_its_manifest() -> None:
    packages = ours("1.1", "resource-dump").entries

    assert packages[1] == Package(
        uri=f"{MAPS}/dump-b.zip",
        media_type="application/zip",
        length=65536,
        at=march(4, 6, 38),
        completed=march(4, 6, 51),
        links=(
            Link(
                rel="contents",
                href=f"{MAPS}/dump-b-manifest.xml",
                media_type="application/xml",
            ),
        ),
    )
    assert [package.uri[-5] for package in packages] == ["a", "b", "c"]


def test_a_manifest_says_where_in_the_package_each_resource_is() -> None:
    entries = ours("1.1", "resource-dump-manifest").entries
    resources = [entry for entry in entries if isinstance(entry, Resource)]

    assert [(resource.path, resource.extra) for resource in resources] == [
        ("/files/atlas-1630.html", ()),
        ("/files/globe.pdf", ()),
    ]


def test_a_change_dump_offers_a_package_of_changes_for_each_day() -> None:
    entries = ours("1.1", "change-dump").entries
    packages = [entry for entry in entries if isinstance(entry, Package)]

    assert [(package.from_, package.until, package.length) for package in packages] == [
        (march(10), march(11), 5120),
        (march(11), march(12), 7168),
        (march(12), march(13), 6144),
    ]
    assert all(package.contents is not None for package in packages)


def test_a_manifest_of_changes_has_no_path_for_a_deletion() -> None:
    assert [
        (change.kind.value, change.resource.path) for change in changes("change-dump-manifest")
    ] == [
        ("created", "/files/islands.html"),
        ("updated", "/files/ports.pdf"),
        ("deleted", ""),
        ("updated", "/files/islands-second.html"),
    ]


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


def test_mirrors_have_ranks() -> None:
    [change] = changes("link-duplicate")

    assert [(link.priority, link.href) for link in change.resource.links] == [
        (1, "https://north.example.net/atlas-1630.html"),
        (2, "https://south.example.net/atlas-1630.html"),
        (3, "ftp://files.example.net/atlas-1630.html"),
    ]
    assert change.time == march(12, 18, 20)


def test_a_memento_says_what_it_is() -> None:
    [change] = changes("link-memento")

    memento, timegate, timemap = change.resource.links
    assert memento.modified == march(11, 18)
    assert (memento.length, memento.media_type) == (21504, "text/html")
    assert timegate.has_relation("timegate")
    assert timemap.media_type == "application/link-format"


def test_a_list_is_open_until_it_says_its_end() -> None:
    header = ours("1.1", "change-list-part").header

    assert isinstance(header, Header)
    assert not header.is_open
    assert ours("1.1", "open-change-list").header.is_open
