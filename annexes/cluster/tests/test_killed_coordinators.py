"""A coordinator that is killed while workers fetch leaves nothing unknown but what it installs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.ports import CopyInstallation
from tests.support.crashes.killing import Killed
from tests.support.worlds.folder_home import FolderHome
from tests.support.worlds.network import BASE
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.shared_workers import SharedWorkers, Steady
from tests.support.worlds.world import World

pytestmark = pytest.mark.usefixtures("without_fsync")

BATCHES = 10
ROWS = 3
"""Rows of a batch of our workers."""


class Installing:
    """Stands before copies; the process dies when it has installed so many groups."""

    def __init__(self, real: Any, groups: int) -> None:
        self._real = real
        self._left = groups
        self.died_with: list[str] = []  # paths of the group that was being installed
        self.installed = 0  # how many were installed before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def install(self, batch: Sequence[CopyInstallation]) -> Any:
        if self._left:
            self._left -= 1
            self.installed += len(batch)
            return self._real.install(batch)
        if not self.died_with:
            self.died_with = [installation.path for installation in batch]
            self._real.install(batch[:1])
        raise Killed


@pytest.mark.parametrize("groups", [0, 2])
def test_only_the_group_that_is_installed_is_unknown_when_ten_batches_are_out(
    tmp_path: Path, groups: int
) -> None:
    workers = SharedWorkers(Steady())
    workers.ahead = BATCHES + 1
    home = FolderHome(tmp_path / "mirror", workers)
    world = World(home, PublishedSource(max_entries=1_000))
    for number in range(ROWS * 15):
        world.source.put(f"{number:02}.txt", f"text {number}")
    world.source.publish()
    made: list[Installing] = []

    def before(port: Any) -> Any:
        if not hasattr(port, "install"):
            return port
        made.append(Installing(port, groups))
        return made[-1]

    home.before = before
    workers.arriving = lambda: world.clock.advance(seconds=2)  # so each outcome ends a group
    with pytest.raises(Killed):
        world.pull()

    assert workers.brought >= BATCHES + 1, "ten batches are out"
    with SqliteMirrorState(world.folder / ".resourcesync" / "state.db") as state:
        copies = list(state.copies())
    unknown = {copy.path for copy in copies if copy.length < 0}
    assert unknown == set(made[0].died_with)
    assert 1 <= len(unknown) <= ROWS
    assert len(copies) == len(unknown) + made[0].installed

    home.before = lambda port: port
    world.fetcher.asked.clear()
    assert world.pull(mode="baseline").state == "in sync"
    here = {BASE + path: data for path, data in home.files_on_disk().items()}
    assert here == dict(world.source.contents())
