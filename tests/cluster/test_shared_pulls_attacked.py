"""What a cold look at pulls by workers found: each was a fault once."""

import os
import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from resourcesync.adapters.mirror.state import SqliteMirrorState
from resourcesync.cluster.rows import DoneRow, write_rows
from resourcesync.cluster.units import SliceOutcome
from resourcesync.destination.cursor import Phase
from resourcesync.destination.planner import Fetch, ListedEntry
from resourcesync.destination.transfers.commit import TransferTally
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports.mirror import PendingTask
from tests.support.crashes.killing import Killed
from tests.support.storage.cursors import set_cursor
from tests.support.worlds.folder_home import FolderHome
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.shared_workers import SharedWorkers
from tests.support.worlds.world import World

NAMES = [f"{number}.txt" for number in range(5)]


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What survives a power cut is tried elsewhere."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def workers() -> Iterator[SharedWorkers]:
    with SharedWorkers(random.Random(1)) as workers:
        yield workers


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


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_a_second_change_within_a_second_is_fetched_by_workers_too(
    unhashed: World[LooseSource], workers: SharedWorkers, hours: int
) -> None:
    workers.skew = timedelta(hours=hours)
    put_all(unhashed.source, "first", after=0)
    unhashed.pull()
    unhashed.clock.advance(seconds=5)
    put_all(unhashed.source, "second", after=0)
    assert unhashed.pull().updated == len(NAMES)

    put_all(unhashed.source, "third, as long", after=0)
    pulled = unhashed.pull()

    assert pulled.state == "in sync"
    assert has_all(unhashed)


@pytest.mark.parametrize("removals", [1, 2])
def test_a_kill_while_the_files_of_a_slice_are_removed_is_got_over(
    world: World[PublishedSource], workers: SharedWorkers, removals: int
) -> None:
    put_all(world.source, "first")
    left, remove = removals, workers.exchange.remove

    def removing(name: str) -> None:
        nonlocal left
        if not left:
            raise Killed
        left -= 1
        remove(name)

    workers.exchange.remove = removing  # type: ignore[method-assign]
    with pytest.raises(Killed):
        world.pull()
    workers.exchange.remove = remove  # type: ignore[method-assign]

    assert world.pull(mode="baseline").state == "in sync"
    assert has_all(world)
    assert not workers.exchange.files


@pytest.mark.parametrize("hours", [-1, 1])
def test_dates_do_not_come_from_the_clocks_of_workers(
    world: World[PublishedSource], workers: SharedWorkers, hours: int
) -> None:
    workers.skew = timedelta(hours=hours)
    world.network.answers[f"{BASE}3.txt"] = Answer(status=404)
    put_all(world.source, "first")
    began = to_microseconds(world.clock.now())

    world.pull()

    ended = to_microseconds(world.clock.now())
    with SqliteMirrorState(world.folder / ".resourcesync" / "state.db") as state:
        (task,) = state.pending(PendingTask.FETCH)
        dates = [task.first, *(copy.installed for copy in state.copies())]
    assert len(dates) == len(NAMES)
    assert all(began <= date <= ended for date in dates)


def test_what_rests_is_accounted_for(world: World[PublishedSource]) -> None:
    world.network.answers[f"{BASE}3.txt"] = Answer(status=404)
    put_all(world.source, "first")

    for _ in range(7):
        report = world.pull(mode="baseline")
        parts = report.unchanged + report.applied + report.pending + report.refused
        assert (report.listed, parts, report.pending) == (len(NAMES), len(NAMES), 1)
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

    assert (report.state, report.failed, report.created) == ("behind", 1, 2)


@pytest.mark.parametrize("outcome", ["damaged", "of other rows", "of no attempt"])
def test_an_outcome_that_cannot_be_used_is_none(
    world: World[PublishedSource], workers: SharedWorkers, outcome: str
) -> None:
    put_all(world.source, "first")
    world.pull()
    with SqliteMirrorState(world.folder / ".resourcesync" / "state.db") as state:
        copies = list(state.copies())
        set_cursor(state, phase=Phase.BASELINE_DUE)
    file, files = f"{workers.scratch}/made", workers.exchange.files
    listed = [ListedEntry(copy.uri, copy.uri, copy.path, "", 1, None, "") for copy in copies]
    write_rows(file, [Fetch(row, None) for row in listed])
    workers.exchange.send("work/dead-0", file)
    write_rows(file, [DoneRow(copy.uri, copy, None) for copy in copies[1:]])
    workers.exchange.send("done/dead-0.a1.done", file)
    result = SliceOutcome(tally=TransferTally(), requests=0, received=0, attempt="a1")
    files["done/dead-0.a1.told"] = msgspec.json.encode(result)
    files["done/dead-0.begun"] = b"a2" if outcome == "of no attempt" else b"a1"
    if outcome == "damaged":
        files["done/dead-0.a1.done"] = b"[" + files["done/dead-0.a1.done"]

    assert world.pull().state == "in sync"
    assert not workers.exchange.files
    assert has_all(world)
    assert {copy.uri for copy in copies} <= set(world.fetcher.asked), "nothing was held for known"
