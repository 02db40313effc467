"""The Source's catalogue, in a file and in memory, keeps the same promises."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import chain, pairwise
from pathlib import Path
from typing import Final

import pytest

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.errors import StateError
from resourcesync.model.entries import Change, Link, Resource
from resourcesync.model.vocabulary import ChangeKind, Relation
from tests.support.in_memory import ManualClock
from tests.support.sources.recording import FULL_SAMPLE, NOW, TICK, changes, record_first, run_of
from tests.support.sources.recording import resource as resource_of

_HOUR: Final = timedelta(hours=1)
_NAMES: Final = ("b", "a/z", "a.b", "a", "é", "A", "~", "%20", "日本")
MANY: Final = 2_500
"""Number of resources that exceeds one batch of reading or writing."""


@pytest.fixture(params=["in a file", "in memory"])
def catalogue(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SourceCatalogue]:
    path = tmp_path / "state/catalogue.db" if request.param == "in a file" else None
    with SourceCatalogue(path, ManualClock()) as held:
        yield held


def test_recorded_resources_are_read_unchanged_in_uri_order(catalogue: SourceCatalogue) -> None:
    record_first(catalogue, *map(resource_of, _NAMES), FULL_SAMPLE)

    held = list(catalogue.fingerprints())

    uris = [uri for uri, _ in held]
    expected = sorted([*(resource_of(name).uri for name in _NAMES), FULL_SAMPLE.uri])
    assert uris == expected
    assert {found for _, found in held} == {"f1"}
    for resource in (*map(resource_of, _NAMES), FULL_SAMPLE):
        found = catalogue.find(resource.uri)
        assert found == resource
    assert catalogue.find("https://h/none") is None
    with catalogue.snapshot() as snapshot:
        assert list(snapshot.resources()) == list(map(catalogue.find, uris))
        counts = (snapshot.count(), snapshot.count(3))
        assert counts == (len(held), 3)


def test_a_part_of_the_resources_is_read_by_its_bounds(catalogue: SourceCatalogue) -> None:
    uris = [f"https://h/{number:05}" for number in range(MANY)]
    record_first(catalogue, *(Resource(uri=uri) for uri in reversed(uris)))

    with catalogue.snapshot() as snapshot:
        for first, last in ((0, None), (MANY // 3, MANY // 2), (1, 1), (7, None)):
            start = uris[first] if first else ""
            end = None if last is None else uris[last]
            found = [resource.uri for resource in snapshot.resources(start, end)]
            assert found == uris[first:last]
            runs = list(snapshot.batches(start, end))
            assert all(runs)
            found = [resource.uri for resource in chain.from_iterable(runs)]
            assert found == uris[first:last]


def test_resources_of_a_run_are_recorded_like_single_ones(catalogue: SourceCatalogue) -> None:
    resources = [resource_of(f"{number:05}") for number in range(MANY)]
    half = len(resources) // 2
    for run in (resources[:half], resources[half:]):
        with catalogue.record(NOW) as recording:
            recording.created_run(run_of(run), [f"f{found.uri[-5:]}" for found in run])

    expected = [(found.uri, f"f{found.uri[-5:]}") for found in resources]
    assert list(catalogue.fingerprints()) == expected
    with catalogue.snapshot() as snapshot:
        assert list(snapshot.resources()) == resources
    logged = [(change.kind, change.resource) for _, change in changes(catalogue)]
    expected_log = [(ChangeKind.CREATED, found) for found in resources[half:]]
    assert logged == expected_log


def test_a_patch_belongs_to_the_change_alone(catalogue: SourceCatalogue) -> None:
    record_first(catalogue, resource_of("a"))
    patch = Link(rel=Relation.PATCH, href="https://h/a.patch", media_type="application/x-diff")
    other = Link(rel="up", href="https://h/")
    new = Resource(uri="https://h/a", length=2, links=(patch, other))
    with catalogue.record(NOW) as recording:
        recording.updated(new, "f2")

    held = catalogue.find(new.uri)
    links = None if held is None else held.links
    assert links == (other,)
    assert changes(catalogue)[0][1].resource == new


def test_of_several_versions_in_one_recording_the_last_is_stored(
    catalogue: SourceCatalogue,
) -> None:
    record_first(catalogue, resource_of("a"))
    with catalogue.record(NOW) as recording:
        recording.deleted(resource_of("a"))
        recording.created(resource_of("a", 2), "f2")
        recording.updated(resource_of("a", 3), "f3")
        recording.deleted(resource_of("a"))
        recording.created(resource_of("a", 4), "f4")

    held = [catalogue.find(uri) for uri, _ in catalogue.fingerprints()]
    assert held == [resource_of("a", 4)]
    assert len(changes(catalogue)) == 5


def test_the_catalogue_can_be_read_during_a_recording(catalogue: SourceCatalogue) -> None:
    record_first(catalogue, *(resource_of(f"{number:05}") for number in range(MANY)))

    with catalogue.record(NOW) as recording:
        seen = 0
        for uri, _ in catalogue.fingerprints():
            seen += 1
            recording.deleted(Resource(uri=uri))

    assert seen == MANY
    assert list(catalogue.fingerprints()) == []


def test_a_recording_that_fails_leaves_no_trace(catalogue: SourceCatalogue) -> None:
    record_first(catalogue, resource_of("a"))

    with pytest.raises(_NotesReadError), catalogue.record(NOW + _HOUR) as recording:  # noqa: PT012 - what fails is the block
        for number in range(MANY):
            recording.created(resource_of(f"b{number}"), "f")
        recording.deleted(resource_of("a"))
        raise _NotesReadError

    uris = [uri for uri, _ in catalogue.fingerprints()]
    assert uris == ["https://h/a"]
    assert changes(catalogue) == []
    assert catalogue.latest() == NOW
    with catalogue.snapshot() as snapshot:
        assert list(snapshot.edits()) == []


def test_a_new_catalogue_is_empty_and_its_first_recording_may_be(
    catalogue: SourceCatalogue,
) -> None:
    assert list(catalogue.fingerprints()) == []
    assert catalogue.latest() is None
    with pytest.raises(StateError), catalogue.snapshot():
        pass
    record_first(catalogue)
    with catalogue.snapshot() as snapshot:
        assert (snapshot.at, snapshot.count()) == (NOW, 0)
    record_first(catalogue, resource_of("a"))

    kinds = [change.kind for _, change in changes(catalogue)]
    assert kinds == [ChangeKind.CREATED]


def test_each_change_is_logged_with_a_time_of_its_own(catalogue: SourceCatalogue) -> None:
    record_first(catalogue, resource_of("a"), resource_of("b"), resource_of("c"))
    later = NOW + _HOUR
    with catalogue.record(later) as recording:
        recording.updated(resource_of("a", 2), "f2")
        recording.deleted(resource_of("b"))
        recording.touched(resource_of("c"), "f2")
        recording.created(resource_of("d"), "f2")

    created = Change(kind=ChangeKind.CREATED, time=later + 2 * TICK, resource=resource_of("d"))
    gone = Resource(uri="https://h/b")
    expected = [
        Change(kind=ChangeKind.UPDATED, time=later, resource=resource_of("a", 2)),
        Change(kind=ChangeKind.DELETED, time=later + TICK, resource=gone),
        created,
    ]
    found = changes(catalogue)
    assert [change for _, change in found] == expected
    prints = [fingerprint for _, fingerprint in catalogue.fingerprints()]
    assert prints == ["f2"] * 3
    with catalogue.snapshot() as snapshot:
        assert snapshot.at == created.time
        assert snapshot.last_change() == found[-1][0]


def test_times_rise_strictly_whatever_the_clock_does(catalogue: SourceCatalogue) -> None:
    record_first(catalogue, resource_of("x"))
    now = NOW
    for number, step in enumerate((-1, -1, 0, 0, 87_600, 1, -87_600, -1)):
        with catalogue.snapshot() as snapshot:
            before = snapshot.at
        now += step * _HOUR
        record_first(catalogue, resource_of(f"a{number}"), resource_of(f"b{number}"), now=now)
        times = _times(catalogue)
        assert all(time > before for time in times[-2:])
        assert times[-2] >= now

    times = _times(catalogue)
    assert all(moment < other for moment, other in pairwise(times))
    assert catalogue.latest() == times[-1]


def test_touching_a_resource_or_advancing_time_moves_the_moment_and_no_empty_recording(
    catalogue: SourceCatalogue,
) -> None:
    record_first(catalogue, resource_of("a"))
    with catalogue.record(NOW + _HOUR):
        pass
    with catalogue.snapshot() as snapshot:
        assert snapshot.at == NOW
    with catalogue.record(NOW - _HOUR) as recording:
        recording.touched(resource_of("a"), "f2")
    with catalogue.snapshot() as snapshot:
        assert snapshot.at == NOW + TICK
    with catalogue.record(NOW + _HOUR) as recording:
        recording.advance_time()

    with catalogue.snapshot() as snapshot:
        assert snapshot.at == NOW + _HOUR
        assert snapshot.last_change() == 0


def test_a_snapshot_is_isolated_from_later_recordings(catalogue: SourceCatalogue) -> None:
    record_first(catalogue, resource_of("a"))
    with catalogue.snapshot() as snapshot:
        with catalogue.record(NOW + _HOUR) as recording:
            recording.created(resource_of("b"), "f")
            recording.deleted(resource_of("a"))
        uris = [resource.uri for resource in snapshot.resources()]
        assert uris == ["https://h/a"]
        assert snapshot.at == NOW
        found = (snapshot.count(), snapshot.last_change(), snapshot.last_edit())
        assert found == (1, 0, 0)
        assert list(snapshot.changes()) == []
        assert list(snapshot.edits()) == []


def test_edits_are_the_entries_written_since_they_were_cleared(catalogue: SourceCatalogue) -> None:
    record_first(catalogue, *map(resource_of, "abcd"))
    assert _edits(catalogue) == {}
    with catalogue.record(NOW) as recording:
        recording.updated(resource_of("d", 2), "f")
        recording.touched(resource_of("b", 2), "f")
        recording.deleted(resource_of("a"))
        recording.created(resource_of("A"), "f")
    expected = {
        "A": resource_of("A"),
        "a": None,
        "b": resource_of("b", 2),
        "d": resource_of("d", 2),
    }
    assert _edits(catalogue) == expected
    with catalogue.snapshot() as snapshot:
        last = snapshot.last_edit()
        record_first(catalogue, resource_of("b", 3), resource_of("e"))
        catalogue.forget_edits(last)

    expected = {"b": resource_of("b", 3), "e": resource_of("e")}
    assert _edits(catalogue) == expected


def test_changes_are_pruned_and_their_numbers_are_not_reused(catalogue: SourceCatalogue) -> None:
    record_first(catalogue)
    record_first(catalogue, *map(resource_of, "abc"))
    numbers = [number for number, _ in changes(catalogue)]

    _forget(catalogue, numbers[1])
    left = [number for number, _ in changes(catalogue)]
    assert left == numbers[2:]
    _forget(catalogue, numbers[2])
    assert changes(catalogue) == []
    record_first(catalogue, resource_of("d"))

    ((number, _),) = changes(catalogue)
    assert number > numbers[-1]
    assert len(list(catalogue.fingerprints())) == 4


def test_the_latest_moment_can_be_rewound(catalogue: SourceCatalogue) -> None:
    ahead = NOW + 87_600 * _HOUR
    record_first(catalogue)
    record_first(catalogue, resource_of("a"), now=NOW + _HOUR)
    record_first(catalogue, resource_of("b"), now=ahead)

    catalogue.rewind(NOW + 2 * _HOUR)

    assert catalogue.latest() == NOW + 2 * _HOUR
    assert _times(catalogue) == [NOW + _HOUR]
    record_first(catalogue, resource_of("c"), now=NOW + 3 * _HOUR)
    assert _times(catalogue)[1:] == [NOW + 3 * _HOUR]


def test_notes_are_stored_atomically(catalogue: SourceCatalogue) -> None:
    assert catalogue.note("a") is None
    catalogue.write_notes({"a": "1", "b": "é\n", "": ""})
    catalogue.write_notes({"a": "2"})
    with pytest.raises(_NotesReadError):
        catalogue.write_notes(_UnreadableNotes({"a": "3", "c": "3"}))

    found = [catalogue.note(key) for key in ("a", "b", "", "c")]
    assert found == ["2", "é\n", "", None]


class _NotesReadError(Exception):
    """An error that no catalogue raises by itself."""


class _UnreadableNotes(Mapping[str, str]):
    def __init__(self, notes: Mapping[str, str]) -> None:
        self._notes = notes

    def __getitem__(self, key: str) -> str:
        return self._notes[key]

    def __len__(self) -> int:
        return len(self._notes) + 1

    def __iter__(self) -> Iterator[str]:
        yield from self._notes
        raise _NotesReadError


def _times(catalogue: SourceCatalogue) -> list[datetime]:
    times = [change.time for _, change in changes(catalogue) if change.time is not None]
    assert len(times) == len(changes(catalogue))
    return times


def _edits(catalogue: SourceCatalogue) -> dict[str, Resource | None]:
    with catalogue.snapshot() as snapshot:
        found = list(snapshot.edits())
    uris = [uri for uri, _ in found]
    assert uris == sorted(set(uris))
    return {uri.removeprefix("https://h/"): resource for uri, resource in found}


def _forget(catalogue: SourceCatalogue, last: int) -> None:
    while catalogue.forget_changes(last):
        pass
