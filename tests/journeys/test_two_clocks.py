"""The clock of a Source's lists and that of its resources: what each of them is believed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.errors import DiscontinuityError, SourceUnavailableError
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World

LISTS = BASE + "resourcesync/"
CHANGE_LIST = LISTS + "changelist.xml"
HOUR = 3_600_000_000
OTHER_FILTERS = Filters(exclude=("*.none",))
"""They make the next pull a baseline."""


def _ahead(
    world: World[LooseSource], hours: int, monkeypatch: pytest.MonkeyPatch, name: str = ""
) -> None:
    """Let resources be modified so much later than the lists say, all or those of a name."""
    entry: Callable[..., str] = world.source.lists.entry

    def later(uri: str, data: bytes | None, lastmod: int | None, **of: Any) -> str:
        if data is not None and lastmod is not None and name in uri:
            lastmod += hours * HOUR
            if of.get("change"):
                of["moment"] += hours * HOUR
        return entry(uri, data, lastmod, **of)

    monkeypatch.setattr(world.source.lists, "entry", later)


@pytest.mark.parametrize("name", ["", "c.txt"])
def test_a_resource_of_a_time_to_come_hides_no_hole_in_the_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    world = World(tmp_path / "mirror", LooseSource())
    _ahead(world, 3, monkeypatch, name)
    for each in "abcx":
        world.source.put(f"{each}.txt", each)
    world.source.publish()
    world.pull()
    world.source.publish_file("c.txt", "another")
    report = world.pull()
    assert report.state is MirrorState.IN_SYNC
    assert report.as_of is not None
    assert report.as_of <= world.clock.now()
    world.source.put("b.txt", "another")
    world.source.remove("x.txt")
    world.source.publish()
    world.source.rotate()  # what was listed last is listed nowhere any more
    world.source.publish_file("a.txt", "another")

    with pytest.raises(DiscontinuityError):
        world.pull()
    world.source.snapshot()
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_source_whose_resources_are_ahead_of_its_lists_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path / "mirror", LooseSource())
    _ahead(world, 2, monkeypatch)
    world.source.publish_file("a.txt", "a")
    world.pull()
    world.source.publish_file("a.txt", "another")
    assert world.pull().updated == 1
    world.source.rotate()
    world.source.snapshot()

    for filters in (Filters(), OTHER_FILTERS):
        assert world.pull(filters=filters).state is MirrorState.IN_SYNC
    assert world.audit().accurate == 1
    assert world.in_sync()


@pytest.mark.parametrize("is_old", [False, True])
def test_a_resource_of_a_time_to_come_that_is_gone_does_not_come_back_with_a_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_old: bool
) -> None:
    world = World(tmp_path / "mirror", LooseSource())
    _ahead(world, 3, monkeypatch)
    for each in "abx":
        world.source.put(f"{each}.txt", each)
    world.source.publish()
    world.pull()
    world.source.publish_file("x.txt", "another")
    assert world.pull().updated == 1
    if is_old:
        old = world.source.honest(CHANGE_LIST)
        world.network.answers[CHANGE_LIST] = lambda request: (
            world.source.honest(request.uri) if request.uncached else old
        )
    world.source.publish_deletion("x.txt")
    world.source.snapshot()

    report = world.pull(filters=OTHER_FILTERS)

    assert (report.state, report.mode) == (MirrorState.IN_SYNC, Mode.BASELINE)
    assert world.in_sync()


def test_an_old_copy_that_lacks_less_than_a_second_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror", LooseSource(lastmods=False))
    for number in range(8):
        world.source.put(f"{number}.txt", f"{number}")
    world.source.publish()
    world.pull()
    now = world.source.moment()
    world.source.put("0.txt", "another")
    world.source.lists.publish(now, world.source.originals.contents())
    world.source.show()
    old = world.source.honest(CHANGE_LIST)
    world.source.put("y.txt", "y")
    world.source.lists.publish(now + 600_000, world.source.originals.contents())
    world.source.show()
    assert world.pull().created == 1
    world.network.answers[CHANGE_LIST] = old

    with pytest.raises(SourceUnavailableError, match="stale copy"):
        world.pull(filters=OTHER_FILTERS)
    with pytest.raises(SourceUnavailableError, match="stale copy"):
        world.audit()
    assert world.in_sync()


@pytest.mark.parametrize("apart", [1, 1_000_000])
def test_lists_that_end_a_second_before_the_next_one_begins_are_no_hole_when_they_are_known(
    tmp_path: Path, apart: int
) -> None:
    """The last second of a day, and midnight, when the day's Resource List is written."""
    world = World(tmp_path / "mirror", LooseSource(index=True, lastmods=False))
    world.source.publish_file("a.txt", "a")
    world.pull()
    for day in range(3):
        world.source.rotate()
        closed, current = world.source.lists.lists[-2:]
        closed.until = current.start - apart
        world.source.lists.snapshot(current.start)
        world.source.show()
        world.pull(filters=(Filters(), OTHER_FILTERS)[day % 2])
        for hour in range(3):
            world.source.publish_file("a.txt", f"{day} {hour}")
            assert world.pull().state is MirrorState.IN_SYNC
            assert world.in_sync()
