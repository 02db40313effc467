"""What a hostile reader tried against pulls, and found wanting."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from tests.support.documents.text import document
from tests.support.worlds.dump_source import DumpSource, Told, md, rows
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import World

ARCHIVE = "changelist-archive"
T = "2026-01-01T{:02}:00:00Z".format


@pytest.fixture
def world(tmp_path: Path) -> World[DumpSource]:
    world = World(tmp_path / "mirror", DumpSource())
    world.clock.advance(hours=36)  # the hours of the lists are of the past
    return world


def loc(name: str, more: str = "") -> str:
    return f"<url><loc>{BASE}{name}</loc>{more}</url>"


def index(capability: str, name: str) -> bytes:
    part = f"<sitemap><loc>{BASE}{name}</loc></sitemap>"
    return document(part, root="sitemapindex", md=capability)


def new(name: str, hour: int, change: str = "") -> Told:
    data = f"{name} at {hour}".encode()
    return Told(name=name, data=data, change=change, time=T(hour), lastmod=T(hour))


def gone(name: str, hour: int) -> Told:
    return Told(name=name, change="deleted", lastmod=T(hour))


def tell(
    world: World[DumpSource], name: str, *told: Told, from_: str = "", until: str = ""
) -> None:
    world.source.put_all([told for told in told if told.change != "deleted"])
    world.source.say(name, document(*rows(*told), md=md("changelist", from_=from_, until=until)))


def begin(world: World[DumpSource], *told: Told, at: str = T(1)) -> None:
    world.source.put_all(told)
    world.source.list_resources(told, at=at)
    assert world.pull().state is MirrorState.IN_SYNC


def test_a_list_that_is_added_to_a_part_of_an_archive_is_read(world: World[DumpSource]) -> None:
    world.source.offer(ARCHIVE, index(md(ARCHIVE), "part.xml"))
    world.source.say("part.xml", document(md=md(ARCHIVE)))
    begin(world, new("a", 1))
    for hour in range(2, 5):
        tell(world, f"{hour}.xml", new("a", hour, "updated"), from_=T(hour - 1), until=T(hour))
        names = [f"{number}.xml" for number in range(2, hour + 1)]
        world.source.say("part.xml", document(*map(loc, names), md=md(ARCHIVE)))

        report = world.pull()

        assert (report.mode, report.state) == (Mode.INCREMENTAL, MirrorState.IN_SYNC)
        assert world.in_sync()


@pytest.mark.parametrize(("newest_first", "told"), [(False, False), (False, True), (True, True)])
def test_the_lists_of_an_archive_are_read_in_turn(
    world: World[DumpSource], *, newest_first: bool, told: bool
) -> None:
    world.source.offer(ARCHIVE, document(md=md(ARCHIVE)))
    begin(world, new("a", 1), new("b", 1))
    spans = {"2.xml": (T(1), T(2)), "3.xml": (T(2), T(3))}
    from_, until = spans["2.xml"] if told else ("", "")
    tell(world, "2.xml", gone("a", 2), from_=from_, until=until)
    from_, until = spans["3.xml"] if told else ("", "")
    tell(world, "3.xml", new("a", 3, "created"), from_=from_, until=until)
    names = sorted(spans, reverse=newest_first)
    world.source.offer(ARCHIVE, document(*map(loc, names), md=md(ARCHIVE)))

    report = world.pull()

    assert (report.mode, report.state) == (Mode.INCREMENTAL, MirrorState.IN_SYNC)
    assert (report.updated, report.deleted) == (1, 0)
    assert world.in_sync()


@pytest.mark.founding(
    "DSpace: Clients", "A Change List Archive is followed from list to list", "`pull`"
)
def test_an_archive_of_a_draft_is_followed_from_list_to_list(world: World[DumpSource]) -> None:
    world.source.offer(ARCHIVE, document(md=md(ARCHIVE)))
    begin(world, new("a", 1))
    names: list[str] = []
    for hour in range(2, 9):
        told = [new("a", hour, "updated")]
        if hour in (3, 6):
            told.append(new("x", hour, "created"))
        if hour in (4, 7):
            told.append(gone("x", hour))
            del world.source.resources[BASE + "x"]
            world.source.served[BASE + "x"] = Answer(status=404)
        tell(world, f"{hour}.xml", *told)
        names.append(f"{hour}.xml")
        world.source.offer(ARCHIVE, document(*map(loc, names), md=md(ARCHIVE)))

        report = world.pull()

        assert report.state is MirrorState.IN_SYNC
        assert report.created + report.updated + report.deleted == len(told)
        assert world.in_sync()


def test_an_index_that_did_not_change_does_not_keep_the_archive_from_being_read(
    world: World[DumpSource],
) -> None:
    world.source.offer("changelist", index(md("changelist", from_=T(1)), "open.xml"))
    world.source.offer(ARCHIVE, document(md=md(ARCHIVE)))
    tell(world, "open.xml", from_=T(1))
    begin(world, new("a", 1))
    assert world.pull().state is MirrorState.IN_SYNC
    tell(world, "2.xml", new("a", 2, "updated"), from_=T(1), until=T(3))
    tell(world, "open.xml", new("b", 4, "created"), from_=T(3))
    world.source.say(f"{ARCHIVE}.xml", document(loc("2.xml"), md=md(ARCHIVE)))

    report = world.pull()

    assert (report.mode, report.state) == (Mode.INCREMENTAL, MirrorState.IN_SYNC)
    assert world.in_sync()


def test_changes_that_are_offered_late_do_not_hide_those_before_them(
    world: World[DumpSource],
) -> None:
    begin(world, new("a", 1), new("b", 1), at="")
    fresh = [new("a", 2), new("b", 3)]
    world.source.put_all(fresh)
    world.source.list_resources(fresh, at="")
    world.source.list_changes([new("b", 3, "updated")], from_="")

    report = world.pull()

    assert (report.mode, report.state) == (Mode.BASELINE, MirrorState.IN_SYNC)
    assert world.in_sync()
    world.source.put_all([new("b", 4)])
    world.source.list_changes([new("b", 3, "updated"), new("b", 4, "updated")], from_="")
    assert world.pull().mode is Mode.INCREMENTAL
    assert world.in_sync()
