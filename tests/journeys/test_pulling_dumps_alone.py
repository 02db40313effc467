"""The copies of manifests beside packages, and Sources that have dumps alone."""

from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.reports import MirrorState
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
from tests.support.worlds.world import World


@pytest.fixture
def world(tmp_path: Path) -> World[DumpSource]:
    return World(tmp_path / "mirror", DumpSource())


def test_of_packages_with_contents_only_those_are_taken_that_are_worth_it(
    world: World[DumpSource],
) -> None:
    told = many(300, size=4000)
    world.source.put_all(told)
    world.source.list_resources(told[:150] + told[290:])
    world.pull(dumps="never")
    world.source.list_resources(told, at="2026-01-02T00:00:00Z")
    packages = []
    for n in range(3):
        part = told[n * 100 : n * 100 + 100]
        world.source.say(f"{n}.xml", manifest_of(part))
        packages.append(Packed(name=f"{n}.zip", body=zipped(part), contents=f"{n}.xml"))
    world.source.dump(*packages)

    report = world.pull(mode="baseline")

    assert report.created == 140
    asked = world.asked()
    assert "0.zip" not in asked
    assert {"1.zip", "2.zip", "0.xml", "1.xml", "2.xml"} <= set(asked)
    assert not any(name.startswith("r/") for name in asked)


def test_a_package_whose_contents_are_mostly_here_is_not_taken(world: World[DumpSource]) -> None:
    told = many(500)
    world.source.put_all(told)
    world.source.list_resources(told[:480])
    world.pull(dumps="never")
    world.source.list_resources(told, at="2026-01-02T00:00:00Z")
    world.source.dump(Packed(name="d.zip", body=zipped(told)))

    report = world.pull()

    assert report.created == 20
    assert "d.zip" not in world.asked()


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


def test_of_which_the_list_tells_nothing_no_dump_is_believed(world: World[DumpSource]) -> None:
    told = [told.wrong(hash="", lastmod="") for told in many(100)]
    world.source.publish(told)
    world.source.dump(Packed(name="d.zip", body=zipped(told)))

    assert world.pull(dumps="always").state is MirrorState.IN_SYNC
    assert "d.zip" not in world.asked()
    assert world.in_sync()


# --- a Source that has no lists ---


def test_where_there_is_only_a_resource_dump_its_manifests_are_the_list(
    world: World[DumpSource],
) -> None:
    told = many(100)
    for item in told:
        world.source.resources[f"http://source.example/{item.name}"] = item.data
    world.source.dump(
        Packed(name="0.zip", body=zipped(told[:60])), Packed(name="1.zip", body=zipped(told[60:]))
    )

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert report.created == 100
    assert world.in_sync()
    assert sorted(name for name in world.asked() if name.endswith(".zip")) == ["0.zip", "1.zip"]
    assert world.pull().mode.value == "unchanged"
    assert not any(name.endswith(".zip") for name in world.asked())


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


# --- changes ---


def test_changes_are_brought_by_a_change_dump(world: World[DumpSource]) -> None:
    told = many(200)
    world.source.publish(told)
    world.source.list_changes([])
    world.pull()
    changes = changed(told[:100], 1)
    gone = [told.wrong(change="deleted", time="2026-01-01T00:02:00Z") for told in told[190:]]
    world.source.put_all(changes)
    for item in gone:
        del world.source.resources[f"http://source.example/{item.name}"]
    world.source.list_changes([*changes, *gone])
    package = zipped([*changes, *gone], from_=AT)
    world.source.dump_changes(Packed(name="c.zip", body=package, from_=AT))
    world.clock.advance(seconds=90_000)  # so that the Source is looked at anew

    report = world.pull()

    assert (report.updated, report.deleted) == (100, 10)
    assert report.state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert "c.zip" in world.asked()
    assert not any(name.startswith("r/") for name in world.asked())


def test_of_several_versions_in_a_change_dump_the_last_counts(world: World[DumpSource]) -> None:
    told = many(50)
    world.source.publish(told)
    world.source.dump_changes(from_=AT)
    world.pull()
    first = [told.wrong(path=f"1/{told.name}") for told in changed(told, 1)]
    gone = [told.wrong(change="deleted", time="2026-01-01T00:02:00Z") for told in told]
    again = [told.wrong(change="created", path=f"3/{told.name}") for told in changed(told[:40], 3)]
    world.source.has_only(again)
    package = zipped([*first, *gone, *again], from_=AT, until="2026-01-01T00:10:00Z")
    world.source.dump_changes(
        Packed(name="c.zip", body=package, from_=AT, until="2026-01-01T00:10:00Z")
    )

    report = world.pull()

    assert (report.updated, report.deleted) == (40, 10)
    assert report.state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert not any(name.startswith("r/") for name in world.asked())


def test_of_versions_that_nothing_tells_apart_the_last_one_counts(world: World[DumpSource]) -> None:
    told = [told.wrong(hash="", length=-1) for told in many(20)]
    world.source.publish(told)
    world.source.dump_changes(from_=AT)
    world.pull()
    moment = "2026-01-01T00:01:00Z"
    versions = [
        item.wrong(
            data=item.data + bytes([48 + n]), change="updated", time=moment, path=f"{n}/{item.name}"
        ).wrong(lastmod=moment)
        for n in range(3)
        for item in told
    ]
    world.source.has(versions)
    package = zipped(versions, from_=AT, until="2026-01-01T00:10:00Z")
    world.source.dump_changes(
        Packed(name="c.zip", body=package, from_=AT, until="2026-01-01T00:10:00Z")
    )

    assert world.pull().updated == 20
    assert world.in_sync()


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


def test_packages_that_were_read_are_not_fetched_while_their_dump_says_the_same(
    world: World[DumpSource],
) -> None:
    _, packages = two_packages(world)
    for n in range(3):
        world.source.dump_changes(
            *packages, until=f"2026-01-01T00:2{n}:00Z"
        )  # so that it is another one

        assert world.pull().mode.value == "unchanged"
        assert asked_packages(world) == []


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


def test_another_package_of_the_same_name_and_times_is_read(world: World[DumpSource]) -> None:
    told, packages = two_packages(world)
    changes = changed(told[20:50], 11)
    body = zipped(changes, from_=TEN, until=TWENTY)
    world.source.has(changes)
    packages[1] = Packed(name="1.zip", body=body, from_=TEN, until=TWENTY)
    world.source.dump_changes(*packages)

    report = world.pull()

    assert report.updated == 10
    assert world.in_sync()


def test_packages_in_a_change_list_are_not_fetched_to_see_whether_they_changed(
    world: World[DumpSource],
) -> None:
    told = many(20)
    world.source.publish(told)
    changes = changed(told, 1)
    world.source.has_only(changes)
    package = Packed(name="0.zip", body=zipped(changes, from_=AT, until=TEN), from_=AT, until=TEN)
    world.source.say(package.name, package.body)
    world.source.offer("changelist", document(package.row(), md=md("changelist", from_=AT)))
    world.pull()
    for _ in range(3):
        world.clock.advance(hours=25)
        assert world.pull().mode.value == "unchanged"
        assert asked_packages(world) == []
    assert world.in_sync()


def test_an_open_package_is_read_again_only_when_its_dump_says_more(
    world: World[DumpSource],
) -> None:
    told = many(20)
    world.source.publish(told)
    world.source.dump_changes(Packed(name="c.zip", body=zipped([], from_=AT), from_=AT))
    world.pull()
    world.pull()
    assert world.pull().mode.value == "unchanged"
    assert "c.zip" not in world.asked()
    changes = changed(told, 1)
    world.source.has_only(changes)
    world.source.dump_changes(Packed(name="c.zip", body=zipped(changes, from_=AT), from_=AT))

    report = world.pull()

    assert report.updated == 20
    assert report.state is MirrorState.IN_SYNC
    assert world.in_sync()


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
