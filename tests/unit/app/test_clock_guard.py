"""A clock that cannot be right: publishing refuses it, and `--rebase` is the way out."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from resourcesync.app.publishing.trees import publish_tree
from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.documents import reader
from resourcesync.errors import StateError
from resourcesync.model.entries import Change
from resourcesync.source.clock_guard import check_clock
from resourcesync.source.dumps.dump_publisher import DumpRequest
from resourcesync.source.publication_options import PublicationResult, PublishRequest
from resourcesync.source.stored_plan import PublicationStep
from tests.support.in_memory import ManualClock
from tests.support.worlds.world import World

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
FUTURE = datetime(2030, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
Publish = Callable[..., PublicationResult]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def publish(tmp_path: Path, clock: ManualClock) -> Publish:
    def published(number: int, **asked: object) -> PublicationResult:
        clock.advance(seconds=60)
        (tmp_path / "b.txt").touch()
        (tmp_path / "a.txt").write_text(f"version {number}")
        return publish_tree(
            tmp_path,
            {"url": "https://h.example/", "max_package": 1},
            clock=clock,
            asked=PublishRequest(**asked),  # type: ignore[arg-type]  # by the names of its fields
        )

    return published


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "resourcesync").iterdir()}


def moment(folder: Path) -> datetime:
    with (folder / "resourcesync/resourcelist.xml").open("rb") as stream:
        at = reader.read(stream, uri="").header.at
    assert at is not None
    return at


def changes(folder: Path) -> list[Change]:
    with (folder / "resourcesync/changelist.xml").open("rb") as stream:
        return [
            entry for entry in reader.read(stream, uri="").entries() if isinstance(entry, Change)
        ]


def test_a_clock_that_once_ran_ahead_dates_nothing_until_that_time_comes(
    tmp_path: Path, clock: ManualClock, publish: Publish
) -> None:
    publish(1)
    clock.set(START + 300 * DAY)
    publish(2)
    clock.set(START + 10 * DAY)
    before = contents(tmp_path)

    with pytest.raises(StateError, match="earlier than the newest recorded time") as raised:
        publish(3)

    assert raised.value.code == "clock-behind"
    assert "--rebase" in raised.value.hint
    assert contents(tmp_path) == before

    publish(3, step=PublicationStep.REBASE)

    at = moment(tmp_path)
    assert START + 10 * DAY < at < START + 11 * DAY
    assert changes(tmp_path) == []
    publish(4)
    (change,) = changes(tmp_path)
    assert change.time is not None
    assert at < change.time < START + 11 * DAY


def test_a_clock_that_runs_ahead_by_years_is_refused_before_anything_is_dated(
    tmp_path: Path, clock: ManualClock, publish: Publish
) -> None:
    publish(1)
    clock.set(FUTURE)
    before = contents(tmp_path)

    with pytest.raises(StateError, match="more than a year later") as raised:
        publish(2)

    assert raised.value.code == "clock-ahead"
    assert contents(tmp_path) == before
    clock.set(START + DAY)
    assert publish(2).publication.updated == 1


@pytest.mark.parametrize("hours", [-23, -1, 1, 365 * 24])
def test_a_clock_that_is_off_by_little_or_a_silence_of_a_year_is_nothing_to_stop_for(
    tmp_path: Path, clock: ManualClock, publish: Publish, hours: int
) -> None:
    publish(1)
    clock.set(START + timedelta(hours=hours))

    publish(2)

    assert len(changes(tmp_path)) == 1


@pytest.mark.parametrize("number", [2, 3], ids=["as it was", "altered"])
def test_what_was_packed_by_a_clock_that_ran_ahead_is_offered_no_more(
    tmp_path: Path, clock: ManualClock, publish: Publish, number: int
) -> None:
    publish(1)
    clock.set(START + 300 * DAY)
    both = DumpRequest(resources=True, changes=True)
    publish(2, dumps=both)
    clock.set(START)

    publish(number, step=PublicationStep.REBASE)

    assert "dump" not in (tmp_path / "resourcesync/capabilitylist.xml").read_text()
    publish(4, dumps=both)
    assert "resourcedump.xml" in (tmp_path / "resourcesync/capabilitylist.xml").read_text()
    for name in ("resourcedump.xml", "changedump.xml"):
        text = (tmp_path / "resourcesync" / name).read_text()
        assert "2026-03" in text
        assert "2026-12" not in text


def test_a_mirror_follows_a_source_whose_clock_ran_ahead(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    for name in "abc":
        world.source.put(name, "1")
    world.source.publish()
    world.pull()
    now = world.clock.now()
    world.clock.set(now + 300 * DAY)
    world.source.put("a", "2")
    world.source.publish()
    world.clock.set(now)
    world.pull()
    world.source.put("b", "3")
    world.source.remove("c")

    world.source.publish(
        check_clock(world.source.catalogue, world.clock.now(), PublicationStep.REBASE)
    )

    assert world.pull().state is MirrorState.IN_SYNC
    world.source.put("b", "4")
    world.source.publish(
        check_clock(world.source.catalogue, world.clock.now(), PublicationStep.DUE)
    )
    assert world.pull().mode is Mode.INCREMENTAL
    assert world.in_sync()
