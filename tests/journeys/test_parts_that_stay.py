"""Parts of a Resource List that did not change: they stay, and no mirror requests them again."""

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.in_memory import MemoryDocuments
from resourcesync.destination.reports import MirrorState
from resourcesync.destination.sync_state import SyncState
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.model.timestamps import format_w3c, from_microseconds
from resourcesync.ports import FetchRequest
from resourcesync.source.plan import PublicationStep
from resourcesync.source.publication_settings import Policy
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

RESOURCE_LIST = f"{BASE}resourcesync/resourcelist.xml"
PARTS, EACH = 6, 5
HOUR = 3_600
DAY = 24 * HOUR


def world_of(tmp_path: Path, **policy: Any) -> World[PublishedSource]:
    world = World(tmp_path, PublishedSource(max_entries=EACH))
    world.source.policy = Policy(**policy)
    for number in range(PARTS * EACH):
        world.source.put(f"{number:03}.txt", str(number))
    world.source.publish()
    assert world.pull().state is MirrorState.IN_SYNC
    return world


def rebase(world: World[PublishedSource], *, after: float = HOUR) -> None:
    world.source.publish(PublicationStep.REBASE, after=after)


def asked_parts(world: World[PublishedSource]) -> list[str]:
    return [name for name in world.asked() if name.startswith("resourcesync/resourcelist-")]


def stored(world: World[PublishedSource]) -> list[Path]:
    return sorted((world.folder / OWN_FOLDER / "parts").iterdir())


def list_moment(world: World[PublishedSource]) -> datetime:
    """Return the moment of the Resource List that the mirror read last."""
    with world.state() as state:
        at = SyncState(state).cursor.resource_list_at
    assert at is not None
    return from_microseconds(at)


def listed(world: World[PublishedSource]) -> list[str]:
    index = world.source.honest(RESOURCE_LIST).body.decode()
    return [text.partition("</loc>")[0] for text in index.split("<loc>")[1:]]


@pytest.mark.founding(
    "DIT-ES: General",
    "One page of a Resource List is written again instead of all",
    "`publish elasticsearch:URL`",
)
def test_a_new_list_has_new_names_only_for_the_parts_that_changed(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    before = listed(world)
    world.source.put("007.txt", "changed")

    rebase(world)

    after = listed(world)
    assert [before[0], *before[2:]] == [after[0], *after[2:]]
    assert before[1] != after[1]


@pytest.mark.parametrize("has_changes", [True, False])
def test_a_mirror_requests_only_the_parts_that_changed(tmp_path: Path, has_changes: bool) -> None:
    world = world_of(tmp_path)
    if has_changes:
        world.source.put("007.txt", "changed")
        world.source.remove("008.txt")
    rebase(world)
    at = world.clock.now()

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert report.mode == "baseline"
    assert world.in_sync()
    assert len(asked_parts(world)) == has_changes
    assert len(stored(world)) == PARTS
    assert list_moment(world) >= at


def test_a_deletion_that_only_the_list_shows_is_found_though_other_parts_are_older(
    tmp_path: Path,
) -> None:
    """The Source forgot its Change Lists: what is gone is gone by its absence alone."""
    world = world_of(tmp_path)
    world.source.remove("008.txt")
    rebase(world)
    empty = (
        world.source.honest(f"{BASE}resourcesync/changelist.xml").body.decode().partition("<url>")
    )
    head = empty[0] + "</urlset>"
    world.network.answers[f"{BASE}resourcesync/changelist.xml"] = Answer(body=head.encode())

    report = world.pull()

    assert report.deleted == 1
    assert world.in_sync()


@pytest.mark.parametrize("harm", ["lost", "damaged", "cut", "a link"])
def test_a_stored_part_that_is_not_as_it_was_is_requested_again(tmp_path: Path, harm: str) -> None:
    world = world_of(tmp_path)
    first = stored(world)[0]
    content = first.read_bytes()
    first.unlink()
    if harm == "damaged":
        first.write_bytes(bytes([*content[:-9], content[-9] ^ 1, *content[-8:]]))
    elif harm == "cut":
        first.write_bytes(content[: len(content) // 2])
    elif harm == "a link":
        elsewhere = tmp_path.parent / "elsewhere"
        elsewhere.write_bytes(content)
        first.symlink_to(elsewhere)
    rebase(world)

    assert world.pull().state is MirrorState.IN_SYNC
    assert len(asked_parts(world)) == 1
    assert world.in_sync()


def test_a_baseline_that_the_operator_orders_requests_all_parts(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    rebase(world)

    assert world.pull(mode="baseline").state is MirrorState.IN_SYNC

    assert len(asked_parts(world)) == PARTS


def test_an_old_part_from_a_cache_beside_a_new_index_takes_nothing_away_and_is_no_success(
    tmp_path: Path,
) -> None:
    """A cache answers the name of a new part with the bytes of the one before it."""
    world = world_of(tmp_path)
    old = [world.source.honest(uri) for uri in listed(world)]
    world.source.put("0075.txt", "new")  # one part becomes two
    rebase(world)
    world.pull()
    before = listed(world)
    world.source.put("0076.txt", "new too")
    world.source.put("020.txt", "changed")
    rebase(world)
    changed = [uri for uri in listed(world) if uri not in before]
    assert len(changed) == 2
    world.network.answers[changed[0]] = old[1]

    report = world.pull()

    assert report.deleted == 0
    assert report.state is not MirrorState.IN_SYNC
    world.network.answers.clear()
    world.pull()
    assert world.in_sync()


def test_a_part_with_another_hash_leaves_the_oldest_moment(tmp_path: Path) -> None:
    """All parts stay but one, which a proxy altered: the index does not mean what was read."""
    world = world_of(tmp_path)
    first = list_moment(world)
    world.source.put("007.txt", "changed")
    rebase(world)
    stays = listed(world)[3]
    for path in stored(world):
        path.unlink()
    body = world.source.honest(stays).body.replace(b"</urlset>", b"<!-- a proxy --></urlset>")
    world.network.answers[stays] = Answer(body=body)

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC  # the Change Lists reach back to the oldest part
    assert report.deleted == 0
    assert world.in_sync()
    assert list_moment(world) == first


def test_an_index_that_has_another_moment_at_each_request_leaves_the_oldest_moment(
    tmp_path: Path,
) -> None:
    """Whoever dates the index when it is requested does not say that the parts are of that time."""
    world = world_of(tmp_path)
    first = list_moment(world)
    rebase(world)
    at = format_w3c(world.clock.now()).encode()

    def dated(request: FetchRequest) -> Answer:
        world.clock.advance(seconds=1)
        index = world.source.honest(request.uri).body
        return Answer(body=index.replace(at, format_w3c(world.clock.now()).encode(), 1))

    world.network.answers[RESOURCE_LIST] = dated

    assert world.pull().deleted == 0
    assert list_moment(world) == first
    assert world.in_sync()


def test_an_older_index_with_parts_that_are_stored_changes_nothing(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    old = world.source.honest(RESOURCE_LIST)
    world.source.put("007.txt", "changed")
    rebase(world)
    world.pull()
    world.network.answers[RESOURCE_LIST] = old

    report = world.pull()

    assert report.deleted == 0
    assert not asked_parts(world)
    assert world.in_sync()


def test_a_part_stays_for_a_month_at_most_and_the_changes_since_it_are_listed(
    tmp_path: Path,
) -> None:
    world = world_of(tmp_path, rotate=HOUR, keep=40 * DAY)
    before = listed(world)
    for _ in range(4):
        world.source.put("007.txt", str(world.clock.now()))
        rebase(world, after=7 * DAY)
    assert listed(world)[0] == before[0]
    start = world.source.clock.now() - timedelta(days=28)
    changes = world.source.honest(f"{BASE}resourcesync/changelist.xml").body.decode()
    assert f'from="{start:%Y-%m-%d}' in changes
    rebase(world, after=7 * DAY)

    assert not {*listed(world)} & {*before}
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


@pytest.mark.parametrize(("rebase_every", "stays"), [(0, False), (DAY, True)])
def test_a_part_stays_only_as_long_as_the_changes_since_it(
    tmp_path: Path, rebase_every: int, stays: bool
) -> None:
    world = world_of(tmp_path, rotate=HOUR, keep=DAY, rebase_every=rebase_every)
    before = listed(world)
    rebase(world, after=1.5 * DAY)
    assert ({*listed(world)} == {*before}) is stays
    rebase(world, after=1.5 * DAY)
    assert not {*listed(world)} & {*before}


def test_a_part_without_changes_that_was_damaged_is_written_again(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    before = listed(world)
    name = before[3].removeprefix(BASE)
    world.source.documents.write(name, iter((b"damaged",)))

    rebase(world)

    after = listed(world)
    assert [*before[:3], *before[4:]] == [*after[:3], *after[4:]]
    assert before[3] not in after
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


class _Killed(BaseException):
    pass


@pytest.mark.parametrize("survive", range(4))
def test_a_publisher_killed_before_its_index_leaves_the_old_list_whole_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survive: int
) -> None:
    world = world_of(tmp_path)
    for number in (3, 13, 23):
        world.source.put(f"{number:03}.txt", "changed")
    write, written = MemoryDocuments.write, 0

    def killed(documents: MemoryDocuments, name: str, *rest: Any) -> int:
        nonlocal written
        if "resourcelist" in name:
            written += 1
            if written > survive:
                raise _Killed
        return write(documents, name, *rest)

    monkeypatch.setattr(MemoryDocuments, "write", killed)
    with pytest.raises(_Killed):
        rebase(world)
    monkeypatch.undo()
    assert world.pull().state is MirrorState.IN_SYNC
    world.source.put("013.txt", "changed again")
    world.source.remove("027.txt")

    rebase(world)

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert len(asked_parts(world)) == 4


@pytest.mark.parametrize("seed", range(8))
def test_a_mirror_that_requests_only_changed_parts_is_always_as_the_source(
    tmp_path: Path, seed: int
) -> None:
    luck, world = random.Random(seed), world_of(tmp_path, rotate=HOUR, keep=3 * DAY)
    for _ in range(12):
        for _ in range(luck.choice((0, 1, 1, 3, 12))):
            name = f"{luck.randrange(50):03}.txt"
            if luck.random() < 0.5:
                world.source.put(name, str(luck.random()))
            elif f"{BASE}{name}" in world.source.contents():
                world.source.remove(name)
        step = luck.choice((PublicationStep.REBASE, PublicationStep.REBASE, PublicationStep.DUE))
        world.source.publish(step, after=luck.choice((HOUR, DAY)))
        if luck.random() < 0.7:
            assert world.pull().state is MirrorState.IN_SYNC
            assert world.in_sync()
    late = World(tmp_path.parent / f"{tmp_path.name}-late", world.source)
    assert late.pull().state is MirrorState.IN_SYNC
    assert late.in_sync()
