"""Changes of the past: an archive closes a gap that would cost a baseline (Archives §5)."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from io import BytesIO
from pathlib import Path

import pytest
from msgspec.structs import replace

from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.documents.reader import read
from resourcesync.documents.writer import write
from resourcesync.errors import DiscontinuityError, NotAListError, SourceUnavailableError
from resourcesync.model.entries import CapabilityEntry, Header, Link, Part
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import Capability
from resourcesync.source.publication_settings import Policy
from resourcesync.source.stored_plan import PublicationStep
from tests.support.documents.text import document as text
from tests.support.worlds.dump_source import DumpSource, Packed, changed, many, md, zipped
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.rewriting import no_longer_offers
from tests.support.worlds.world import OwnWorld, World

CHANGE_LIST = BASE + "resourcesync/changelist.xml"
RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"
CAPABILITY_LIST = BASE + "resourcesync/capabilitylist.xml"
ARCHIVE = BASE + "resourcesync/changelistarchive.xml"
UP = Link(rel="up", href=CAPABILITY_LIST)


@pytest.fixture
def world(tmp_path: Path) -> OwnWorld:
    """A Source whose every two changes fill a Change List, and a mirror from its beginning."""
    world = World(tmp_path / "mirror", PublishedSource(max_entries=2))
    world.source.publish_file("a.html", "a")
    assert world.pull().state is MirrorState.IN_SYNC
    world.source.publish_file("first.html", "the first change")
    assert world.pull().mode is Mode.INCREMENTAL
    for number in range(6):
        world.source.put("a.html", f"version {number}")
        world.source.put(f"{number}.html", "new")
        world.source.publish()
    world.source.publish_deletion("a.html")
    return world


def document(header: Header, entries: Sequence[Part] | Sequence[CapabilityEntry]) -> Answer:
    return Answer(body=b"".join(write(header, entries)))


def archive_header(*, is_index: bool = False) -> Header:
    return Header(capability=Capability.CHANGE_LIST_ARCHIVE, is_index=is_index, links=(UP,))


def retire(world: OwnWorld, *, is_linked: bool = True) -> list[Part]:
    """Keep the last two lists in the index, and return the others, which belong in an archive."""
    opened = read(BytesIO(world.source.honest(CHANGE_LIST).body), uri=CHANGE_LIST)
    header, parts = opened.header, [each for each in opened.entries() if isinstance(each, Part)]
    kept = parts[-2:]
    links = (*header.links, *((Link(rel="archives", href=ARCHIVE),) if is_linked else ()))
    world.network.answers[CHANGE_LIST] = document(
        replace(header, from_=kept[0].from_, links=links), kept
    )
    return parts[:-2]


def in_list(world: OwnWorld) -> None:
    world.network.answers[ARCHIVE] = document(archive_header(), retire(world))


def in_parts(world: OwnWorld) -> None:
    past = retire(world)
    halves = {f"{BASE}resourcesync/half-{n}.xml": past[n::2] for n in range(2)}
    for uri, half in halves.items():
        world.network.answers[uri] = document(archive_header(), half)
    world.network.answers[ARCHIVE] = document(
        archive_header(is_index=True), [Part(uri=uri) for uri in halves]
    )


def with_the_root_of_an_index(world: OwnWorld) -> None:
    world.network.answers[ARCHIVE] = document(archive_header(is_index=True), retire(world))


def in_the_capability_list_alone(world: OwnWorld) -> None:
    world.network.answers[ARCHIVE] = document(archive_header(), retire(world, is_linked=False))
    offer_archive(world, Capability.CHANGE_LIST, Capability.RESOURCE_LIST)
    world.clock.advance(hours=25)  # where the lists are is looked for once a day


@pytest.mark.founding("D-Lib §1", "Who was offline catches up by a Change List Archive", "`pull`")
@pytest.mark.parametrize(
    "archive", [in_list, in_parts, with_the_root_of_an_index, in_the_capability_list_alone]
)
def test_an_archive_closes_a_gap(world: OwnWorld, archive: Callable[[OwnWorld], None]) -> None:
    archive(world)
    world.network.answers[RESOURCE_LIST] = Answer(status=500)  # a baseline would need it

    report = world.pull()

    assert (report.mode, report.state) == (Mode.INCREMENTAL, MirrorState.IN_SYNC)
    assert world.told("warning") == []
    assert (report.created, report.updated, report.deleted) == (6, 0, 1)
    assert world.in_sync()


def offer_archive(world: OwnWorld, *others: Capability) -> None:
    opened = read(BytesIO(world.source.honest(CAPABILITY_LIST).body), uri=CAPABILITY_LIST)
    entries = [entry for entry in opened.entries() if isinstance(entry, CapabilityEntry)]
    kept = [entry for entry in entries if entry.capability in others]
    entry = CapabilityEntry(
        uri=ARCHIVE,
        capability=Capability.CHANGE_LIST_ARCHIVE,
        label=Capability.CHANGE_LIST_ARCHIVE.value,
    )
    world.network.answers[CAPABILITY_LIST] = document(opened.header, [*kept, entry])


@pytest.mark.parametrize("answer", ["missing", "broken", "another", "hole", "endless"])
def test_an_archive_that_is_of_no_use_is_as_good_as_none(world: OwnWorld, answer: str) -> None:
    past = retire(world)
    world.network.answers[ARCHIVE] = {
        "missing": Answer(status=404),
        "broken": Answer(body=b"<urlset"),
        "another": world.source.honest(RESOURCE_LIST),
        "hole": document(archive_header(), past[:1] + past[2:]),
        "endless": document(archive_header(is_index=True), [Part(uri=ARCHIVE + "?again")]),
    }[answer]
    world.network.answers[ARCHIVE + "?again"] = document(
        archive_header(is_index=True), [Part(uri=ARCHIVE)]
    )

    with pytest.raises(DiscontinuityError):  # a baseline, of a list that is no newer
        world.pull()

    assert [fields["code"] for fields in world.told("warning")] == ["change-gap"]
    assert world.files().keys() == {BASE + "a.html", BASE + "first.html"}


@pytest.mark.founding("D-Lib §1", "Who was offline catches up by a Change Dump Archive", "`pull`")
def test_an_archive_of_dumps_closes_a_gap(tmp_path: Path) -> None:
    """The packages of the past report the changes that no list has any more."""
    source = DumpSource()
    world = World(tmp_path / "mirror", source)
    told = many(6)
    times = [f"2026-01-0{day}T00:00:00Z" for day in range(1, 6)]
    source.put_all(told)
    source.list_resources(told, at=times[0])
    source.list_changes([], from_=times[0])
    assert world.pull().state is MirrorState.IN_SYNC
    missed = changed(told[:2], 1)
    gone = told[5].wrong(change="deleted", time="2026-01-01T12:00:00Z", lastmod="")
    source.put_all(missed)
    del source.resources[BASE + told[5].name]
    source.say(
        "1.zip", zipped([*missed, gone], from_=times[0], until=times[1], kind="changedump-manifest")
    )
    package = Packed(name="1.zip", body=source.served[BASE + "1.zip"].body)
    dump = md("changedump", from_=times[0], until=times[1])
    source.say("past.xml", text(package.row(), md=dump))
    part = f'<url><loc>{BASE}past.xml</loc><rs:md from="{times[0]}" until="{times[1]}"/></url>'
    source.offer("changedump-archive", text(part, md=md("changedump-archive")))
    source.list_changes([], from_=times[1])
    world.clock.advance(hours=72)

    report = world.pull()

    assert (report.mode, report.state) == (Mode.INCREMENTAL, MirrorState.IN_SYNC)
    assert world.in_sync()


def dump(world: OwnWorld, oldest: datetime | None = None) -> None:
    begin = 0 if oldest is None else to_microseconds(oldest)
    world.source.dumps(archive=30 * 86_400).publish(changes=True, oldest=begin)


@pytest.fixture
def past(tmp_path: Path) -> OwnWorld:
    """A Source with archives; its only file changed twice, and there is no mirror yet."""
    world = World(tmp_path / "mirror")
    world.source.policy = Policy(archive=30 * 86_400, rotate=60, keep=60)
    for text_ in ("first", "then", "now"):
        world.source.put("a.html", text_)
        world.source.put(f"{text_}.html", text_)
        world.source.publish(PublicationStep.REBASE)
        dump(world)
        world.clock.advance(hours=1)
    world.source.publish()
    return world


def archived(world: OwnWorld, kind: str) -> str:
    return min(name for name in world.source.documents.names() if f"/{kind}_" in name)


@pytest.mark.founding(
    "D-Lib §1", "A Resource Dump of the past gives the state of its moment", "`pull DUMP`"
)
@pytest.mark.parametrize("is_offered", [True, False])
def test_an_archived_dump_gives_its_own_moment_and_stays_there(
    past: OwnWorld, *, is_offered: bool
) -> None:
    if not is_offered:
        no_longer_offers(past, "resourcedump")
    address = BASE + archived(past, "resourcedump")

    assert past.pull(address).state is MirrorState.IN_SYNC
    assert past.texts() == {"a.html": "first", "first.html": "first"}
    assert past.warned() == ["superseded-list"]
    assert past.pull(None).state is MirrorState.IN_SYNC
    past.clock.advance(hours=48)
    assert past.pull(None).state is MirrorState.IN_SYNC
    assert past.texts()["a.html"] == "first"


def test_an_archived_list_is_compared_with_and_not_with_the_list_of_today(past: OwnWorld) -> None:
    report = past.pull(BASE + archived(past, "resourcelist"))

    assert report.state is MirrorState.BEHIND
    assert report.failures[0].uri == BASE + "a.html"
    assert set(past.texts()) == {"first.html"}


@pytest.mark.parametrize("kind", ["resourcedump", "resourcelist"])
def test_a_snapshot_without_a_moment_is_not_taken_for_what_the_source_offers_now(
    kind: str, past: OwnWorld
) -> None:
    address = BASE + archived(past, kind)
    body = re.sub(rb' (at|completed)="[^"]*"', b"", past.source.honest(address).body)
    past.network.answers[address] = Answer(body=body)

    with pytest.raises(NotAListError) as caught:
        past.pull(address)

    assert caught.value.code == "archived-list"


def test_which_of_two_dumps_is_of_the_past_is_not_guessed(past: OwnWorld) -> None:
    address = BASE + archived(past, "resourcedump")
    past.network.answers[BASE + "resourcesync/resourcedump.xml"] = Answer(status=503)

    with pytest.raises(SourceUnavailableError):
        past.pull(address)

    past.network.answers.clear()
    assert past.pull(address).state is MirrorState.IN_SYNC
    assert past.texts()["a.html"] == "first"


def test_a_mirror_does_not_move_into_the_past(past: OwnWorld) -> None:
    past.pull()

    with pytest.raises(NotAListError) as caught:
        past.pull(None, moved=BASE + archived(past, "resourcedump"))

    assert caught.value.code == "archived-list"
    assert past.pull(None).state is MirrorState.IN_SYNC
    assert past.in_sync()


@pytest.mark.parametrize("is_offered", [True, False])
@pytest.mark.parametrize("kind", ["changedump", "changelist"])
def test_changes_of_the_past_are_refused_by_name(
    kind: str, past: OwnWorld, *, is_offered: bool
) -> None:
    for _ in range(3):
        past.clock.advance(hours=48)
        past.source.put("a.html", f"{past.clock.now()}")
        past.source.publish(PublicationStep.REBASE)
        dump(past, oldest=past.clock.now())
    past.source.publish()
    archive = past.source.honest(f"{BASE}resourcesync/{kind}archive.xml").body
    (oldest, *_) = read(BytesIO(archive), uri=BASE).entries()
    if not is_offered:
        no_longer_offers(past, kind)

    with pytest.raises(NotAListError) as caught:
        past.pull(oldest.uri)

    assert caught.value.code == "archived-list"


def test_a_mirror_of_a_list_that_was_superseded_since_follows_its_source(past: OwnWorld) -> None:
    address = BASE + "resourcelist-of-today.xml"
    past.network.answers[address] = past.source.honest(RESOURCE_LIST)
    assert past.pull(address).state is MirrorState.IN_SYNC
    past.clock.advance(hours=48)
    past.source.publish_file("new.html", "new")

    assert past.pull(address).state is MirrorState.IN_SYNC

    assert past.texts()["new.html"] == "new"
