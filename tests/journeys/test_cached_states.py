"""Values read from the state of a mirror are read again when the state changes, and only then."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resourcesync.adapters.mirror.own_folder import state_version
from resourcesync.app.watching.service import StateCache
from resourcesync.destination.reports import MirrorState
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
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> int:
        self.count += 1
        return self.count


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
    with (folder / OWN / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
