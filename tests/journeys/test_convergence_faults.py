"""Runs that were killed at the worst moment, each as the shortest life that strayed."""

from collections.abc import Callable
from typing import Any

import pytest

from resourcesync import Mirror
from resourcesync.adapters.mirror.installed_copies import FileTreeCopies
from resourcesync.cli.render.status import notes_of
from resourcesync.destination.audits.explain import ResourceVerdict
from resourcesync.destination.mirror_health import CheckedMirror
from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import StateTransaction
from tests.support.crashes.killing import Killed
from tests.support.worlds.network import BASE
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World


@pytest.fixture
def killed(world: World[PublishedSource], monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:

    def pull(
        kind: type, name: str, when: Callable[..., bool], *, after: bool = False, **options: Any
    ) -> None:
        real = getattr(kind, name)

        def dying(self: Any, *args: Any, **more: Any) -> Any:
            if not when(*args):
                return real(self, *args, **more)
            if after:
                real(self, *args, **more)
            monkeypatch.setattr(SqliteMirrorState, "commit", dead)
            monkeypatch.setattr(SqliteMirrorState, "add_run", dead)
            raise Killed

        monkeypatch.setattr(kind, name, dying)
        with pytest.raises(Killed):
            world.pull(**options)
        monkeypatch.undo()

    def dead(*args: Any) -> None:
        raise Killed

    return pull


def moves_cursor(step: StateTransaction) -> bool:
    return "cursor" in (step.notes or {}) and bool(step.documents)


def lists(world: World[PublishedSource], text: str | None) -> None:
    if text is not None:
        world.source.publish_file("index.html", text)
    elif BASE + "index.html" in world.source.contents():
        world.source.publish_deletion("index.html")


@pytest.mark.parametrize(
    ("before", "when_killed", "later"),
    [
        ("home", None, "home"),
        ("home", "other", "home"),
        ("home", "other", None),
        (None, "other", None),
    ],
)
def test_a_copy_that_was_put_away_or_in_place_when_the_run_was_killed_is_as_listed_later(
    world: World[PublishedSource],
    killed: Callable[..., None],
    before: str | None,
    when_killed: str | None,
    later: str | None,
) -> None:
    world.pull()
    lists(world, before)
    world.pull()
    lists(world, when_killed)
    name, when = ("remove", lambda *_: True) if when_killed is None else ("install", bool)
    killed(FileTreeCopies, name, when, after=True)
    lists(world, later)

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_deletion_of_a_baseline_that_was_killed_does_not_outlive_the_next_baseline(
    world: World[PublishedSource], killed: Callable[..., None]
) -> None:
    world.pull()
    world.source.remove("index.html")
    world.source.publish_file("new.html", "new")
    killed(SqliteMirrorState, "commit", moves_cursor, mode="baseline")
    world.source.publish_file("index.html", "home")

    assert world.pull(mode="baseline").state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_deletion_of_a_pull_that_was_killed_waits_and_is_not_held(
    world: World[PublishedSource], killed: Callable[..., None]
) -> None:
    world.pull()
    world.source.remove("index.html")
    world.source.publish_file("new.html", "new")
    killed(FileTreeCopies, "install", bool)

    left = world.status()
    assert (left.deletions, left.held) == (1, 0)
    assert left.share is not None
    assert left.share < 1
    assert "1 deletion pending until the next pull." in notes_of(CheckedMirror(left))
    assert world.why("index.html").verdict is ResourceVerdict.UNDELETED
    assert world.pull().deleted == 1
    assert (world.status().deletions, world.status().share) == (0, 1)


def test_a_deletion_that_a_baseline_took_back_is_gone_as_soon_as_its_cursor_is_written(
    world: World[PublishedSource], killed: Callable[..., None]
) -> None:
    world.pull()
    for number in range(40):
        world.source.remove(f"objects/{number:04}.html")
    world.source.publish()
    assert world.pull().held == 40
    for number in range(40):
        world.source.put(f"objects/{number:04}.html", f"content of {number}")
    world.source.publish()
    killed(SqliteMirrorState, "commit", moves_cursor, after=True, mode="baseline")
    world.clock.advance(hours=2)
    world.source.publish_file("x.html", "x")

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_baseline_that_was_killed_is_ended_by_the_next_pull(
    world: World[PublishedSource], killed: Callable[..., None]
) -> None:
    world.pull()
    (world.folder / "index.html").unlink()
    killed(FileTreeCopies, "install", bool, mode="baseline")

    assert world.pull().mode is Mode.BASELINE
    assert world.in_sync()
    assert world.pull().mode is Mode.UNCHANGED


def test_what_a_killed_first_pull_did_not_put_in_place_is_not_here_and_is_created_later(
    world: World[PublishedSource], killed: Callable[..., None]
) -> None:
    killed(FileTreeCopies, "install", bool)
    mirror = Mirror(None, world.folder)
    assert (list(mirror.resources()), mirror.path(f"{BASE}index.html")) == ([], None)

    report = world.pull()

    listed = len(world.source.contents())
    assert (report.created, report.updated, len(list(mirror.resources()))) == (listed, 0, listed)
