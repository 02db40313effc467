"""A list proves that something is gone only if all of it was understood."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.model.settings import Limit
from resourcesync.model.timestamps import format_w3c
from tests.support.documents.written import listed
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"
ELSEWHERE = "http://www.source.example/"


def world_of(folder: Path, resources: int, *, max_entries: int = 50_000) -> World[PublishedSource]:
    world = World(folder, PublishedSource(max_entries=max_entries))
    for number in range(resources):
        world.source.put(f"{number}.html", f"content of {number}")
    world.source.publish()
    world.pull()
    return world


def document(world: World[PublishedSource], *entries: str, root: str = "urlset") -> Answer:
    world.clock.advance(seconds=60)
    moment = format_w3c(world.clock.now())
    return Answer(body=listed("resourcelist", moment, entries, root))


def entry(uri: str) -> str:
    return f"<url><loc>{uri}</loc></url>"


def offer(world: World[PublishedSource], *entries: str) -> None:
    world.network.answers[RESOURCE_LIST] = document(world, *entries)


def kept_all(world: World[PublishedSource], report: RunReport, resources: int) -> None:
    assert (report.deleted, report.held) == (0, 0)
    assert len(world.files()) == resources
    assert report.state is not MirrorState.IN_SYNC


@pytest.mark.parametrize("resources", [1, 3, 20, 60])
@pytest.mark.parametrize("delete", ["auto", "absent"])
def test_a_source_that_lists_everything_at_another_host_loses_nothing_here(
    tmp_path: Path, resources: int, delete: str
) -> None:
    world = world_of(tmp_path / "mirror", resources)
    for _ in range(3):
        offer(world, *(entry(f"{ELSEWHERE}{n}.html") for n in range(resources)))

        report = world.pull(mode="baseline", delete=delete)

        kept_all(world, report, resources)
        assert report.listed.refused == resources
        world.clock.advance(hours=24 * 31)


@pytest.mark.parametrize(
    "strange",
    [
        "<url><Loc>http://source.example/3.html</Loc></url>",
        "<url><loc>ftp://source.example/3.html</loc></url>",
        "<url><loc>http://source.example/a/../3.html</loc></url>",
        "<url/>",
        "<Url><loc>http://source.example/3.html</loc></Url>",
        '<url xmlns=""><loc>http://source.example/3.html</loc></url>',
        "<urls><url><loc>http://source.example/3.html</loc></url></urls>",
        "<loc>http://source.example/3.html</loc>",
    ],
)
def test_one_entry_that_cannot_be_used_is_enough_to_keep_what_a_list_lacks(
    tmp_path: Path, strange: str
) -> None:
    world = world_of(tmp_path / "mirror", 40)
    offer(world, strange, *(entry(f"{BASE}{n}.html") for n in range(4, 40)))

    report = world.pull(mode="baseline")

    kept_all(world, report, 40)
    assert [mapping["code"] for mapping in world.told("warning")].count("not-understood") == 1


def test_what_the_filters_leave_out_is_understood(tmp_path: Path) -> None:
    world = world_of(tmp_path / "mirror", 40)
    chosen = Filters(exclude=("/drafts/",))
    world.pull(filters=chosen)
    left_out = (entry(f"{BASE}drafts/{n}.html") for n in range(9))
    offer(world, *left_out, *(entry(f"{BASE}{n}.html") for n in range(4, 40)))

    report = world.pull(mode="baseline", filters=chosen)

    assert (report.deleted, report.state) == (4, MirrorState.IN_SYNC)


def test_repair_deletes_nothing_by_a_list_that_was_not_understood(tmp_path: Path) -> None:
    world = world_of(tmp_path / "mirror", 40)
    offer(world, entry(f"{ELSEWHERE}x.html"), *(entry(f"{BASE}{n}.html") for n in range(4, 40)))
    report = world.repair(deleting=True)

    assert (report.deleted, report.held) == (0, 0)
    assert len(world.files()) == 40


def test_repair_holds_as_a_pull_does_and_says_so_before(tmp_path: Path) -> None:
    world = world_of(tmp_path / "mirror", 40)
    offer(world, *(entry(f"{BASE}{n}.html") for n in range(30, 40)))
    dry = world.repair(deleting=True, dry_run=True)
    real = world.repair(deleting=True)

    for report in (dry, real):
        assert (report.state, report.deleted) == (MirrorState.STOPPED, 0)
        assert (report.held, report.held_of) == (30, 40)
    assert len(world.files()) == 40


def test_a_list_that_is_not_understood_takes_back_what_an_earlier_one_lacked(
    tmp_path: Path,
) -> None:
    world = world_of(tmp_path / "mirror", 40)
    offer(world, *(entry(f"{BASE}{n}.html") for n in range(10)))
    assert world.pull(mode="baseline").held == 30
    offer(world, *(entry(f"{ELSEWHERE}{n}.html") for n in range(40)))

    report = world.pull(mode="baseline", max_delete=Limit(percent=100))

    kept_all(world, report, 40)


@pytest.mark.parametrize(("here", "left"), [(1, 0), (3, 1), (20, 9), (49, 24), (300, 0)])
def test_a_list_never_takes_more_than_half_of_a_small_mirror(
    tmp_path: Path, here: int, left: int
) -> None:
    world = world_of(tmp_path / "mirror", here)
    offer(world, *(entry(f"{BASE}{n}.html") for n in range(left)))

    report = world.pull(mode="baseline")

    assert (report.state, report.deleted) == (MirrorState.STOPPED, 0)
    assert (report.held, report.held_of) == (here - left, here)
    allowed = world.pull(max_delete=Limit(number=here - left))
    assert (allowed.deleted, len(world.files())) == (here - left, left)


def test_a_hold_is_of_what_was_here_when_it_began_and_the_next_one_counts_anew(
    tmp_path: Path,
) -> None:
    world = world_of(tmp_path / "mirror", 60)

    def create(start: int) -> None:
        for number in range(start, start + 1_000):
            world.source.put(f"new-{number}.html", f"{number}")

    for number in range(30):
        world.source.remove(f"{number}.html")
    create(0)
    world.source.publish()
    begun = world.pull()
    create(1_000)
    world.source.publish()
    grown = world.pull(delete="never")
    later = world.pull(delete="auto")

    for report in (begun, later):
        assert (report.deleted, report.held, report.held_of) == (0, 30, 60)
    assert (begun.created, grown.created, grown.deleted, grown.held) == (1_000, 1_000, 0, 0)
    assert world.pull(max_delete=Limit(number=30)).deleted == 30
    for number in range(60):
        world.source.remove(f"new-{number}.html")
    world.source.publish()
    assert world.pull().deleted == 60


def test_what_is_fetched_and_equal_is_not_called_updated(tmp_path: Path) -> None:
    world = world_of(tmp_path / "mirror", 6)
    for number in range(6):  # as a server that gives no validators
        name = f"{BASE}{number}.html"
        world.network.answers[name] = Answer(
            body=world.source.honest(name).body, headers={"etag": ""}
        )
    world.source.put("0.html", "other")
    del world.network.answers[BASE + "0.html"]
    world.source.put("6.html", "new")
    offer(world, *(entry(f"{BASE}{n}.html") for n in range(7)))

    report = world.pull(mode="baseline")

    assert (report.created, report.updated, report.fetched.equal) == (1, 1, 5)
    assert (report.listed.unchanged, report.listed.applied, report.listed.total) == (5, 2, 7)
    assert report.state is MirrorState.IN_SYNC
