"""What is taken away, and what is not."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.destination.audits.explain import ResourceVerdict, explain
from resourcesync.destination.pending_tasks import pending_delete
from resourcesync.destination.reports import MirrorState
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.mirror_state.rows import StateTransaction, TrashRow
from resourcesync.model.settings import Limit
from resourcesync.model.timestamps import format_w3c, to_microseconds
from tests.support.crashes.killing import Dying, Fuse, Killed, killed
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import OwnWorld, World

RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"


@pytest.mark.founding("0.9 §2.2.2", "Copies of deleted resources are removed", "`pull`")
def test_a_deleted_copy_waits_in_the_trash_and_then_is_gone(world: OwnWorld) -> None:
    world.pull()
    world.source.publish_deletion("objects/0003.html")
    world.pull()
    trash = world.folder / ".resourcesync" / "trash"

    assert [item.read_text() for item in trash.iterdir()] == ["content of 3"]
    world.clock.advance(hours=24 * 29)
    world.pull()
    assert list(trash.iterdir())
    world.clock.advance(hours=48)
    world.pull()
    assert not list(trash.iterdir())


@pytest.mark.founding(
    "0.9 §2.2.2", "Copies of deleted resources stay, if needed", "`pull --delete never`"
)
def test_deletions_can_be_forbidden(world: OwnWorld) -> None:
    world.pull()
    world.source.publish_deletion("objects/0003.html")

    report = world.pull(delete="never")

    assert (report.deleted, report.retained.unlisted) == (0, 1)
    assert (world.folder / "objects/0003.html").exists()


@pytest.mark.parametrize("mode", ["auto", "baseline"])
def test_what_the_filters_do_not_want_any_more_is_told_apart_from_what_is_not_listed(
    mode: Any, world: OwnWorld
) -> None:
    world.pull()
    world.source.remove("objects/0003.html")
    world.source.put("objects/0001.html", "other")
    world.source.publish()
    chosen = Filters(exclude=("/objects/0001.html", "/objects/0002.html"))

    report = world.pull(filters=chosen, mode=mode, delete="never")

    assert (report.retained.unlisted, report.retained.filtered) == (1, 2)
    assert report.state is MirrorState.IN_SYNC
    assert (report.listed.total, report.listed.unchanged, report.listed.applied) == (38, 38, 0)
    again = world.pull(filters=chosen, delete="never")
    assert (again.retained.filtered, again.state) == (2, MirrorState.IN_SYNC)
    with world.destination() as destination:
        looking = destination.read_only_session()
        verdicts = [
            explain(looking, [f"{BASE}objects/000{n}.html"], list, offline=False).verdict
            for n in (1, 2, 3)
        ]
    assert verdicts == [ResourceVerdict.UNWANTED, ResourceVerdict.UNWANTED, ResourceVerdict.KEPT]


def big_world(folder: Path) -> OwnWorld:
    world = World(folder)
    for number in range(300):
        world.source.put(f"{number}.html", f"{number}")
    world.source.publish()
    world.pull()
    return world


def test_many_deletions_are_held_until_a_person_allows_them(tmp_path: Path) -> None:
    world = big_world(tmp_path / "mirror")
    for number in range(100):
        world.source.remove(f"{number}.html")
    world.source.publish_file("200.html", "changed too")

    held = world.pull()
    assert (world.repair(dry_run=True).held, world.repair().held) == (100, 100)
    at_once = world.pull()
    world.source.publish_file("201.html", "a later word of the Source")
    later = world.pull()
    world.clock.advance(hours=20)
    world.source.publish_file("202.html", "another")
    much_later = world.pull()
    chosen = Filters(exclude=tuple(f"/{digit}*" for digit in range(1, 9)))
    foreseen, filtered = world.pull(filters=chosen, dry_run=True), world.pull(filters=chosen)
    whole = world.pull(filters=Filters())
    done = world.pull(max_delete=Limit(number=100))

    assert (held.state, held.deleted, held.held) == (MirrorState.STOPPED, 0, 100)
    assert held.updated == 1
    assert (at_once.deleted, at_once.held) == (0, 100)
    assert (later.deleted, later.held) == (0, 100)
    assert (much_later.deleted, much_later.held, much_later.held_of) == (0, 100, 300)
    assert (filtered.deleted, filtered.held) == (0, 12), "a new filter releases none"
    assert (foreseen.state, foreseen.held) == (MirrorState.STOPPED, 12)
    assert (whole.deleted, whole.held) == (0, 100)
    assert (done.state, done.deleted) == (MirrorState.IN_SYNC, 100)
    assert world.in_sync()


def test_a_held_deletion_is_taken_back_when_the_resource_comes_back(tmp_path: Path) -> None:
    world = big_world(tmp_path / "mirror")
    for number in range(100):
        world.source.remove(f"{number}.html")
    world.source.publish()
    world.pull()
    for number in range(100):
        world.source.put(f"{number}.html", f"{number}")
    world.source.publish()

    report = world.pull()

    assert (report.state, report.held, report.deleted) == (MirrorState.IN_SYNC, 0, 0)
    assert world.asked_resources() == []


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_copy_that_was_edited_here_holds_no_other_deletion_however_long_it_waits(
    tmp_path: Path, *, is_gone: bool
) -> None:
    """Each day one more is deleted: nobody takes the copy away, and the Source has it or not."""
    world = World(tmp_path)
    for number in range(60):
        world.source.put(f"{number:02}", f"{number}")
    world.source.publish()
    world.pull()
    (world.folder / "00").write_text("mine")
    world.source.remove("00")
    if not is_gone:
        world.network.answers[f"{BASE}00"] = Answer(body=b"still here")

    for day in range(1, 40):
        world.source.remove(f"{day:02}")
        world.source.publish(after=86_400)
        report = world.pull()

        assert (report.state, report.held, report.deleted) == (MirrorState.BEHIND, 0, 1), day
        assert (report.failed, report.retained.edited) == (1, 1)
        assert (world.status().held, len(world.told("item"))) == (0, 2), "each is reported once"
    assert (world.folder / "00").read_text() == "mine"


def test_files_that_we_did_not_fetch_are_never_touched(world: OwnWorld) -> None:
    world.pull()
    (world.folder / "notes.txt").write_text("mine")
    world.source.publish_deletion("objects/0003.html")
    world.pull()
    world.pull(mode="baseline")

    assert (world.folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("how", [0, 1, 2])
def test_what_a_killed_run_moved_to_the_trash_is_purged_in_its_time(
    tmp_path: Path, how: int
) -> None:
    for writes in range(30):
        world = World(tmp_path / f"mirror-{writes}")
        for number in range(6):
            world.source.put(f"{number}.html", f"content {number}")
        world.source.publish()
        world.pull()
        for number in (1, 3, 4):
            world.source.remove(f"{number}.html")
        world.source.publish()
        with killed(world.home, writes, how=how) as fuse:
            world.pull()
        trash = world.folder / ".resourcesync" / "trash"
        assert world.pull().state is MirrorState.IN_SYNC
        assert len(list(trash.iterdir())) == 3
        world.clock.advance(hours=24 * 31)

        world.pull()

        assert list(trash.iterdir()) == []
        if not fuse.is_burnt:
            break
    else:
        raise AssertionError("the run was never long enough to end by itself")


def test_a_killed_pruning_is_ended_by_the_next_one_that_prunes_only(world: OwnWorld) -> None:
    world.pull()
    chosen = Filters(include=("/objects/0001.html",))
    with world.home.behind(killed_in_the_sweep), suppress(Killed):
        world.pull(filters=chosen, prune=True, max_delete=Limit(number=100))
    world.pull()
    kept = set(world.home.files_on_disk())

    report = world.pull(prune=True, max_delete=Limit(number=100))

    assert world.home.files_on_disk().keys() == {"objects/0001.html"}
    assert report.state is MirrorState.IN_SYNC
    assert kept >= {"objects/0001.html"}


def killed_in_the_sweep(port: Any) -> Any:
    class Sweeping(Dying):
        def remove(self, batch: Any, reason: str) -> Any:
            self._real.remove(batch, reason)
            raise Killed

    return Sweeping(port, Fuse(1000, how=0))


def test_a_killed_sweep_leaves_what_is_known_of_a_large_trash_as_it_is(world: OwnWorld) -> None:
    world.pull()
    world.source.publish_deletion("objects/0003.html")
    world.pull()
    now = to_microseconds(world.clock.now())
    with MirrorFolder(world.folder, world.clock) as mirror:
        assert mirror.state is not None
        known = mirror.state.trash_of(f"{BASE}objects/0003.html")
        assert known is not None
        older = [TrashRow(f"{n:016x}-x", f"u{n}", "x", now - 1, "why") for n in range(100_003)]
        mirror.state.commit(StateTransaction(trashed=[*older, known]))
    world.source.publish_deletion("objects/0004.html")
    with world.home.behind(killed_in_the_sweep), suppress(Killed):
        world.pull()

    world.pull()

    with MirrorFolder(world.folder, world.clock) as mirror:
        assert mirror.state is not None
        assert mirror.state.trash_of(known.uri) == known
        lost = [row for row in mirror.state.trash(removed_before=1 << 62) if not row.uri]
    assert [row.place.rpartition("-")[2] for row in lost] == ["0004.html"]


def test_a_deletion_without_a_copy_is_done_and_not_held(world: OwnWorld) -> None:
    world.pull()
    with MirrorFolder(world.folder, world.clock) as mirror:
        assert mirror.state is not None
        copy = next(mirror.state.copies())._replace(uri=f"{BASE}gone.html")
        generation = 1 << 40  # of no earlier reading, so a baseline leaves it
        task = pending_delete(copy, reason="gone", now=0, at=0, generation=generation)
        mirror.state.commit(StateTransaction(pending=[task]))

    report = world.pull(mode="baseline", max_delete=Limit(number=0))

    assert (report.state, report.held) == (MirrorState.IN_SYNC, 0)


def cut_list(world: OwnWorld, kept: int, *, at: bool = True) -> None:
    """Serve a Resource List that is well-formed, and has lost most of its entries."""
    head, *entries = world.source.honest(RESOURCE_LIST).body.decode().split("<url>")
    if at:  # as if it had just been made
        world.clock.advance(seconds=60)
        head = re.sub(r'at="[^"]*"', f'at="{format_w3c(world.clock.now())}"', head)
    body = "<url>".join([head, *entries[:kept]])
    end = "" if body.rstrip().endswith("</urlset>") else "</urlset>"
    world.network.answers[RESOURCE_LIST] = Answer(body=(body + end).encode())


def test_neither_a_later_list_nor_changes_confirm_what_a_list_lacks(tmp_path: Path) -> None:
    world = big_world(tmp_path / "mirror")
    cut_list(world, kept=20)
    world.pull(mode="baseline")
    for _ in range(3):
        world.clock.advance(hours=3)
        cut_list(world, kept=20)

        report = world.pull()

        assert (report.state, report.deleted, report.held) == (MirrorState.STOPPED, 0, 280)
    world.source.publish_file("200.html", "changed")
    report = world.pull()  # of changes alone, one of which is that it is there
    assert (report.deleted, report.held) == (0, 279)
    assert len(world.files()) == 300


def test_a_list_of_the_same_moment_deletes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    for number in range(6):
        world.source.put(f"{number}.html", f"{number}")
    world.source.publish()
    world.pull()
    cut_list(world, kept=2, at=False)

    report = world.pull(mode="baseline")
    believed = world.pull(mode="baseline", delete="absent")
    allowed = world.pull(mode="baseline", delete="absent", max_delete=Limit(number=4))

    assert (report.deleted, report.held, report.retained.unlisted) == (0, 0, 4)
    assert (believed.deleted, believed.held) == (0, 4)  # more than half of what was here
    assert allowed.deleted == 4  # the operator said so
