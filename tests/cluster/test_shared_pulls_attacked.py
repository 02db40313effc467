"""What a cold look at pulls by workers found: each was a fault once."""

import os
import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.audits.fixity import AuditRolling
from resourcesync.destination.cursor import Phase
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports.mirror import PendingTask
from resourcesync.ports.tables import DoneRow, ListedRow, WorkRow
from tests.support.crashes.killing import Killed
from tests.support.storage.cursors import set_cursor
from tests.support.worlds.folder_home import FolderHome
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.table_workers import TableWorkers
from tests.support.worlds.world import World

NAMES = [f"{number}.txt" for number in range(5)]


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What survives a power cut is tried elsewhere."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def workers() -> Iterator[TableWorkers]:
    with TableWorkers(random.Random(1)) as workers:
        yield workers


@pytest.fixture
def world(tmp_path: Path, workers: TableWorkers) -> World[PublishedSource]:
    return World(FolderHome(tmp_path / "mirror", workers), PublishedSource(max_entries=3))


@pytest.fixture
def unhashed(tmp_path: Path, workers: TableWorkers) -> World[LooseSource]:
    source = LooseSource(hashes=False, whole_seconds=True)
    return World(FolderHome(tmp_path / "mirror", workers), source)


def put_all(source: PublishedSource | LooseSource, text: str, *, after: float = 60) -> None:
    for name in NAMES:
        source.put(name, f"{name} {text}")
    source.publish(after=after)


def has_all(world: World[Any]) -> bool:
    """Compare the files on the disk: copies of a table are not in the state of the mirror."""
    here = {BASE + path: data for path, data in world.home.files_on_disk().items()}
    return here == dict(world.source.contents())


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_a_second_change_within_a_second_is_fetched_by_workers_too(
    unhashed: World[LooseSource], workers: TableWorkers, hours: int
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
def test_a_kill_while_the_files_of_a_package_are_removed_is_got_over(
    world: World[PublishedSource], workers: TableWorkers, removals: int
) -> None:
    put_all(world.source, "first")
    world.pull()
    with workers.open_state(world.folder / ".resourcesync" / "state.db") as state:
        copies = list(state.copies())
    rows = [
        WorkRow(ListedRow(copy.uri, copy.uri, copy.path, "", 1, None, "", ""), None)
        for copy in copies
    ]
    file, send = f"{workers.scratch}/made", workers.exchange.send
    workers.tables.write_work(file, rows)
    for ending in (".permit", ".matched", ".a1.pairs"):
        send(f"package/one{ending}", file)
    workers.tables.write_done(file, [DoneRow(copy.uri, copy, None) for copy in copies])
    send("package/one.a1.done", file)
    Path(file).write_bytes(b"a1")
    send("package/one.begun", file)
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
    world: World[PublishedSource], workers: TableWorkers, hours: int
) -> None:
    workers.skew = timedelta(hours=hours)
    world.network.answers[f"{BASE}3.txt"] = Answer(status=404)
    put_all(world.source, "first")
    began = to_microseconds(world.clock.now())

    world.pull()

    ended = to_microseconds(world.clock.now())
    with workers.open_state(world.folder / ".resourcesync" / "state.db") as state:
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


def test_deletions_that_change_lists_tell_of_are_planned(world: World[PublishedSource]) -> None:
    put_all(world.source, "first")
    world.pull()
    world.source.remove(NAMES[0])
    world.source.publish()

    report = world.pull(mode="baseline", dry_run=True)

    assert report.dry_run
    assert world.told("plan")[0]["delete"] == 1


def test_a_rolling_audit_finds_the_copies_of_a_table(world: World[PublishedSource]) -> None:
    put_all(world.source, "first")
    world.pull()
    (world.folder / NAMES[0]).write_text("rotten")

    for share, proven in ((0.6, 3), (0.4, 2)):  # each copy once
        report = world.audit(rolling=AuditRolling(share=share, oldest_first=True))
        assert report.proven == proven
        world.clock.advance(seconds=1)
    assert world.audit(rolling=AuditRolling(share=1, oldest_first=True)).doubted <= 1
    assert world.pull().updated == 1


def test_what_entries_link_to_is_remembered(
    world: World[PublishedSource], workers: TableWorkers
) -> None:
    put_all(world.source, "first")
    link = b'<rs:ln rel="describedby" href="http://source.example/about.xml"/></url>'
    for name in [name for name in world.source.documents.names() if "resourcelist" in name]:
        opened = world.source.documents.open(name)
        assert opened is not None
        world.source.documents.write(name, [opened.read().replace(b"</url>", link)])

    for _ in range(2):
        assert world.pull(mode="baseline").state == "in sync"
        with workers.open_state(world.folder / ".resourcesync" / "state.db") as state:
            assert all("about.xml" in state.entry_links(f"{BASE}{name}") for name in NAMES)


@pytest.mark.parametrize("outcome", ["damaged", "of other rows", "of an older version"])
def test_an_outcome_that_cannot_be_used_is_none(
    world: World[PublishedSource], workers: TableWorkers, outcome: str
) -> None:
    put_all(world.source, "first")
    world.pull()
    with workers.open_state(world.folder / ".resourcesync" / "state.db") as state:
        copies = list(state.copies())
        set_cursor(state, phase=Phase.BASELINE_DUE)
    file = f"{workers.scratch}/made"
    listed = [ListedRow(copy.uri, copy.uri, copy.path, "", 1, None, "", "") for copy in copies]
    workers.tables.write_work(file, [WorkRow(row, None) for row in listed])
    workers.exchange.send("work/dead-0", file)
    workers.exchange.files["done/dead-0.begun"] = b"a1"
    workers.tables.write_done(file, [DoneRow(copy.uri, copy, None) for copy in copies[1:]])
    workers.exchange.send("done/dead-0.a1.done", file)
    if outcome == "damaged":
        workers.exchange.files["done/dead-0.a1.done"] = b"PAR1"
    if outcome == "of an older version":
        workers.exchange.files["done/dead-0.begun"] = b"begun"
        workers.exchange.files["done/dead-0"] = workers.exchange.files.pop("done/dead-0.a1.done")

    assert world.pull().state == "in sync"
    assert not workers.exchange.files
    assert has_all(world)
    assert {copy.uri for copy in copies} <= set(world.fetcher.asked), "nothing was held for known"
