"""Filters, interruptions, and damage on our own side."""

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.ports import FetchRequest
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World


def test_a_pull_that_is_interrupted_goes_on_where_it_stopped(world: World[PublishedSource]) -> None:
    count = 0

    def broken(request: FetchRequest) -> Answer | Exception:
        nonlocal count
        count += 1
        return KeyboardInterrupt() if count > 20 else world.source.honest(request.uri)  # type: ignore[return-value]  # raised

    for number in range(40):
        world.network.answers[f"{BASE}objects/{number:04}.html"] = broken

    with pytest.raises(KeyboardInterrupt):
        world.pull()

    kept = len(world.files())
    assert kept >= 20
    world.network.answers.clear()
    report = world.pull()
    assert report.created == 41 - kept
    assert world.in_sync()


def test_a_lost_memory_is_rebuilt_from_the_files_without_fetching_them(
    world: World[PublishedSource],
) -> None:
    world.pull()
    (world.folder / ".resourcesync/state.db").unlink()
    (world.folder / "objects/0003.html").write_text("damaged")

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert world.asked_resources() == ["objects/0003.html"]
    assert world.in_sync()


def test_a_baseline_that_is_asked_for_mends_what_was_damaged_here(
    world: World[PublishedSource],
) -> None:
    world.pull()
    (world.folder / "objects/0003.html").unlink()
    (world.folder / "objects/0004.html").write_text("scribbled")

    report = world.pull(mode="baseline")

    assert report.updated == 2
    assert world.in_sync()
    kept = world.folder / ".resourcesync/quarantine"
    told = {item.suffix: item.read_text() for item in kept.iterdir()}
    assert told[".html"] == "scribbled"
    assert told[".note"].startswith("was at: objects/0004.html\n")
