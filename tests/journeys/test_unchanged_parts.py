"""Parts of a Resource List with the same entries as before: no mirror requests them again."""

import random
import re
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.source.publication_settings import Policy
from resourcesync.source.stored_plan import PublicationStep
from tests.support.worlds.network import BASE
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


def listed(world: World[PublishedSource]) -> list[str]:
    index = world.source.honest(RESOURCE_LIST).body.decode()
    return [text.partition("</loc>")[0] for text in index.split("<loc>")[1:]]


def test_all_parts_are_of_the_moment_of_their_index_whatever_changed(tmp_path: Path) -> None:
    """``rs-aggregator`` skips parts that are no newer, and deletes what the others do not list."""
    world = world_of(tmp_path)
    before = listed(world)
    world.source.put("007.txt", "changed")

    rebase(world)

    assert not {*before} & {*listed(world)}
    documents = [world.source.honest(uri).body.decode() for uri in (RESOURCE_LIST, *listed(world))]
    assert len({re.findall(r' at="([^"]*)"', text)[0] for text in documents}) == 1


@pytest.mark.parametrize("has_changes", [True, False])
def test_a_mirror_requests_only_the_parts_that_changed(tmp_path: Path, has_changes: bool) -> None:
    world = world_of(tmp_path)
    before = stored(world)
    for number in range(3):
        if has_changes:
            world.source.put("007.txt", f"changed {number}")
        rebase(world)

        report = world.pull()

        assert (report.state, report.mode) == (MirrorState.IN_SYNC, "baseline")
        assert world.in_sync()
        assert len(asked_parts(world)) == has_changes
        assert len({*stored(world)} - {*before}) == has_changes
        assert len(stored(world)) == PARTS


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
    world.source.put("0076.txt", "new too")
    world.source.put("020.txt", "changed")
    rebase(world)
    bodies = {uri: world.source.honest(uri).body for uri in listed(world)}
    changed = next(uri for uri, body in bodies.items() if b"0076" in body)
    world.network.answers[changed] = old[1]

    report = world.pull()

    assert report.deleted == 0
    assert report.state is not MirrorState.IN_SYNC
    world.network.answers.clear()
    world.pull()
    assert world.in_sync()


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
