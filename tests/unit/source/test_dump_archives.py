"""Archives of dumps: what was offered before is kept, listed, and in the end removed."""

import pytest

from resourcesync.documents.packages.planning import PackageSize
from resourcesync.model.entries import CapabilityEntry, Part
from resourcesync.model.vocabulary import Capability, Relation
from resourcesync.source import naming
from resourcesync.source.paging import PageLimits
from tests.support.worlds.dumping import DumpedSource
from tests.support.worlds.network import BASE

HOUR = 3_600_000_000
RESOURCES = naming.ARCHIVES[Capability.RESOURCE_DUMP_ARCHIVE]
CHANGES = naming.ARCHIVES[Capability.CHANGE_DUMP_ARCHIVE]


@pytest.fixture(params=[50_000, 2], ids=["one document", "indexes"])
def source(request: pytest.FixtureRequest) -> DumpedSource:
    source = DumpedSource(
        size=PackageSize(max_entries=2), limits=PageLimits(max_entries=request.param)
    )
    for number in range(6):
        source.put(f"{number}.txt", "version 0")
    source.publish()
    return source


def parts(source: DumpedSource, name: str) -> list[Part]:
    return [entry for entry in source.told(name)[1] if isinstance(entry, Part)]


def offered(source: DumpedSource) -> set[Capability | None]:
    entries = source.told(naming.CAPABILITY_LIST)[1]
    return {entry.capability for entry in entries if isinstance(entry, CapabilityEntry)}


@pytest.mark.founding(
    "D-Lib §2", "A Source keeps its former Change Dumps in an archive", "`-o archive=30d`"
)
def test_changes_that_are_listed_no_more_are_in_a_closed_dump_of_the_archive(
    source: DumpedSource,
) -> None:
    source.dump(changes=True, archive=9 * HOUR)
    for version in range(1, 5):
        source.put("3.txt", f"version {version}")
        source.publish()
        source.dump(changes=True, archive=9 * HOUR)
    reach = source.now() + 1
    source.put("3.txt", "version 5")
    source.publish()
    source.dump(changes=True, archive=9 * HOUR, oldest=reach)
    source.publish()

    former = parts(source, CHANGES)

    header = source.told(naming.CHANGE_DUMP)[0]
    ends = [part.until for part in former]
    assert [part.from_ for part in former[1:]] == ends[:-1]
    assert ends[-1] == header.from_
    names = [part.uri.removeprefix(BASE) for part in former]
    assert sum(len(source.packages(name)) for name in names) == 4
    assert all(source.told(name)[0].until is not None for name in names)
    data = {entry.uri: data for _, entry, data in source.members(names[-1])}
    assert data[f"{BASE}3.txt"] == b"version 4"
    assert header.link(Relation.ARCHIVES) == BASE + CHANGES
    assert Capability.CHANGE_DUMP_ARCHIVE in offered(source)


def test_what_is_in_an_archive_for_too_long_is_removed(source: DumpedSource) -> None:
    source.dump(changes=True, archive=2 * HOUR)
    source.put("3.txt", "version 1")
    source.publish()
    source.dump(changes=True, archive=2 * HOUR)
    (part,) = parts(source, RESOURCES)
    gone = {part.uri.removeprefix(BASE), RESOURCES}
    kept = {package.uri for package in source.packages(naming.RESOURCE_DUMP)}
    gone |= {
        package.uri.removeprefix(BASE)
        for package in source.packages(part.uri.removeprefix(BASE))
        if package.uri not in kept
    }
    assert len(gone) == 3
    source.clock.advance(hours=3)

    source.dump(changes=True, archive=2 * HOUR)
    source.publish()
    assert Capability.RESOURCE_DUMP_ARCHIVE not in offered(source)
    assert source.told(naming.RESOURCE_DUMP)[0].link(Relation.ARCHIVES) is None
    source.clock.advance(hours=25)
    source.dump(changes=True)

    assert gone.isdisjoint(source.documents.names())
    assert {package.uri for package in source.packages(naming.RESOURCE_DUMP)} == kept
