"""What a cold look at pulls by workers found: each was a fault once."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.audits.fixity import AuditRolling
from resourcesync.destination.cursor import Phase
from resourcesync.ports.tables import DoneRow, ListedRow, WorkRow
from tests.support.crashes.killing import Killed
from tests.support.simulated.shared_world import SharedCampaign
from tests.support.storage.cursors import set_cursor
from tests.support.worlds.loose_source import Style
from tests.support.worlds.memory_fetcher import Answer
from tests.support.worlds.world import BASE

NAMES = [f"{number}.txt" for number in range(5)]


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What survives a power cut is tried elsewhere."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def made(folder: Path, **style: Any) -> Iterator[SharedCampaign]:
    loose = Style(**style) if style else None
    world = SharedCampaign(folder / "mirror", style=loose, max_entries=3)
    world.luck.seed(1)
    yield world
    world.close()


@pytest.fixture
def unhashed(tmp_path: Path) -> Iterator[SharedCampaign]:
    yield from made(tmp_path, hashes=False, whole_seconds=True)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SharedCampaign]:
    yield from made(tmp_path)


def put_all(world: SharedCampaign, text: str) -> None:
    for name in NAMES:
        world.put(name, f"{name} {text}")
    world.publish()


def test_a_second_change_within_a_second_is_fetched_by_workers_too(
    unhashed: SharedCampaign,
) -> None:
    put_all(unhashed, "first")
    unhashed.pull(unhashed.address())
    unhashed.clock.advance(seconds=5)
    put_all(unhashed, "second")
    assert unhashed.pull(unhashed.address()).updated == len(NAMES)

    put_all(unhashed, "third, as long")
    pulled = unhashed.pull(unhashed.address())

    assert pulled.state == "in sync"
    assert unhashed.contents_here() == unhashed.originals.contents()


@pytest.mark.parametrize("removals", [1, 2])
def test_a_kill_while_the_files_of_a_package_are_removed_is_got_over(
    world: SharedCampaign, removals: int
) -> None:
    put_all(world, "first")
    world.pull()
    with world.open_state(world.folder / ".resourcesync" / "state.db") as state:
        copies = list(state.copies())
    rows = [
        WorkRow(ListedRow(copy.uri, copy.uri, copy.path, "", 1, None, "", ""), None)
        for copy in copies
    ]
    file, send = f"{world.scratch}/made", world.exchange.send
    world.tables.write_work(file, rows)
    for ending in (".permit", ".matched", ".pairs"):
        send(f"package/one{ending}", file)
    world.tables.write_done(file, [DoneRow(copy.uri, copy, None) for copy in copies])
    send("package/one", file)
    left, remove = removals, world.exchange.remove

    def removing(name: str) -> None:
        nonlocal left
        if not left:
            raise Killed
        left -= 1
        remove(name)

    world.exchange.remove = removing  # type: ignore[method-assign]
    with pytest.raises(Killed):
        world.pull()
    world.exchange.remove = remove  # type: ignore[method-assign]

    assert world.pull(mode="baseline").state == "in sync"
    assert world.contents_here() == world.originals.contents()
    assert not world.exchange.files


def test_what_rests_is_accounted_for(world: SharedCampaign) -> None:
    world.answers[f"{BASE}3.txt"] = Answer(status=404)
    put_all(world, "first")

    for _ in range(7):
        report = world.pull(mode="baseline")
        parts = report.unchanged + report.applied + report.pending + report.refused
        assert (report.listed, parts, report.pending) == (len(NAMES), len(NAMES), 1)
    assert f"{BASE}3.txt" not in world.fetcher.asked, "it rests"


def test_workers_are_given_no_more_than_a_run_may_fetch(world: SharedCampaign) -> None:
    put_all(world, "x" * 99_994)  # more than all lists together

    for count in (2, 4, 5):
        report = world.pull(max_bytes=250_000)
        assert (len(world.contents_here()), report.state == "in sync") == (count, count == 5)
        assert report.spent == ("" if count == 5 else "bytes")


def test_after_a_failure_no_more_is_handed_out_if_so_wished(world: SharedCampaign) -> None:
    world.answers[f"{BASE}0.txt"] = Answer(status=404)
    put_all(world, "first")

    report = world.pull(fail_fast=True)

    assert (report.state, report.failed, report.created) == ("behind", 1, 2)


def test_deletions_that_change_lists_tell_of_are_planned(world: SharedCampaign) -> None:
    put_all(world, "first")
    world.pull()
    world.remove(NAMES[0])
    world.publish()

    report = world.pull(mode="baseline", dry_run=True)

    assert report.dry_run
    assert world.told("plan")[0]["delete"] == 1


def test_a_rolling_audit_finds_the_copies_of_a_table(world: SharedCampaign) -> None:
    put_all(world, "first")
    world.pull()
    (world.folder / NAMES[0]).write_text("rotten")

    for share, proven in ((0.6, 3), (0.4, 2)):  # each copy once
        report = world.audit(rolling=AuditRolling(share=share, oldest_first=True))
        assert report.proven == proven
        world.clock.advance(seconds=1)
    assert world.audit(rolling=AuditRolling(share=1, oldest_first=True)).doubted <= 1
    assert world.pull().updated == 1


def test_what_entries_link_to_is_remembered(world: SharedCampaign) -> None:
    put_all(world, "first")
    link = b'<rs:ln rel="describedby" href="http://source.example/about.xml"/></url>'
    for name in [name for name in world.documents.names() if "resourcelist" in name]:
        opened = world.documents.open(name)
        assert opened is not None
        world.documents.write(name, [opened.read().replace(b"</url>", link)])

    for _ in range(2):
        assert world.pull(mode="baseline").state == "in sync"
        with world.open_state(world.folder / ".resourcesync" / "state.db") as state:
            assert all("about.xml" in state.entry_links(f"{BASE}{name}") for name in NAMES)


@pytest.mark.parametrize("outcome", ["damaged", "of other rows"])
def test_an_outcome_that_cannot_be_used_is_none(world: SharedCampaign, outcome: str) -> None:
    put_all(world, "first")
    world.pull()
    with world.open_state(world.folder / ".resourcesync" / "state.db") as state:
        copies = list(state.copies())
        set_cursor(state, phase=Phase.BASELINE_DUE)
    file = f"{world.scratch}/made"
    listed = [ListedRow(copy.uri, copy.uri, copy.path, "", 1, None, "", "") for copy in copies]
    world.tables.write_work(file, [WorkRow(row, None) for row in listed])
    for name in ("work/dead-0", "done/dead-0.begun"):
        world.exchange.send(name, file)
    world.tables.write_done(file, [DoneRow(copy.uri, copy, None) for copy in copies[1:]])
    world.exchange.send("done/dead-0", file)
    if outcome == "damaged":
        world.exchange.files["done/dead-0"] = b"PAR1"

    assert world.pull().state == "in sync"
    assert not world.exchange.files
    assert world.contents_here() == world.originals.contents()
    assert {copy.uri for copy in copies} <= set(world.fetcher.asked), "nothing was held for known"
