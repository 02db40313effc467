"""Publishing again and again: hints, pauses, and what goes wrong meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from resourcesync.adapters.folder_watcher import FolderWatcher
from resourcesync.app.publishing.inputs import PublishLoop, WatchIntervals
from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.errors import ConfigurationError, ResourceSyncError, StorageError
from resourcesync.source.publication_options import PublicationResult, PublishRequest
from resourcesync.source.publication_settings import CATALOGUE
from tests.support.in_memory import ManualClock
from tests.support.servers.listening import Listener

URL: dict[str, object] = {"url": "https://h.example/"}


class DoneError(Exception):
    """The script is over."""


class Script:
    """A watcher that does one thing after the other; ``None`` means that nothing is said."""

    def __init__(self, clock: ManualClock, *steps: Callable[[], object] | None) -> None:
        self._clock = clock
        self._steps: Iterator[Callable[[], object] | None] = iter(steps)
        self.waits: list[float] = []

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        step = next(self._steps, DoneError)
        if step is DoneError:
            raise DoneError
        if step is None:
            self._clock.advance(seconds=seconds)
            return False
        step()
        return True


class Kept:
    def __init__(self, tree: Path, pace: WatchIntervals | None = None) -> None:
        self.tree = tree
        self.clock = ManualClock()
        self.runs: list[PublicationResult] = []
        self.failures: list[tuple[ResourceSyncError, float]] = []
        self.keeper = PublishLoop(
            tree, self.clock, pace or WatchIntervals(), self.runs.append, self.failed
        )

    def failed(self, error: ResourceSyncError, pause: float) -> None:
        self.failures.append((error, pause))
        if len(self.failures) == 4:
            raise DoneError

    def keep(self, *steps: Callable[[], object] | None, **chosen: object) -> Script:
        script = Script(self.clock, *steps)
        with pytest.raises(DoneError):
            self.keeper.run(script.wait, URL | chosen, PublishRequest())
        return script

    def write(self, name: str, text: str = "") -> Callable[[], object]:
        return lambda: (self.tree / name).write_text(text or name)

    @property
    def created(self) -> list[int]:
        return [run.publication.created for run in self.runs]


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    (tmp_path / "a.txt").write_text("a")
    return Kept(tmp_path)


def test_lists_that_grow_old_are_closed_although_nothing_happens(kept: Kept) -> None:
    script = kept.keep(kept.write("b.txt"), None, None, None, rotate=3_600.0)

    assert 3_600 - WatchIntervals().least in script.waits
    assert (kept.tree / "resourcesync/changelist-000001.xml").exists()


def test_a_hub_that_was_not_told_is_told_a_minute_later(kept: Kept) -> None:
    with Listener(lambda _: (503, b"")) as hub:
        steps = (kept.write("b.txt"), None, None, lambda: None)
        script = kept.keep(*steps, hubs=(hub.origin,), notify=True)

    assert (
        script.waits[2] == WatchIntervals().most - WatchIntervals().least
    )  # nothing was written, but not told either
    assert len(hub.posts()) >= 4


def test_what_fails_at_first_ends_it_and_what_fails_later_is_tried_again(kept: Kept) -> None:
    with pytest.raises(ConfigurationError):
        Kept(kept.tree / "nowhere").keep(None)

    def another() -> None:
        holder.append(SourceCatalogue(kept.tree / CATALOGUE, kept.clock))

    holder: list[SourceCatalogue] = []
    sleep = kept.clock.sleep

    def release(seconds: float) -> None:
        sleep(seconds)
        if holder and len(kept.failures) == 2:
            holder.pop().close()
            (kept.tree / "b.txt").write_text("b")

    kept.clock.sleep = release  # type: ignore[method-assign]  # so that time has consequences

    kept.keep(another)

    assert [error.code for error, _ in kept.failures] == ["locked", "locked"]
    assert [pause for _, pause in kept.failures] == [2, 4]
    assert kept.created == [0, 1]


def test_an_emptied_tree_is_never_published_as_deleted(kept: Kept) -> None:
    kept.keep((kept.tree / "a.txt").unlink)

    assert [error.code for error, _ in kept.failures] == ["empty-tree"] * 4
    assert [pause for _, pause in kept.failures] == [2, 4, 8, 16]
    assert len(kept.runs) == 1
    with closing(SourceCatalogue(kept.tree / CATALOGUE, kept.clock)) as catalogue:
        assert len(list(catalogue.fingerprints())) == 1


def test_a_tree_whose_disk_is_away_is_not_published_anew(kept: Kept) -> None:
    def lose() -> None:
        kept.tree.rename(f"{kept.tree}-away")
        kept.tree.mkdir()

    kept.keep(lose)

    assert {(error.code, error.hint) for error, _ in kept.failures} == {
        ("storage", "mount its disk, or restore it")
    }
    assert list(kept.tree.iterdir()) == []


def test_our_own_documents_are_no_hint(kept: Kept) -> None:
    kept.keep(out="lists")

    def is_ours(name: str) -> bool:
        return kept.keeper.is_ours(str(kept.tree.resolve() / name))

    ours = ["lists/resourcesync/changelist.xml", ".resourcesync/catalogue.db", "x/.git"]
    assert [is_ours(name) for name in ours] == [True] * 3
    assert not any(map(is_ours, ["a.txt", "resourcesync.txt", "lists2/b", "x/robots.txt"]))


def test_a_watched_folder_gives_one_hint_for_what_comes_together(tmp_path: Path) -> None:
    pytest.importorskip("watchfiles")
    with FolderWatcher(tmp_path, lambda path: "ours" in path) as watcher:
        while not watcher.wait(0.3):  # until the system watches
            (tmp_path / "first").write_text("x")
        while watcher.wait(1.5):
            pass
        for number in range(50):
            (tmp_path / f"{number}").write_text("x")

        assert watcher.wait(20)
        while watcher.wait(1.5):
            pass
        (tmp_path / "ours").write_text("x")
        assert not watcher.wait(1)


def test_what_cannot_be_watched_is_told_and_not_waited_for(tmp_path: Path) -> None:
    pytest.importorskip("watchfiles")

    with (
        FolderWatcher(tmp_path / "nowhere", lambda _: False) as watcher,
        pytest.raises(StorageError) as caught,
    ):
        watcher.wait(30)

    assert caught.value.code == "watch"
    assert "cron" in caught.value.hint
