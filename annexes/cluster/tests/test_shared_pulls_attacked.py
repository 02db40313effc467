"""What a cold look at pulls by workers found: each was a fault once."""

import random
from pathlib import Path
from typing import Any

import pytest

from tests.support.worlds.folder_home import FolderHome
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.shared_workers import SharedWorkers
from tests.support.worlds.world import World

pytestmark = pytest.mark.usefixtures("without_fsync")

NAMES = [f"{number}.txt" for number in range(5)]


@pytest.fixture
def workers() -> SharedWorkers:
    return SharedWorkers(random.Random(1))


@pytest.fixture
def world(tmp_path: Path, workers: SharedWorkers) -> World[PublishedSource]:
    return World(FolderHome(tmp_path / "mirror", workers), PublishedSource(max_entries=3))


@pytest.fixture
def unhashed(tmp_path: Path, workers: SharedWorkers) -> World[LooseSource]:
    source = LooseSource(hashes=False, whole_seconds=True)
    return World(FolderHome(tmp_path / "mirror", workers), source)


def put_all(source: PublishedSource | LooseSource, text: str, *, after: float = 60) -> None:
    for name in NAMES:
        source.put(name, f"{name} {text}")
    source.publish(after=after)


def has_all(world: World[Any]) -> bool:
    """Compare the files on the disk with what the Source has."""
    here = {BASE + path: data for path, data in world.home.files_on_disk().items()}
    return here == dict(world.source.contents())


def test_a_second_change_within_a_second_is_fetched_by_workers_too(
    unhashed: World[LooseSource],
) -> None:
    put_all(unhashed.source, "first", after=0)
    unhashed.pull()
    unhashed.clock.advance(seconds=5)
    put_all(unhashed.source, "second", after=0)
    assert unhashed.pull().updated == len(NAMES)

    put_all(unhashed.source, "third, as long", after=0)
    pulled = unhashed.pull()

    assert pulled.state == "in sync"
    assert has_all(unhashed)


def test_what_rests_is_accounted_for(world: World[PublishedSource]) -> None:
    world.network.answers[f"{BASE}3.txt"] = Answer(status=404)
    put_all(world.source, "first")

    for _ in range(7):
        report = world.pull(mode="baseline")
        parts = (
            report.listed.unchanged
            + report.listed.applied
            + report.listed.pending
            + report.listed.refused
        )
        assert (report.listed.total, parts, report.listed.pending) == (len(NAMES), len(NAMES), 1)
    assert f"{BASE}3.txt" in world.fetcher.asked, "a baseline asks for what rests"
    world.pull()
    assert f"{BASE}3.txt" not in world.fetcher.asked, "it rests"


def test_workers_are_given_no_more_than_a_run_may_fetch(world: World[PublishedSource]) -> None:
    put_all(world.source, "x" * 99_994)  # more than all lists together

    for count in (2, 4, 5):
        report = world.pull(max_bytes=250_000)
        assert (len(world.home.files_on_disk()), report.state == "in sync") == (count, count == 5)
        assert report.spent == ("" if count == 5 else "bytes")


def test_after_a_failure_no_more_is_handed_out_if_so_wished(world: World[PublishedSource]) -> None:
    world.network.answers[f"{BASE}0.txt"] = Answer(status=404)
    put_all(world.source, "first")

    report = world.pull(fail_fast=True)

    assert (report.state, report.failed, report.created) == ("behind", 1, 0)
