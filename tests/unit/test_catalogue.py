"""The Source's memory: what both implementations of the port promise."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from resourcesync.adapters.catalogue import FileCatalogue
from resourcesync.adapters.memory import ManualClock, MemoryCatalogue
from resourcesync.errors import StateError, StorageError
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Catalogue
from tests.support.recording import NOW, RICH, TICK, changes, record_first, resource


@pytest.fixture(params=["memory", "file"])
def catalogue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalogue]:
    if request.param == "memory":
        yield MemoryCatalogue()
    else:
        with FileCatalogue(tmp_path / "state/catalogue.db", ManualClock()) as held:
            yield held


def test_what_is_recorded_comes_back_equal_and_in_uri_order(catalogue: Catalogue) -> None:
    names = ["b", "a/z", "a.b", "é", "A", "~"]
    record_first(catalogue, *(resource(name) for name in names), RICH)

    held = list(catalogue.catalogued())

    assert [item.uri for item in held] == sorted([f"https://h/{name}" for name in [*names, "rich"]])
    assert {item.fingerprint for item in held} == {"f1"}
    recorded = {item.uri: item.resource for item in held}
    assert recorded["https://h/b"] == resource("b")
    assert recorded["https://h/rich"] == RICH
    with catalogue.snapshot() as snapshot:
        assert list(snapshot.resources()) == [item.resource for item in held]
        assert snapshot.count() == 7


def test_the_first_recording_logs_no_changes(catalogue: Catalogue) -> None:
    record_first(catalogue, resource("a"))

    with catalogue.snapshot() as snapshot:
        assert list(snapshot.changes()) == []
        assert snapshot.last_change() == 0
        assert snapshot.at == NOW


def test_an_empty_first_recording_is_a_first_recording(catalogue: Catalogue) -> None:
    record_first(catalogue)

    record_first(catalogue, resource("a"), now=NOW + timedelta(hours=1))

    assert [change.kind for _, change in changes(catalogue)] == [ChangeKind.CREATED]


def test_before_the_first_recording_there_is_nothing_to_see(catalogue: Catalogue) -> None:
    assert list(catalogue.catalogued()) == []
    with pytest.raises(StateError, match="nothing was recorded"), catalogue.snapshot():
        pass


def test_later_recordings_log_each_change_with_a_time_of_its_own(catalogue: Catalogue) -> None:
    record_first(catalogue, resource("a"), resource("b"), resource("c"))
    later = NOW + timedelta(hours=1)

    with catalogue.record(later) as recording:
        recording.updated(resource("a", 2), "f2")
        recording.deleted(resource("b"))
        recording.touched(resource("c"), "f2")
        recording.created(resource("d"), "f2")

    assert changes(catalogue) == [
        (1, Change(kind=ChangeKind.UPDATED, time=later, resource=resource("a", 2))),
        (2, Change(kind=ChangeKind.DELETED, time=later + TICK, resource=Resource(uri="https://h/b"))),
        (3, Change(kind=ChangeKind.CREATED, time=later + 2 * TICK, resource=resource("d"))),
    ]  # fmt: skip
    assert [item.fingerprint for item in catalogue.catalogued()] == ["f2", "f2", "f2"]
    with catalogue.snapshot() as snapshot:
        assert snapshot.at == later + 2 * TICK
        assert snapshot.last_change() == 3


def test_changes_are_read_from_a_number_on(catalogue: Catalogue) -> None:
    record_first(catalogue)
    record_first(catalogue, *(resource(f"{number:03}") for number in range(10)))

    assert [number for number, _ in changes(catalogue, after=7)] == [8, 9, 10]
    assert changes(catalogue, after=10) == []


@pytest.mark.parametrize("step", [timedelta(hours=-1), timedelta(0), timedelta(days=3_650)])
def test_times_rise_strictly_whatever_the_clock_does(catalogue: Catalogue, step: timedelta) -> None:
    record_first(catalogue, resource("x"))
    now = NOW
    for number in range(4):
        with catalogue.snapshot() as snapshot:
            before = snapshot.at
        now += step
        with catalogue.record(now) as recording:
            recording.created(resource(f"a{number}"), "f")
            recording.created(resource(f"b{number}"), "f")
        times = [change.time for _, change in changes(catalogue)][-2:]
        assert all(time is not None and time > before for time in times)

    times = [change.time for _, change in changes(catalogue)]
    assert times == sorted(set(times), key=str)
    assert len(times) == 8


def test_a_recording_that_changes_nothing_moves_nothing(catalogue: Catalogue) -> None:
    record_first(catalogue, resource("a"))

    with catalogue.record(NOW + timedelta(hours=1)):
        pass

    with catalogue.snapshot() as snapshot:
        assert snapshot.at == NOW


def test_touching_moves_the_moment_so_that_two_lists_of_one_moment_are_equal(
    catalogue: Catalogue,
) -> None:
    record_first(catalogue, resource("a"))

    with catalogue.record(NOW - timedelta(hours=1)) as recording:
        recording.touched(resource("a"), "f2")

    with catalogue.snapshot() as snapshot:
        assert snapshot.at == NOW + TICK
        assert snapshot.last_change() == 0


def test_a_recording_that_fails_leaves_no_trace(catalogue: Catalogue) -> None:
    record_first(catalogue, resource("a"))

    def fail() -> None:
        with catalogue.record(NOW + timedelta(hours=1)) as recording:
            for number in range(5_000):
                recording.created(resource(f"b{number}"), "f")
            recording.deleted(resource("a"))
            raise StorageError("the originals went away")

    with pytest.raises(StorageError, match="originals"):
        fail()

    assert [item.uri for item in catalogue.catalogued()] == ["https://h/a"]
    assert changes(catalogue) == []
    record_first(catalogue, resource("c"))
    assert [number for number, _ in changes(catalogue)] == [1]


def test_a_resource_deleted_and_created_in_one_recording_is_there(catalogue: Catalogue) -> None:
    record_first(catalogue, resource("a"))

    with catalogue.record(NOW) as recording:
        recording.deleted(resource("a"))
        recording.created(resource("a", 2), "f2")
        recording.updated(resource("a", 3), "f3")
        recording.deleted(resource("a"))
        recording.created(resource("a", 4), "f4")

    assert [item.resource.length for item in catalogue.catalogued()] == [4]
    assert len(changes(catalogue)) == 5


def test_a_snapshot_does_not_see_what_is_recorded_meanwhile(catalogue: Catalogue) -> None:
    record_first(catalogue, resource("a"))

    with catalogue.snapshot() as snapshot:
        record_first(catalogue, resource("b"), now=NOW + timedelta(hours=1))
        assert [item.uri for item in snapshot.resources()] == ["https://h/a"]
        assert snapshot.at == NOW
        assert snapshot.count() == 1
        assert snapshot.last_change() == 0
        assert list(snapshot.changes()) == []


def test_the_catalogue_can_be_read_while_it_is_brought_in_step(catalogue: Catalogue) -> None:
    record_first(catalogue, *(resource(f"{number:05}") for number in range(5_000)))

    with catalogue.record(NOW) as recording:
        seen = 0
        for item in catalogue.catalogued():
            seen += 1
            recording.deleted(item.resource)

    assert seen == 5_000
    assert list(catalogue.catalogued()) == []


def test_notes_are_kept_and_replaced(catalogue: Catalogue) -> None:
    assert catalogue.note("a") is None

    catalogue.write_notes({"a": "1", "b": "é"})
    catalogue.write_notes({"a": "2"})

    assert (catalogue.note("a"), catalogue.note("b")) == ("2", "é")
