"""A mirror's life: our real publisher in memory, our real Destination on a disk."""

from pathlib import Path

import pytest

from resourcesync.adapters.mirror.mirror_folder import MirrorFolder
from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.model.timestamps import to_microseconds
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

CHANGE_LIST = BASE + "resourcesync/changelist.xml"
CAPABILITY_LIST = BASE + "resourcesync/capabilitylist.xml"
RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"


def test_a_first_pull_fetches_everything_and_a_second_one_nothing(
    world: World[PublishedSource],
) -> None:
    first = world.pull()
    second = world.pull()

    assert (first.state, first.mode) == (MirrorState.IN_SYNC, Mode.BASELINE)
    assert (first.created, first.fetched.verified, first.failed) == (41, 41, 0)
    assert world.in_sync()
    assert (second.state, second.mode) == (MirrorState.IN_SYNC, Mode.UNCHANGED)
    assert (second.listed.unchanged, second.created, second.updated) == (41, 0, 0)
    assert world.fetcher.asked == [CHANGE_LIST, CAPABILITY_LIST, RESOURCE_LIST]
    world.pull()
    assert world.fetcher.asked == [CHANGE_LIST, CAPABILITY_LIST, RESOURCE_LIST]
    assert world.fetcher.received == 0


def test_what_changed_is_fetched_and_nothing_else(world: World[PublishedSource]) -> None:
    world.pull()
    world.source.put("objects/0001.html", "new content")
    world.source.put("objects/new.html", "brand new")
    world.source.remove("objects/0002.html")
    world.source.publish()

    report = world.pull(None)

    assert report.mode is Mode.INCREMENTAL
    assert (report.created, report.updated, report.deleted) == (1, 1, 1)
    assert world.asked_resources() == ["objects/0001.html", "objects/new.html"]
    assert world.in_sync()


def test_only_the_last_of_many_changes_is_acted_on(world: World[PublishedSource]) -> None:
    world.pull()
    for content in ("one", "two"):
        world.source.put("objects/0001.html", content)
        world.source.put("objects/tmp.html", content)
        world.source.publish()
    world.source.remove("objects/tmp.html")
    world.source.remove("objects/0003.html")
    world.source.publish()
    world.source.put("objects/0003.html", "content of 3")
    world.source.publish()

    report = world.pull(None)

    assert world.asked_resources() == ["objects/0001.html"]
    assert (report.updated, report.created, report.deleted) == (1, 0, 0)
    assert world.in_sync()


def test_a_late_mirror_takes_the_changes_since_the_resource_list_into_its_baseline(
    world: World[PublishedSource],
) -> None:
    world.source.put("objects/0001.html", "newer than the Resource List")
    world.source.remove("objects/0002.html")
    world.source.publish()

    report = world.pull()

    assert report.mode is Mode.BASELINE
    assert world.in_sync()
    assert "objects/0002.html" not in world.asked_resources()
    assert world.pull().mode is Mode.UNCHANGED


def test_a_source_in_several_parts_is_read_whole(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror", PublishedSource(max_entries=7))
    for number in range(30):
        world.source.put(f"{number}.html", f"{number}")
    world.source.publish()
    world.pull()
    for number in range(20):
        world.source.put(f"{number}.html", f"changed {number}")
        world.source.publish()

    report = world.pull()

    assert report.mode is Mode.INCREMENTAL
    assert report.updated == 20
    assert world.in_sync()
    world.source.put("0.html", "again")
    world.source.publish()
    assert world.pull().updated == 1
    assert world.in_sync()
    assert world.pull().mode is Mode.UNCHANGED


@pytest.mark.parametrize(
    "address",
    [
        BASE,
        BASE.rstrip("/"),
        BASE + ".well-known/resourcesync",
        BASE + "resourcesync/capabilitylist.xml",
        RESOURCE_LIST,
        CHANGE_LIST,
    ],
)
def test_any_address_of_the_source_leads_to_its_lists(
    world: World[PublishedSource], address: str
) -> None:
    assert world.pull(address).state is MirrorState.IN_SYNC
    world.source.put("x.html", "x")
    world.source.publish()
    assert world.pull(None).mode is Mode.INCREMENTAL
    assert world.in_sync()


def sitemap(*entries: str) -> Answer:
    urls = "".join(f"<url><loc>{BASE}{entry}</url>" for entry in entries)
    return Answer(
        body=f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'.encode()
    )


@pytest.fixture
def plain(tmp_path: Path) -> World[PublishedSource]:
    world = World(tmp_path / "mirror")
    for name in ("a", "b"):
        world.source.put(f"{name}.html", f"page {name}")
    return world


def test_a_plain_sitemap_is_mirrored_and_asked_about_with_conditions(
    plain: World[PublishedSource],
) -> None:
    plain.network.answers[BASE + "sitemap.xml"] = sitemap("a.html</loc>", "b.html</loc>")

    first = plain.pull()
    again = plain.pull()
    plain.source.put("b.html", "changed")
    third = plain.pull()

    assert (first.created, first.fetched.unverified, first.state) == (2, 2, MirrorState.IN_SYNC)
    assert (again.created, again.updated) == (0, 0)
    assert plain.asked_resources() == ["a.html", "b.html"]
    assert (third.updated, third.listed.unchanged) == (1, 1)
    assert plain.in_sync()


def test_a_page_that_a_plain_sitemap_lists_no_more_is_kept_unless_told_otherwise(
    plain: World[PublishedSource],
) -> None:
    plain.network.answers[BASE + "sitemap.xml"] = sitemap("a.html</loc>", "b.html</loc>")
    plain.pull()
    plain.network.answers[BASE + "sitemap.xml"] = sitemap("a.html</loc>")

    kept = plain.pull()
    gone = plain.pull(delete="absent")

    assert (kept.deleted, kept.retained.unlisted, kept.state) == (0, 1, MirrorState.IN_SYNC)
    assert gone.deleted == 1
    assert list(plain.files()) == [BASE + "a.html"]


def test_lastmod_alone_tells_what_changed_in_a_plain_sitemap(plain: World[PublishedSource]) -> None:
    def with_lastmod(moment: str) -> Answer:
        return sitemap(*(f"{n}.html</loc><lastmod>{moment}</lastmod>" for n in "ab"))

    plain.network.answers[BASE + "sitemap.xml"] = with_lastmod("2025-12-01")
    plain.pull()
    same = plain.pull()
    assert plain.asked_resources() == []
    assert same.mode is Mode.UNCHANGED
    plain.network.answers[BASE + "sitemap.xml"] = with_lastmod("2025-12-02")
    plain.pull()
    assert plain.asked_resources() == ["a.html", "b.html"]


def test_copies_have_the_time_of_their_installation_also_behind_a_failure(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    for name in ("a", "b", "c"):
        world.source.put(name, f"content of {name}")
    world.source.publish()
    world.network.answers[BASE + "a"] = Answer(status=404)
    world.pull()

    with MirrorFolder(world.folder, world.clock) as mirror:
        assert mirror.state is not None
        installed = {copy.uri: copy.installed for copy in mirror.state.copies()}

    now = to_microseconds(world.clock.now())
    assert installed == {BASE + "b": now, BASE + "c": now}
