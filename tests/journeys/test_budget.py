"""A run may be given a time, a number of bytes, or no content at all: it ends in good order."""

from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.errors import BudgetError
from resourcesync.ports import CancelToken, FetchRequest
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import OwnWorld, World

SIZE = 10_000


@pytest.fixture
def large(tmp_path: Path) -> OwnWorld:
    world = World(tmp_path / "mirror")
    for number in range(20):
        world.source.put(f"{number:02}.bin", f"{number:02}".encode() * (SIZE // 2))
    world.source.publish()
    return world


def slow(world: OwnWorld, seconds: float) -> None:
    def serve(request: FetchRequest) -> Answer | Exception:
        if request.uri.endswith((".bin", ".html")):
            world.clock.advance(seconds=seconds)
        return world.source.honest(request.uri)

    world.fetcher.serve = serve


def until_done(world: OwnWorld, most: int, **options: Any) -> list[RunReport]:
    reports = []
    while True:
        reports.append(world.pull(**options))
        assert len(reports) <= most
        report = reports[-1]
        if not report.spent:
            return reports
        assert report.state is MirrorState.BEHIND
        assert world.status().state is MirrorState.BEHIND


@pytest.mark.parametrize(
    ("spent", "limit", "least"),
    [("bytes", {"max_bytes": 5 * SIZE}, 4), ("time", {"max_duration": 35.0}, 5)],
)
def test_a_first_pull_in_parts_comes_to_its_end(
    large: OwnWorld, spent: str, limit: dict[str, Any], least: int
) -> None:
    slow(large, 10)

    reports = until_done(large, 30, **limit)

    assert [report.spent for report in reports[:-1]] == [spent] * (len(reports) - 1)
    assert len(reports) >= least
    assert all(0 < report.listed.applied <= 5 for report in reports[:-1])
    assert all(report.received_bytes <= 5.5 * SIZE for report in reports)
    assert reports[-1].state is MirrorState.IN_SYNC
    assert large.in_sync()


def test_one_resource_is_fetched_however_large_it_is(large: OwnWorld) -> None:
    reports = until_done(large, 25, max_bytes=1)

    assert [report.listed.applied for report in reports] == [1] * 20
    assert large.in_sync()


def test_the_time_may_be_over_before_the_lists_are_read(large: OwnWorld) -> None:
    large.pull()
    large.source.publish_file("new.bin", "new")

    def serve(request: FetchRequest) -> Answer | Exception:
        large.clock.advance(seconds=60)
        return large.source.honest(request.uri)

    large.fetcher.serve = serve

    report = large.pull(max_duration=30.0)

    assert report.spent == "time"
    assert report.state is MirrorState.BEHIND
    assert large.asked_resources() == []
    large.fetcher.serve = large.network.serve
    assert large.pull().state is MirrorState.IN_SYNC
    assert large.in_sync()


def test_what_is_raised_at_the_deadline_is_raised_again_when_it_got_lost(large: OwnWorld) -> None:
    cancel = CancelToken(large.clock)
    cancel.raise_if_cancelled()
    with cancel.within(5):
        cancel.wait(1)
        with pytest.raises(BudgetError) as first:
            cancel.wait(10)
        with pytest.raises(BudgetError) as again:
            cancel.raise_if_cancelled()
        assert first.value is again.value
        try:
            cancel.raise_if_cancelled()
        except BudgetError:
            cancel.raise_if_cancelled()  # on its way: the work above us may end in good order
            cancel.wait(10)
    assert not cancel.is_cancelled

    cancel.raise_if_cancelled()


def test_an_inventory_of_changes_deletes_nothing_and_loses_nothing(large: OwnWorld) -> None:
    large.pull()
    large.source.put("01.bin", "another")
    large.source.put("new.bin", "new")
    large.source.remove("02.bin")
    large.source.publish()

    for mode in ("auto", "auto", "baseline", "auto"):
        report = large.pull(lists_only=True, mode=mode)
        assert (report.listed.total, report.listed.unchanged, report.listed.pending) == (20, 18, 2)
        assert report.state is MirrorState.BEHIND
        assert (large.folder / "02.bin").exists()
    report = large.pull()

    assert (report.created, report.updated, report.deleted) == (1, 1, 1)
    assert report.state is MirrorState.IN_SYNC
    assert large.in_sync()


def test_an_inventory_does_not_forget_how_often_something_failed(large: OwnWorld) -> None:
    large.network.answers[BASE + "03.bin"] = Answer(status=404)
    large.pull()
    large.pull(lists_only=True, mode="baseline")

    with large.state() as state:
        row = state.pending_of(BASE + "03.bin")
    assert row is not None
    assert (row.tries, row.code) == (1, "missing")
