"""Pulls by workers, of which each fault was found once, lived through, and killed."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.ports import CopyInstallation
from tests.support.crashes.killing import Killed
from tests.support.simulated.campaign import Campaign
from tests.support.simulated.lives import born
from tests.support.worlds.folder_home import FolderHome
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.shared_workers import SharedWorkers, Steady
from tests.support.worlds.world import World

pytestmark = pytest.mark.usefixtures("without_fsync")

NAMES = [f"{number}.txt" for number in range(5)]


@pytest.fixture
def workers() -> SharedWorkers:
    return SharedWorkers(random.Random(1))


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


def test_a_second_change_within_a_second_is_fetched_by_workers_too(
    unhashed: World[LooseSource],
) -> None:
    put_all(unhashed.source, "first", after=0)
    unhashed.pull()
    unhashed.clock.advance(seconds=5)
    put_all(unhashed.source, "second", after=0)
    assert unhashed.pull().updated == len(NAMES)

    put_all(unhashed.source, "third, as long", after=0)
    pulled = unhashed.pull()

    assert pulled.state == "in sync"
    here = {BASE + path: data for path, data in unhashed.home.files_on_disk().items()}
    assert here == dict(unhashed.source.contents())


def test_what_rests_is_accounted_for(world: World[PublishedSource]) -> None:
    world.network.answers[f"{BASE}3.txt"] = Answer(status=404)
    put_all(world.source, "first")

    for _ in range(7):
        report = world.pull(mode="baseline")
        assert (report.listed.total, report.listed.pending) == (len(NAMES), 1)
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

    assert (report.state, report.failed, report.created) == ("behind", 1, 0)


def live(folder: Path, seed: int) -> SharedWorkers:
    style, max_entries, moves = born(seed, 30)
    folder.mkdir()
    workers = SharedWorkers(random.Random(f"{style} {max_entries}"))
    campaign = Campaign(folder / "mirror", style=style, max_entries=max_entries, workers=workers)
    try:
        for move in moves:
            campaign.do(move)
        campaign.heal()
    except Exception as error:
        error.add_note(f"the life of seed {seed}: {style}, {max_entries} entries, {moves}")
        raise
    return workers


def test_a_mirror_with_workers_ends_in_step_whatever_happens_and_never_lies(tmp_path: Path) -> None:
    workers = [live(tmp_path / str(seed), seed) for seed in (21, 22, 97, 216, 311)]

    assert sum(each.brought for each in workers) > 20, "workers had work"
    assert sum(each.lost for each in workers) > 3, "workers died"


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
