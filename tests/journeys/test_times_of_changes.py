"""Changes whose times tell little: of one second, those of their resources, or none at all."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.errors import SourceUnavailableError
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World

LISTS = BASE + "resourcesync/"
CHANGE_LIST = LISTS + "changelist.xml"
HOUR = 3_600
OTHER_FILTERS = Filters(exclude=("*.none",))
"""They make the next pull a baseline."""


def test_a_baseline_takes_changes_without_a_time_from_no_old_copy(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror", LooseSource(times=False))
    world.source.publish_file("a.txt", "a")
    world.source.publish_file("a.txt", "b")
    old = world.source.honest(CHANGE_LIST)
    world.network.answers[CHANGE_LIST] = lambda request: (
        world.source.honest(request.uri) if request.uncached else old
    )
    world.source.publish_file("a.txt", "c")
    world.source.snapshot()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


@pytest.mark.parametrize("times", [True, False])
def test_a_baseline_after_changes_without_a_time_of_their_own_goes_on(
    tmp_path: Path, *, times: bool
) -> None:
    """They move T a little, and no time in the lists says as much."""
    world = World(tmp_path / "mirror", LooseSource(times=times))
    world.source.publish_file("a.txt", "a")
    world.pull()
    for body in "bc":
        world.source.publish_file("a.txt", body)
        assert world.pull().updated == 1

    report = world.pull(filters=OTHER_FILTERS)

    assert (report.state, report.mode) == (MirrorState.IN_SYNC, Mode.BASELINE)
    assert world.in_sync()


def _ends_with_a_list(world: World[LooseSource]) -> None:
    world.source.rotate()
    world.source.publish_deletion("d.txt")


@pytest.mark.parametrize(
    ("style", "end"),
    [
        ({}, lambda world: world.source.publish_deletion("d.txt")),
        ({"index": True, "times": False}, _ends_with_a_list),
    ],
)
def test_an_old_copy_that_no_asking_gets_past_is_refused_and_takes_nothing_away(
    tmp_path: Path, style: dict[str, Any], end: Callable[[World[LooseSource]], None]
) -> None:
    world = World(tmp_path / "mirror", LooseSource(**style))
    world.source.publish_file("a.txt", "a")
    world.pull()
    world.source.publish_file("a.txt", "another")
    names = [LISTS + name for name in world.source.lists.documents() if name.startswith("change")]
    old = {name: world.source.honest(name) for name in names}
    world.source.put("c.txt", "c")
    world.source.put("d.txt", "d")
    world.source.publish()
    end(world)
    assert world.pull().state is MirrorState.IN_SYNC
    world.network.answers.update(old)

    with pytest.raises(SourceUnavailableError, match="stale copy"):
        world.pull(filters=OTHER_FILTERS)
    assert world.in_sync()
    world.network.answers.clear()
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


@pytest.mark.parametrize("times", [True, False])
def test_a_list_that_always_tells_of_the_last_day_is_followed_for_longer(
    tmp_path: Path, *, times: bool
) -> None:
    world = World(tmp_path / "mirror", LooseSource(times=times))
    world.source.publish_file("a.txt", "0")
    world.pull()
    window, log = world.source.lists.open_list, list[tuple[int, str]]()
    for hour in range(1, 30):
        world.clock.advance(seconds=HOUR)
        world.source.publish_file("a.txt", f"{hour}")
        now = world.source.moment()
        log.append((now, window.entries[-1]))
        window.start = max(window.start, now - 24 * HOUR * 1_000_000)
        window.entries[:] = [entry for moment, entry in log if moment >= window.start]
        world.source.show()

        report = world.pull()
        assert (report.state, report.mode) == (MirrorState.IN_SYNC, Mode.INCREMENTAL)
        assert world.in_sync()
        assert report.as_of is not None
        assert (world.clock.now() - report.as_of).total_seconds() < HOUR


def test_a_change_that_is_listed_late_survives_a_baseline_with_the_same_resource_list(
    tmp_path: Path,
) -> None:
    """Its time is before that list, which lacks it: only its place in the list shows it."""
    world = World(tmp_path / "mirror", LooseSource(lastmods=False))
    world.source.publish_file("a.txt", "a")
    before = world.source.moment()
    world.source.snapshot()
    world.pull()
    world.source.put("late.txt", "late")
    world.source.lists.publish(before, world.source.originals.contents())
    world.source.show()
    assert world.pull().created == 1

    assert world.pull(filters=OTHER_FILTERS).mode is Mode.BASELINE
    assert world.in_sync()


def test_a_list_of_the_last_day_may_have_a_change_up_to_a_second_late(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror", LooseSource(lastmods=False))
    for body in ("a", "another"):
        world.source.publish_file("a.txt", body)
        world.pull()
    window, now = world.source.lists.open_list, world.source.moment()
    world.source.put("b.txt", "b")
    world.source.lists.publish(now + 600_000, world.source.originals.contents())
    world.source.show()
    assert world.pull().created == 1
    world.source.put("late.txt", "late")
    world.source.lists.publish(now + 300_000, world.source.originals.contents(), late=1)
    window.start = now
    del window.entries[0]
    world.source.show()

    report = world.pull()

    assert (report.mode, report.created) == (Mode.INCREMENTAL, 1)
    assert world.in_sync()
