"""Runs that were killed at the worst moment, each as the shortest life that strayed."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from resourcesync.adapters.mirror.copies import FileTreeCopies
from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.destination.scope import Filters
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import StateTransaction
from tests.support.crashes.killing import Killed
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World


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


def notes(step: StateTransaction) -> Mapping[str, str]:
    return step.notes or {}


def moves_cursor(step: StateTransaction) -> bool:
    return "cursor" in notes(step) and bool(step.documents)


def test_a_copy_that_was_in_the_trash_when_the_run_was_killed_is_fetched_when_it_comes_back(
    world: World[PublishedSource], kill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.pull()
    world.source.publish_deletion("index.html")
    with monkeypatch.context():
        kill(FileTreeCopies, "remove", lambda *_: True, after=True)
        with pytest.raises(Killed):
            world.pull()
        monkeypatch.undo()
    world.source.publish_file("index.html", "home")

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_copy_that_was_replaced_when_the_run_was_killed_is_replaced_back(
    world: World[PublishedSource], kill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.pull()
    world.source.publish_file("index.html", "other")
    kill(FileTreeCopies, "install", bool, after=True)
    with pytest.raises(Killed):
        world.pull()
    monkeypatch.undo()
    world.source.publish_file("index.html", "home")

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


@pytest.mark.parametrize("before", ["home", None])
def test_a_copy_that_was_put_in_place_when_the_run_was_killed_is_deleted_with_its_original(
    world: World[PublishedSource],
    kill: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    before: str | None,
) -> None:
    if before is None:
        world.source.publish_deletion("index.html")
    world.pull()
    world.source.publish_file("index.html", "other")
    kill(FileTreeCopies, "install", bool, after=True)
    with pytest.raises(Killed):
        world.pull()
    monkeypatch.undo()
    world.source.publish_deletion("index.html")

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_deletion_of_a_baseline_that_was_killed_does_not_outlive_the_next_baseline(
    world: World[PublishedSource], kill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.pull()
    world.source.remove("index.html")
    world.source.put("new.html", "new")
    world.source.publish()
    kill(SqliteMirrorState, "commit", moves_cursor)
    with pytest.raises(Killed):
        world.pull(mode="baseline")
    monkeypatch.undo()
    world.source.publish_file("index.html", "home")

    assert world.pull(mode="baseline").state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_deletion_that_a_baseline_took_back_is_gone_as_soon_as_its_cursor_is_written(
    world: World[PublishedSource], kill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.pull()
    for number in range(40):
        world.source.remove(f"objects/{number:04}.html")
    world.source.publish()
    assert world.pull().held == 40
    for number in range(40):
        world.source.put(f"objects/{number:04}.html", f"content of {number}")
    world.source.publish()
    kill(SqliteMirrorState, "commit", moves_cursor, after=True)
    with pytest.raises(Killed):
        world.pull(mode="baseline")
    monkeypatch.undo()
    world.clock.advance(hours=2)
    world.source.publish_file("x.html", "x")

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_baseline_that_was_killed_is_ended_by_the_next_pull(
    world: World[PublishedSource], kill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
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


def test_a_run_that_was_killed_as_it_stored_new_filters_leaves_a_baseline_due(
    world: World[PublishedSource], kill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.pull(filters=Filters(exclude=("/objects/**",)))
    kill(SqliteMirrorState, "commit", lambda step: "filters" in notes(step), after=True)
    with pytest.raises(Killed):
        world.pull(filters=Filters())
    monkeypatch.undo()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
