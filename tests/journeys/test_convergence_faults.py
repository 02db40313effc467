"""Faults that thought and the campaign of hard lives found, each as the shortest life with it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.mirror.copies import FileTreeCopies
from resourcesync.adapters.mirror.state import SqliteMirrorState
from resourcesync.destination.options import Filters
from resourcesync.destination.plan import DeletionLimit
from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.errors import ResourceSyncError, SourceUnavailableError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports.mirror import Step
from tests.support.killing import Killed
from tests.support.loose_source import LooseSource, Style
from tests.support.memory_fetcher import Answer
from tests.support.world import BASE, World

CHANGE_LIST = BASE + "resourcesync/changelist.xml"
RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"


class Loose(World):
    """A world whose Source writes its lists as others do."""

    def __init__(self, folder: Path, **style: Any) -> None:
        super().__init__(folder)
        self.source = LooseSource(f"{BASE}resourcesync/", Style(**style))

    def publish(self) -> None:
        self.source.publish(self.moment(), self.originals.contents())
        self.show()

    def snapshot(self) -> None:
        self.source.snapshot(self.moment())
        self.show()

    def rotate(self) -> None:
        self.source.rotate(self.moment())
        self.show()

    def moment(self) -> int:
        self.clock.advance(seconds=60)
        return to_microseconds(self.clock.now())

    def show(self) -> None:
        for name, text in self.source.documents().items():
            self.documents.write(f"resourcesync/{name}", [text.encode()])

    def pull(self, source: str | None = None, **options: Any) -> Any:
        return super().pull(f"{BASE}resourcesync/capabilitylist.xml", **options)


@pytest.fixture
def kill(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Kill pulls at a write from now on, until ``undo``; a dead process writes nothing more."""

    def at(kind: type, name: str, when: Callable[..., bool], *, after: bool = False) -> None:
        real = getattr(kind, name)

        def dying(self: Any, *args: Any, **options: Any) -> Any:
            if not when(*args):
                return real(self, *args, **options)
            if after:
                real(self, *args, **options)
            monkeypatch.setattr(SqliteMirrorState, "commit", dead)
            monkeypatch.setattr(SqliteMirrorState, "add_run", dead)
            raise Killed

        monkeypatch.setattr(kind, name, dying)

    def dead(*args: Any) -> None:
        raise Killed

    return at


def notes(step: Step) -> Mapping[str, str]:
    return step.notes or {}


# --- killed at the worst moment ---


def test_a_copy_that_was_in_the_trash_when_the_run_was_killed_is_fetched_when_it_comes_back(
    world: World, kill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.pull()
    world.remove("index.html")
    world.publish()
    with monkeypatch.context():
        kill(FileTreeCopies, "remove", lambda *_: True, after=True)
        with pytest.raises(Killed):
            world.pull()
        monkeypatch.undo()
    world.put("index.html", "home")
    world.publish()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_copy_that_was_replaced_when_the_run_was_killed_is_replaced_back(
    world: World, kill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.pull()
    world.put("index.html", "other")
    world.publish()
    kill(FileTreeCopies, "install", bool, after=True)
    with pytest.raises(Killed):
        world.pull()
    monkeypatch.undo()
    world.put("index.html", "home")
    world.publish()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


@pytest.mark.parametrize("before", ["home", None])
def test_a_copy_that_was_put_in_place_when_the_run_was_killed_is_deleted_with_its_original(
    world: World, kill: Callable[..., None], monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    if before is None:
        world.remove("index.html")
        world.publish()
    world.pull()
    world.put("index.html", "other")
    world.publish()
    kill(FileTreeCopies, "install", bool, after=True)
    with pytest.raises(Killed):
        world.pull()
    monkeypatch.undo()
    world.remove("index.html")
    world.publish()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_deletion_of_a_baseline_that_was_killed_does_not_outlive_the_next_baseline(
    world: World, kill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.pull()
    world.remove("index.html")
    world.put("new.html", "new")
    world.publish()
    kill(SqliteMirrorState, "commit", lambda step: "through" in notes(step))
    with pytest.raises(Killed):
        world.pull(mode="baseline")
    monkeypatch.undo()
    world.put("index.html", "home")
    world.publish()

    assert world.pull(mode="baseline").state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_deletion_that_a_baseline_took_back_is_gone_as_soon_as_its_cursor_is_written(
    world: World, kill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.pull()
    for number in range(40):
        world.remove(f"objects/{number:04}.html")
    world.publish()
    assert world.pull().held == 40
    for number in range(40):
        world.put(f"objects/{number:04}.html", f"content of {number}")
    world.publish()
    kill(SqliteMirrorState, "commit", lambda step: "through" in notes(step), after=True)
    with pytest.raises(Killed):
        world.pull(mode="baseline")
    monkeypatch.undo()
    world.clock.advance(hours=2)
    world.put("x.html", "x")
    world.publish()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_baseline_that_was_killed_is_ended_by_the_next_pull(
    world: World, kill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.pull()
    (world.folder / "index.html").unlink()
    kill(FileTreeCopies, "install", bool)
    with pytest.raises(Killed):
        world.pull(mode="baseline")
    monkeypatch.undo()

    assert world.pull().mode is Mode.BASELINE
    assert world.in_sync()
    assert world.pull().mode is Mode.UNCHANGED


# --- other filters ---


def test_other_filters_are_not_forgotten_when_their_first_pull_fails(world: World) -> None:
    world.pull(filters=Filters(exclude=("index.html",)))
    world.answers[RESOURCE_LIST] = Answer(status=503)
    with pytest.raises(ResourceSyncError):
        world.pull(filters=Filters())
    world.answers.clear()

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert report.created == 1
    assert world.in_sync()


# --- Change Lists that do not reach back to the Resource List ---


@pytest.fixture
def holed(tmp_path: Path) -> Loose:
    """A Source whose Change List begins after its Resource List, with a change in between."""
    world = Loose(tmp_path / "mirror")
    world.put("a.txt", "a")
    world.publish()
    world.put("b.txt", "b")
    world.publish()
    world.rotate()
    return world


def test_a_first_pull_over_a_hole_is_not_called_in_sync_and_is_mended_by_the_next_resource_list(
    holed: Loose,
) -> None:
    first = holed.pull()
    holed.put("c.txt", "c")
    holed.publish()
    second = holed.pull()
    holed.snapshot()
    third = holed.pull()

    assert (first.state, first.created) == (MirrorState.BEHIND, 1)
    assert (second.state, second.mode, second.created) == (MirrorState.BEHIND, Mode.INCREMENTAL, 1)
    assert (third.state, third.created) == (MirrorState.IN_SYNC, 1)
    assert holed.in_sync()


def test_a_baseline_over_a_hole_deletes_nothing_for_being_absent(tmp_path: Path) -> None:
    world = Loose(tmp_path / "mirror")
    world.put("a.txt", "a")
    world.publish()
    world.put("b.txt", "b")
    world.publish()
    world.pull()
    world.rotate()

    report = world.pull(mode="baseline")

    assert (report.deleted, report.state) == (0, MirrorState.BEHIND)
    assert world.in_sync()


def test_a_gap_behind_an_index_that_tells_no_intervals_is_found(tmp_path: Path) -> None:
    world = Loose(tmp_path / "mirror", index=True, announces=False, keep=0)
    world.put("a.txt", "a")
    world.publish()
    world.pull()
    world.put("b.txt", "b")
    world.publish()
    world.rotate()
    world.snapshot()

    report = world.pull()

    assert [fields["code"] for fields in world.told("warning")] == ["change-gap"]
    assert (report.mode, report.state) == (Mode.BASELINE, MirrorState.IN_SYNC)
    assert world.in_sync()


# --- changes without a time ---


@pytest.mark.parametrize("hashes", [True, False])
def test_changes_without_a_time_are_fetched_once_and_none_is_lost(
    tmp_path: Path, *, hashes: bool
) -> None:
    world = Loose(tmp_path / "mirror", times=False, hashes=hashes, lastmods=not hashes)
    world.put("a.txt", "a")
    world.publish()
    world.pull()
    world.put("a.txt", "b")
    world.publish()

    assert world.pull().updated == 1
    assert world.pull().mode is Mode.UNCHANGED
    assert world.asked_resources() == []
    world.remove("a.txt")
    world.publish()
    assert world.pull().deleted == 1
    assert world.in_sync()


@pytest.mark.parametrize("lists", [1, 2])
def test_an_old_deletion_without_a_time_is_not_obeyed_against_a_newer_creation(
    tmp_path: Path, lists: int
) -> None:
    world = Loose(tmp_path / "mirror", times=False, index=True, announces=False)
    world.put("a.txt", "a")
    world.publish()
    world.remove("a.txt")
    world.publish()
    if lists == 2:
        world.rotate()
    world.put("a.txt", "again")
    world.publish()
    world.snapshot()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_deletions_without_a_time_that_were_held_are_done_when_the_source_says_more(
    tmp_path: Path,
) -> None:
    world = Loose(tmp_path / "mirror", times=False, lastmods=False)
    for number in range(40):
        world.put(f"{number}.txt", f"{number}")
    world.publish()
    world.pull()
    for number in range(1, 40):
        world.remove(f"{number}.txt")
    world.publish()
    assert world.pull().held == 39
    world.clock.advance(hours=2)
    world.put("0.txt", "more")
    world.publish()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_change_in_the_second_of_the_last_one_is_not_taken_for_it_without_a_hash(
    tmp_path: Path,
) -> None:
    world = Loose(tmp_path / "mirror", hashes=False, whole_seconds=True)
    world.put("a.txt", "one")
    world.publish()
    world.pull()
    world.put("a.txt", "two")
    world.publish()
    world.pull()
    world.put("a.txt", "six")
    world.clock.advance(seconds=0.1)
    world.source.publish(to_microseconds(world.clock.now()), world.originals.contents())
    world.show()

    world.pull()

    assert world.in_sync()


# --- from the far future ---


def test_a_change_from_the_far_future_hides_none_of_those_that_come_after_it(
    tmp_path: Path,
) -> None:
    world = Loose(tmp_path / "mirror", index=True)
    world.put("a.txt", "a")
    world.publish()
    bogus = f'<url><loc>{BASE}gone.txt</loc><rs:md change="deleted" datetime="9999-01-01"/></url>'
    world.source.open_list.entries.append(bogus)
    world.show()
    world.pull()
    world.put("b.txt", "b")
    world.publish()
    world.rotate()
    world.put("c.txt", "c")
    world.publish()
    world.rotate()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


# --- deletions that were held ---


def test_a_held_deletion_is_taken_back_when_the_resource_returns_but_is_filtered(
    world: World,
) -> None:
    world.pull(max_delete=DeletionLimit(count=0), filters=Filters(max_size=100))
    world.remove("index.html")
    world.publish()
    assert world.pull(max_delete=DeletionLimit(count=0)).held == 1
    world.put("index.html", "too long " * 100)
    world.publish()

    report = world.pull(max_delete=DeletionLimit(count=0))
    world.clock.advance(hours=2)
    world.put("x.html", "x")
    world.publish()

    assert report.held == 0
    assert world.pull().deleted == 0
    assert (world.folder / "index.html").read_text() == "home"


# --- old copies ---


def test_an_old_copy_of_the_changes_does_not_set_a_mirror_back_when_its_filters_change(
    world: World,
) -> None:
    world.pull()
    world.remove("index.html")
    world.publish()
    old = world.honest(CHANGE_LIST)
    world.put("index.html", "home")
    world.publish()
    world.pull()
    world.answers[CHANGE_LIST] = old

    with pytest.raises(SourceUnavailableError) as caught:
        world.pull(filters=Filters(exclude=("x.html",)))

    assert caught.value.code == "stale-copy"
    assert world.in_sync()
    world.answers.clear()
    assert world.pull().state is MirrorState.IN_SYNC


def test_an_old_copy_of_a_list_that_was_never_read_to_its_end_is_not_applied_after_a_baseline(
    tmp_path: Path,
) -> None:
    world = Loose(tmp_path / "mirror")
    world.put("a.txt", "a")
    world.publish()
    world.pull()
    world.remove("a.txt")
    world.publish()
    old = world.honest(f"{BASE}resourcesync/changelist.xml")
    world.put("a.txt", "a")
    world.publish()
    world.rotate()
    world.snapshot()
    assert world.pull().mode is Mode.BASELINE
    world.answers[f"{BASE}resourcesync/changelist.xml"] = old

    world.pull()

    assert world.in_sync()
