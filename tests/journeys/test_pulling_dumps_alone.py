"""The copies of manifests beside packages, and Sources that have dumps alone."""

from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.errors import SourceNotFoundError
from tests.support.documents.text import document
from tests.support.worlds.dump_source import (
    AT,
    DumpSource,
    Packed,
    Told,
    changed,
    manifest_of,
    many,
    md,
    zipped,
)
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World


@pytest.fixture
def world(tmp_path: Path) -> World[DumpSource]:
    return World(tmp_path / "mirror", DumpSource())


@pytest.mark.parametrize(
    "copied",
    [
        manifest_of(many(100)),
        manifest_of(many(100)) + b"\n\n",
        None,
        b"<html>",
        b"<?xml",
        manifest_of(many(100))[:-400],
        manifest_of(many(100), at="2020-01-01T00:00:00Z"),
        manifest_of([], from_=AT),
    ],
    ids=[
        "byte for byte", "written otherwise", "none", "no XML", "too little", "cut short",
        "older than the dump", "of the other kind",
    ],
)  # fmt: skip
def test_a_copy_of_the_manifest_that_agrees_or_cannot_be_right_lets_the_package_bring_all(
    world: World[DumpSource], copied: bytes | None
) -> None:
    told = many(100)
    world.source.publish(told)
    if copied is not None:
        world.source.say("d.xml", copied)
    world.source.dump(Packed(name="d.zip", body=zipped(told), contents="d.xml"))

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.warned() == []
    assert not any(name.startswith("r/") for name in world.asked())


def test_entries_that_are_no_address_of_the_web_are_passed_over(world: World[DumpSource]) -> None:
    told = many(100)
    foreign = Told(name="x", data=b"?", base="mailto:")
    world.source.publish(told)
    world.source.dump(Packed(name="d.zip", body=zipped([foreign, *told])))

    assert world.pull().state is MirrorState.IN_SYNC
    assert not any(name.startswith("r/") for name in world.asked())


@pytest.mark.founding("0.9 §5.1", "A Resource Dump Index is followed", "`pull`")
def test_an_index_of_dumps_is_followed_to_each_of_them(world: World[DumpSource]) -> None:
    told = many(100)
    parts = []
    for n, part in enumerate((told[:40], told[40:])):
        package = Packed(name=f"{n}.zip", body=zipped(part))
        world.source.say(package.name, package.body)
        world.source.say(f"dump{n}.xml", document(package.row(), md=md("resourcedump", at=AT)))
        parts.append(f"<sitemap><loc>http://source.example/dump{n}.xml</loc></sitemap>")
    index = document(*parts, root="sitemapindex", md=md("resourcedump", at=AT))
    world.source.has_only(told)
    world.source.offer("resourcedump", index)

    report = world.pull()

    assert (report.state, report.created) == (MirrorState.IN_SYNC, 100)
    assert world.in_sync()
    assert [name for name in world.asked() if name.endswith(".zip")] == ["0.zip", "1.zip"]


def test_one_dump_of_an_index_that_stands_for_the_list_is_asked_for_as_well(
    world: World[DumpSource],
) -> None:
    told = many(20)
    world.source.has_only(told)
    dumps = {"dump0.xml": told[:10], "dump1.xml": told[10:]}

    def write(name: str, at: str) -> None:
        package = Packed(name=f"{name}-{at}.zip", body=zipped(dumps[name], at=at))
        world.source.say(package.name, package.body)
        world.source.say(name, document(package.row(), md=md("resourcedump", at=at)))

    for name in dumps:
        write(name, AT)
    parts = [f"<sitemap><loc>{BASE}{name}</loc></sitemap>" for name in dumps]
    index = document(*parts, root="sitemapindex", md=md("resourcedump", at=AT))
    world.source.offer("resourcedump", index)
    world.source.list_changes([])
    world.pull()
    world.clock.advance(hours=48)
    assert world.pull().mode is Mode.UNCHANGED
    dumps["dump1.xml"] = [told[10].wrong(data=b"another content"), *told[11:]]
    world.source.resources[BASE + told[10].name] = b"another content"
    write("dump1.xml", "2026-01-01T12:00:00Z")

    world.pull()

    assert world.in_sync()
    assert world.pull().mode is Mode.UNCHANGED


def test_a_dump_leads_to_itself_and_can_be_audited(world: World[DumpSource]) -> None:
    told = many(20)
    world.source.has_only(told)
    world.source.dump(Packed(name="0.zip", body=zipped(told)))

    assert world.pull("http://source.example/resourcedump.xml").state is MirrorState.IN_SYNC
    report = world.audit()

    assert (report.listed, report.accurate, report.findings) == (20, 20, ())
    assert world.in_sync()


def test_a_newer_dump_is_followed_and_what_it_holds_no_more_goes(world: World[DumpSource]) -> None:
    told = [told.wrong(hash="", lastmod="") for told in many(100)]
    world.source.dump(Packed(name="0.zip", body=zipped(told)))
    world.pull()
    later = "2026-02-01T00:00:00Z"
    world.clock.advance(hours=24 * 40)
    newer = [told.wrong(data=b"new") if n < 50 else told for n, told in enumerate(told[:90])]
    world.source.has_only(newer)
    world.source.dump(Packed(name="1.zip", body=zipped(newer, at=later)), at=later)

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert report.deleted == 10
    assert world.in_sync()


def test_a_source_of_dumps_alone_is_no_source_for_who_wants_none(world: World[DumpSource]) -> None:
    world.source.dump(Packed(name="0.zip", body=zipped(many(10))))

    with pytest.raises(SourceNotFoundError):
        world.pull(dumps="never")


def test_a_dump_that_stands_for_the_list_must_be_whole(world: World[DumpSource]) -> None:
    told = many(100)
    world.source.dump(
        Packed(name="0.zip", body=zipped(told[:60])), Packed(name="1.zip", body=b"no package")
    )

    with pytest.raises(Exception, match="neither ZIP nor tar"):
        world.pull()
    assert world.files() == {}


@pytest.mark.founding("D-Lib §1", "A Change Dump brings changed content by value", "`pull`")
@pytest.mark.parametrize("says", [True, False], ids=["with times", "without times"])
def test_without_change_lists_the_packages_are_a_chain_and_read_once(
    world: World[DumpSource], *, says: bool
) -> None:
    told = many(60)
    world.source.publish(told)
    world.source.dump_changes(from_=AT)
    world.pull()
    packages = []
    for n in range(3):
        changes = changed(told[n * 20 : n * 20 + 20], n * 10 + 1)
        from_, until = f"2026-01-01T00:{n}0:00Z", f"2026-01-01T00:{n + 1}0:00Z"
        body = zipped(changes, from_=from_, until=until)
        world.source.has(changes)
        times: dict[str, Any] = {"from_": from_, "until": until} if says else {}
        packages.append(Packed(name=f"{n}.zip", body=body, **times))
        world.source.dump_changes(*packages)
        report = world.pull()
        assert report.updated == 20
        assert report.state is MirrorState.IN_SYNC
        assert asked_packages(world) == [f"{n}.zip"]
        assert not any(name.startswith("r/") for name in world.asked())
    assert world.in_sync()


TEN, TWENTY = "2026-01-01T00:10:00Z", "2026-01-01T00:20:00Z"


def two_packages(
    world: World[DumpSource], *, length: int | None = None
) -> tuple[list[Told], list[Packed]]:
    """Let a mirror read two packages of changes that say when they begin and end."""
    told = many(60)
    world.source.publish(told)
    world.source.dump_changes(from_=AT)
    world.pull()
    packages = []
    for n, (from_, until) in enumerate(((AT, TEN), (TEN, TWENTY))):
        changes = changed(told[n * 20 : n * 20 + 20], n * 10 + 1)
        world.source.has(changes)
        body = zipped(changes, from_=from_, until=until)
        name = f"{n}.zip"
        packages.append(Packed(name=name, body=body, from_=from_, until=until, length=length))
    world.source.dump_changes(*packages)
    world.pull()
    assert world.in_sync()
    return told, packages


def asked_packages(world: World[DumpSource]) -> list[str]:
    return [name for name in world.asked() if name.endswith(".zip")]


@pytest.mark.founding("0.9 §7.1", "A Change Dump Index is followed", "`pull`")
def test_packages_of_an_index_of_dumps_are_fetched_once(world: World[DumpSource]) -> None:
    _, packages = two_packages(world)
    for n, packed in enumerate(packages):
        root = md("changedump", from_=packed.from_, until=packed.until)
        world.source.say(f"dump{n}.xml", document(packed.row(), md=root))
    parts = [f"<sitemap><loc>http://source.example/dump{n}.xml</loc></sitemap>" for n in range(2)]
    index = document(*parts, root="sitemapindex", md=md("changedump", from_=AT))
    world.source.say("changedump.xml", index)
    for _ in range(2):
        assert world.pull().mode.value == "unchanged"
        assert asked_packages(world) == []


def test_a_package_of_which_its_dump_says_neither_length_nor_hash_is_fetched_again(
    world: World[DumpSource],
) -> None:
    _, packages = two_packages(world, length=-1)
    world.source.dump_changes(*packages, until=TWENTY)

    world.pull()

    assert asked_packages(world) == ["1.zip"]


def test_what_is_nowhere_does_not_cost_the_whole_dump_for_ever(world: World[DumpSource]) -> None:
    told = many(20)
    lost = told[3]
    world.source.put_all([told for told in told if told is not lost])
    world.source.say("d.xml", manifest_of(told))
    body = zipped(told, missing=[lost.name])
    world.source.dump(Packed(name="d.zip", body=body, contents="d.xml"))
    report = world.pull()
    fetched = []

    for _ in range(12):
        world.clock.advance(hours=25)
        report = world.pull()
        fetched.append("d.zip" in world.asked())

    assert report.failed == 1
    assert 1 <= sum(fetched) <= 3
    assert not any(fetched[-6:])
