"""Values read from the state of a mirror are read again when the state changes, and only then."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resourcesync.adapters.mirror.own_folder import state_version
from resourcesync.app.mirrors import mirror_state
from resourcesync.app.watching.service import StateCache
from resourcesync.destination.reports import MirrorState
from resourcesync.errors import StateError
from resourcesync.mirror_state.database import SqliteMirrorState
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

OWN = ".resourcesync"


def settle(folder: Path) -> None:
    """Give the files of a state an age at which their times tell one version from another."""
    past = time.time_ns() - 60_000_000_000
    for name in ("state.db", "state.db-wal"):
        path = folder / OWN / name
        if path.exists():
            os.utime(path, ns=(past, past))


class Reader:
    """Counts how often a value was read."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> int:
        self.count += 1
        return self.count


def test_a_value_is_read_again_after_a_pull(world: World[PublishedSource]) -> None:
    world.pull()
    settle(world.folder)
    cache = StateCache()
    before = cache.status(world.folder)
    world.source.put("new.html", "new")
    world.source.publish()

    world.pull()

    assert cache.status(world.folder) == mirror_state.read_status(world.folder)
    assert cache.status(world.folder).resources == before.resources + 1
    settle(world.folder)
    assert cache.status(world.folder).resources == before.resources + 1


def test_a_state_that_was_just_written_is_always_read(world: World[PublishedSource]) -> None:
    world.pull()
    (world.folder / OWN / "state.db").touch()
    cache, read = StateCache(), Reader()

    assert state_version(world.folder) is None
    assert [cache.read(world.folder, "a", read) for _ in range(2)] == [1, 2]


def test_a_value_of_a_state_that_changes_while_it_is_read_is_not_stored(
    world: World[PublishedSource],
) -> None:
    world.pull()
    settle(world.folder)
    cache, read = StateCache(), Reader()

    state = world.folder / OWN / "state.db"
    before = state.stat().st_mtime_ns

    def read_and_change() -> int:
        state.touch()
        return read()

    assert cache.read(world.folder, "a", read_and_change) == 1
    os.utime(state, ns=(before, before))
    assert cache.read(world.folder, "a", read) == 2


def test_a_running_pull_is_seen_at_once(world: World[PublishedSource]) -> None:
    world.pull()
    settle(world.folder)
    cache = StateCache()
    assert cache.status(world.folder).state is MirrorState.IN_SYNC

    with mirror_is_locked(world.folder):
        assert cache.status(world.folder).state is MirrorState.SYNCING
    assert cache.status(world.folder).state is MirrorState.IN_SYNC


@contextmanager
def mirror_is_locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a mirror, as a pull does."""
    with (folder / OWN / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.mark.parametrize("with_log", [False, True])
def test_a_status_with_and_without_a_log_is_the_same(
    world: World[PublishedSource], *, with_log: bool
) -> None:
    world.source.put("late.html", "late")
    world.source.publish()
    world.pull()
    expected = mirror_state.read_status(world.folder)
    settle(world.folder)
    if with_log:
        with SqliteMirrorState(world.folder / OWN / "state.db") as state:
            state.remember("extra", "1")
            assert mirror_state.read_status(world.folder) == expected
    assert mirror_state.read_status(world.folder) == expected


def test_a_damaged_state_is_reported_as_ever(world: World[PublishedSource]) -> None:
    world.pull()
    (world.folder / OWN / "state.db").write_bytes(b"no database at all" * 1000)
    settle(world.folder)

    with pytest.raises(StateError):
        StateCache().status(world.folder)


class ContestedKey:
    """A key; whenever it is looked up again, another thread has just filled the cache."""

    def __init__(self) -> None:
        self.rival: Callable[[], None] | None = None
        self.lookups = 0

    def __hash__(self) -> int:
        self.lookups += 1
        if self.rival is not None and self.lookups > 1:
            self.rival()
        return 1


def test_a_value_that_another_thread_removes_meanwhile_is_no_error(
    world: World[PublishedSource],
) -> None:
    world.pull()
    settle(world.folder)
    cache, read, key = StateCache(), Reader(), ContestedKey()
    assert cache.read(world.folder, key, read) == 1

    def fill() -> None:
        for name in "abcd":
            cache.read(world.folder, name, read)

    key.rival, key.lookups = fill, 0
    assert cache.read(world.folder, key, read) == 1
