"""Filters, interruptions, and damage on our own side."""

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.destination.scope import Filters
from resourcesync.ports import FetchRequest
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World


def test_filters_are_remembered_and_what_they_exclude_is_neither_fetched_nor_deleted(
    world: World[PublishedSource],
) -> None:
    only = Filters(include=("/objects/000*",))
    first = world.pull(filters=only)
    again = world.pull()
    world.source.put("objects/0011.html", "not wanted")
    world.source.put("objects/0001.html", "wanted")
    world.source.publish()
    changed = world.pull()

    assert first.created == 10
    assert again.mode is Mode.UNCHANGED
    assert (changed.updated, changed.created) == (1, 0)
    narrower = world.pull(filters=Filters(include=("/objects/0001.html",)))
    assert (narrower.deleted, narrower.resources) == (0, 10)
    everything = world.pull(filters=Filters())
    assert everything.resources == 41
    assert world.in_sync()


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
