"""What an attack on the Source's side found: dumps of trees in motion, and links by rule."""

import hashlib
import json
import sqlite3
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import pytest
from msgspec.structs import replace

from resourcesync import Catalogue
from resourcesync.documents.packages.planning import PackageSize
from resourcesync.documents.reader import read
from resourcesync.errors import OriginalChangedError
from resourcesync.model.digests import Digest
from resourcesync.model.entries import CapabilityEntry, Change, Resource
from resourcesync.model.timestamps import SECOND
from resourcesync.model.vocabulary import Capability, ChangeKind
from resourcesync.ports.originals import Original
from resourcesync.source import naming
from resourcesync.source.dumps.dump_publisher import DumpPublisher
from resourcesync.source.present_contents import PresentContents
from resourcesync.source.publisher import ListPublisher
from resourcesync.source.scan_for_changes import scan
from resourcesync.source.stored_plan import PublicationStep
from tests.support.in_memory import MemoryOriginals
from tests.support.sources.opened import open_source
from tests.support.worlds.dumping import DumpedSource
from tests.support.worlds.network import BASE

OTHER = "http://other.example/"


class FlickeringOriginals(MemoryOriginals):
    """Originals of which some are out of sight for a moment."""

    hidden: frozenset[str] = frozenset()

    def open(self, uri: str) -> BinaryIO | None:
        return None if uri in self.hidden else super().open(uri)

    def measure(self, original: Original) -> tuple[Resource, str]:
        if original.uri in self.hidden:
            raise OriginalChangedError(f"{original.uri} is gone")
        return super().measure(original)


def flickering() -> tuple[DumpedSource, FlickeringOriginals]:
    source = DumpedSource(size=PackageSize())
    source.originals = originals = FlickeringOriginals(source.clock)
    for name in "abc":
        source.put(name, f"first {name}")
    source.publish()
    return source, originals


def started_from_the_dump(source: DumpedSource) -> dict[str, str]:
    """The sha-256 of all that one has who takes the Resource Dump and then the Change List."""
    state: dict[str, str] = {}
    start = None
    for package, entry, data in source.members():
        assert isinstance(entry, Resource)
        state[entry.uri] = hashlib.sha256(data).hexdigest()
        assert entry.digests[0].value == state[entry.uri]
        start = package.at
    for change in read(BytesIO(source.bytes_of(naming.CHANGE_LIST)), uri="x").entries():
        assert isinstance(change, Change)
        assert change.time is not None
        assert start is not None
        if change.time <= start:
            continue
        if change.kind is ChangeKind.DELETED:
            state.pop(change.uri, None)
        else:
            state[change.uri] = change.resource.digests[0].value
    return state


def followed_by_change_dump(source: DumpedSource, state: dict[str, bytes]) -> dict[str, bytes]:
    """All that one has who had ``state`` and takes the Change Dump."""
    state = dict(state)
    for _, entry, data in source.members(naming.CHANGE_DUMP):
        assert isinstance(entry, Change)
        if entry.kind is ChangeKind.DELETED:
            state.pop(entry.uri, None)
        else:
            state[entry.uri] = data
    return state


def truth(source: DumpedSource) -> dict[str, str]:
    contents = source.originals.contents()
    return {uri: hashlib.sha256(data).hexdigest() for uri, data in contents.items()}


@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "another thing"])
def test_what_was_otherwise_for_a_moment_does_not_stay_so_with_those_who_took_the_dump(
    is_gone: bool,
) -> None:
    source, originals = flickering()
    if is_gone:
        originals.hidden = frozenset({BASE + "b"})
    else:
        source.put("b", "in between")
    source.dump()
    assert any(data == b"in between" for *_, data in source.members()) is not is_gone
    originals.hidden = frozenset()
    source.put("b", "first b")

    source.publish()

    assert started_from_the_dump(source) == truth(source)
    source.dump()
    assert [entry.uri for _, entry, _ in source.members()] == sorted(truth(source))


def test_what_is_gone_for_a_moment_is_given_back_by_the_change_dump() -> None:
    source, originals = flickering()
    had = originals.contents()
    source.dump(resources=False, changes=True)
    source.put("a", "second a")
    source.put("b", "second b")
    source.publish()
    originals.hidden = frozenset({BASE + "b"})
    source.dump(resources=False, changes=True)
    originals.hidden = frozenset()

    source.publish()
    source.dump(resources=False, changes=True)

    assert followed_by_change_dump(source, had) == originals.contents()


@pytest.mark.parametrize("changes", [False, True])
def test_a_disk_that_vanishes_while_it_is_packed_is_not_told_as_deletions(*, changes: bool) -> None:
    source, originals = flickering()
    source.dump(resources=not changes, changes=changes)
    for name in "abc":
        source.put(name, f"second {name}")
    source.publish()
    head = naming.CHANGE_DUMP if changes else naming.RESOURCE_DUMP
    before = source.bytes_of(head)
    originals.hidden = frozenset(BASE + name for name in "abc")

    with pytest.raises(OriginalChangedError, match=r"all resources to pack into .*\.zip are gone"):
        source.dump(resources=not changes, changes=changes)

    assert source.bytes_of(head) == before
    originals.hidden = frozenset()
    source.dump(resources=not changes, changes=changes)
    assert sorted(data for *_, data in source.members(head)) == sorted(
        originals.contents().values()
    )


class TwiceDigested(MemoryOriginals):
    """Originals of which other digests are asked for."""

    def measure(self, original: Original) -> tuple[Resource, str]:
        resource, fingerprint = super().measure(original)
        other = Digest("md5", hashlib.md5(self.contents()[original.uri]).hexdigest())
        return replace(resource, digests=(other, *resource.digests)), fingerprint


def test_a_change_is_packed_also_when_other_digests_were_asked_for_since() -> None:
    source, originals = flickering()
    source.dump(resources=False, changes=True)
    source.put("a", "second a")
    source.publish()
    twice = TwiceDigested(source.clock)
    for uri, data in originals.contents().items():
        twice.put(uri, data)
    source.clock.advance(seconds=60)
    assert scan(twice, source.catalogue, source.clock.now(), anew=True).touched == 3
    source.originals = twice

    source.dump(resources=False, changes=True)

    assert [data for *_, data in source.members(naming.CHANGE_DUMP)] == [b"second a"]


def test_dumps_and_their_archives_tell_nothing_of_another_base() -> None:
    source, _ = flickering()
    source.dump(changes=True, archive=SECOND * 3_600)
    source.put("a", "second a")
    source.publish()
    source.dump(changes=True, archive=SECOND * 3_600)
    source.originals = MemoryOriginals(source.clock)
    source.originals.put(OTHER + "a", b"second a")
    source.scan()

    for content in ("", "third a", "fourth a"):
        if content:
            source.originals.put(OTHER + "a", content.encode())
            source.scan()
        other = open_source(source.catalogue, source.documents, source.clock, OTHER, archive=3_600)
        dumps = DumpPublisher(other, PresentContents(source.originals))
        dumps.publish(resources=bool(content), changes=True)
        ListPublisher(other).publish()
        assert ("resourcedump.xml" in led_to(source)) is bool(content)

    (former,) = source.told(naming.ARCHIVES[Capability.RESOURCE_DUMP_ARCHIVE])[1]
    names = former.uri.removeprefix(OTHER), naming.RESOURCE_DUMP, naming.CHANGE_DUMP
    found = [(entry.uri, data) for name in names for _, entry, data in source.members(name)]
    assert found == [(OTHER + "a", f"{nth} a".encode()) for nth in ("third", "fourth") * 2]


def led_to(source: DumpedSource) -> set[str]:
    entries = read(BytesIO(source.bytes_of(naming.CAPABILITY_LIST)), uri="x").entries()
    return {entry.uri.rpartition("/")[2] for entry in entries if isinstance(entry, CapabilityEntry)}


@pytest.mark.parametrize(
    ("base", "dumps"),
    [(BASE, {"resourcedump.xml"}), (OTHER, {"resourcedump.xml", "changedump.xml"})],
    ids=["started over", "another base"],
)
def test_lists_that_start_over_or_have_another_base_go_with_no_older_dump(
    base: str, dumps: set[str]
) -> None:
    source, _ = flickering()
    source.dump(changes=base == OTHER)
    source.publish()
    assert dumps <= led_to(source)
    step = PublicationStep.INITIALISE if base == BASE else PublicationStep.DUE

    ListPublisher(open_source(source.catalogue, source.documents, source.clock, base)).publish(step)

    assert dumps.isdisjoint(led_to(source))
    if base == BASE:
        source.dump()
        source.publish()
        assert "resourcedump.xml" in led_to(source)
        assert source.dump().packages == ()
        assert started_from_the_dump(source) == truth(source)


LINK: list[object] = ["describedby", "http://x.example/", "", None, "", "", None, "", None, []]


def more_of_link(place: int, value: object) -> str:
    return json.dumps({"links": [[*LINK[:place], value, *LINK[place + 1 :]]]})


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("uri", BASE + "x\0y"),
        ("uri", BASE + "\uffff"),
        ("hash", "md5:x y"),
        ("hash", "md5:\x02"),
        ("media_type", "a/\x03"),
        ("more", "[" * 100_000),
        ("more", '{"encoding":5}'),
        ("more", '{"path":"../x"}'),
        ("more", '{"changefreq":[1]}'),
        ("more", '{"foreign":["<a"]}'),
        ("more", '{"foreign":[5]}'),
        ("more", '{"foreign":["</url><url><loc>http://x.example/</loc></url><url>"]}'),
        ("more", '{"extra":[["length","5"]]}'),
        ("more", '{"extra":[["n",5]]}'),
        ("more", '{"encoding":"\\ud800"}'),
        ("more", more_of_link(1, None)),
        ("more", more_of_link(1, "http://x.example/\1")),
        ("more", more_of_link(3, "long")),
        ("more", more_of_link(6, 10**19)),
        ("more", more_of_link(8, -5)),
    ],
)
def test_a_post_that_no_list_can_say_stops_no_other(
    tmp_path: Path, column: str, value: str
) -> None:
    catalogue = Catalogue(tmp_path / "c.db")
    catalogue.fill([Resource(uri=BASE + "a", length=1)])
    catalogue.publish(url=BASE, out=str(tmp_path))
    row = {"uri": BASE + "b", "length": 1, "hash": "", "media_type": "", "more": "", column: value}
    with closing(sqlite3.connect(catalogue.file, isolation_level=None)) as sql:
        try:
            sql.execute(
                "INSERT INTO post (change, uri, length, hash, media_type, more)"
                " VALUES ('created', :uri, :length, :hash, :media_type, :more)",
                row,
            )
        except sqlite3.IntegrityError:
            return  # sooner is better

    assert catalogue.publish().mended == 2
    assert catalogue.publish().mended == 0

    for name in (naming.RESOURCE_LIST, naming.CHANGE_LIST):
        with (tmp_path / name).open("rb") as stream:
            listed = {entry.uri: entry for entry in read(stream, uri=name).entries()}
        assert BASE + "a" in listed or name == naming.CHANGE_LIST
        assert (BASE + "b" in listed) == (column != "uri")
