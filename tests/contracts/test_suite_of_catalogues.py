"""Each check of the suite of catalogues finds a catalogue that breaks its promise."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from resourcesync.adapters.in_memory import (
    MemoryCatalogue,
    MemoryEntry,
    MemoryRecording,
    MemorySnapshot,
)
from resourcesync.model.resources import Change, Resource, ResourceRun
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.testing import CatalogueSuite
from tests.support.breaking import checks_of, finds


class Trial(CatalogueSuite):
    many = 50


class Unsorted(MemoryCatalogue):
    def fingerprints(self) -> Iterator[tuple[str, str]]:
        return iter([*super().fingerprints()][::-1])


class Recorded(MemoryCatalogue):
    """Spoils what is recorded."""

    def spoiled(self, resource: Resource) -> Resource:
        raise NotImplementedError

    @contextmanager
    def record(self, now: datetime) -> Iterator[MemoryRecording]:
        with super().record(now) as recording:
            yield recording
            recording.resources = {
                uri: entry._replace(resource=self.spoiled(entry.resource))
                for uri, entry in recording.resources.items()
            }


class WithoutExtra(Recorded):
    def spoiled(self, resource: Resource) -> Resource:
        return replace(resource, extra=())


class WholeSeconds(Recorded):
    def spoiled(self, resource: Resource) -> Resource:
        links = (
            replace(link, modified=link.modified and link.modified.replace(microsecond=0))
            for link in resource.links
        )
        return replace(resource, links=tuple(links))


def seen_by(view: type[MemorySnapshot], snapshot: MemorySnapshot) -> MemorySnapshot:
    """Return a snapshot as one of another class."""
    return view(*(getattr(snapshot, name) for name in MemorySnapshot.__struct_fields__))


class Seen(MemoryCatalogue):
    """Opens broken views."""

    view: type[MemorySnapshot] = MemorySnapshot

    @contextmanager
    def snapshot(self) -> Iterator[MemorySnapshot]:
        with super().snapshot() as snapshot:
            yield seen_by(self.view, snapshot)


class EndIncluded(Seen):
    class view(MemorySnapshot, frozen=True):  # noqa: N801 - it is an attribute that is a class
        def resources(self, start: str = "", end: str | None = None) -> Iterator[Resource]:
            return super().resources(start, end and f"{end}\0")


class FirstRun(Seen):
    class view(MemorySnapshot, frozen=True):  # noqa: N801
        def batches(self, start: str = "", end: str | None = None) -> Iterator[list[Resource]]:
            yield list(self.resources(start, end))[:10]


class NumberIncluded(Seen):
    class view(MemorySnapshot, frozen=True):  # noqa: N801
        def changes(self, after: int = 0) -> Iterator[tuple[int, Change]]:
            return super().changes(max(0, after - 1))


class UnsortedEdits(Seen):
    class view(MemorySnapshot, frozen=True):  # noqa: N801
        def edits(self) -> Iterator[tuple[str, Resource | None]]:
            return iter([*super().edits()][::-1])


class Alive(MemoryCatalogue):
    """A view shows what is there when it is asked, not when it was opened."""

    @contextmanager
    def snapshot(self) -> Iterator[MemorySnapshot]:
        with super().snapshot() as view:
            catalogue = self

            class Live(MemorySnapshot, frozen=True):
                def resources(self, start: str = "", end: str | None = None) -> Iterator[Resource]:
                    found = (catalogue.find(uri) for uri, _ in catalogue.fingerprints())
                    return filter(None, found)

            yield seen_by(Live, view)


class Writing(MemoryCatalogue):
    """Records by a broken recording."""

    recording: type[MemoryRecording] = MemoryRecording

    @contextmanager
    def record(self, now: datetime) -> Iterator[MemoryRecording]:
        with super().record(now) as recording:
            recording.__class__ = self.recording
            yield recording


class KeepsPatches(Writing):
    class recording(MemoryRecording):  # noqa: N801
        def touched(self, resource: Resource, fingerprint: str) -> None:
            super().touched(resource, fingerprint)
            self.resources[resource.uri] = MemoryEntry(resource, fingerprint)


class ForgetsFingerprints(Writing):
    class recording(MemoryRecording):  # noqa: N801
        def created_run(self, resources: ResourceRun, fingerprints: Sequence[str]) -> None:
            super().created_run(resources, [""] * len(fingerprints))


class LogsNoRuns(Writing):
    class recording(MemoryRecording):  # noqa: N801
        def created_run(self, resources: ResourceRun, fingerprints: Sequence[str]) -> None:
            for resource, fingerprint in zip(resources, fingerprints, strict=True):
                self.touched(resource, fingerprint)


class DeletesLast(Writing):
    class recording(MemoryRecording):  # noqa: N801
        def touched(self, resource: Resource, fingerprint: str) -> None:
            gone = any(
                change.uri == resource.uri
                for change in self.changes
                if change.kind is ChangeKind.DELETED
            )
            super().touched(resource, fingerprint)
            if gone:
                del self.resources[resource.uri]


class LogsAll(Writing):
    class recording(MemoryRecording):  # noqa: N801
        def _append(self, kind: ChangeKind, resource: Resource) -> None:
            time = from_microseconds(self._moment + len(self.changes))
            self.changes.append(Change(kind=kind, time=time, resource=resource))


class FirstWhenEmpty(MemoryCatalogue):
    """Takes the first recording that has resources for the first one."""

    @contextmanager
    def record(self, now: datetime) -> Iterator[MemoryRecording]:
        if not self._resources:
            self._latest = None
        with super().record(now) as recording:
            yield recording


class OneTime(Writing):
    class recording(MemoryRecording):  # noqa: N801
        def _append(self, kind: ChangeKind, resource: Resource) -> None:
            super()._append(kind, resource)
            self.changes = [
                replace(change, time=from_microseconds(self._moment)) for change in self.changes
            ]


class TouchIsNothing(Writing):
    class recording(MemoryRecording):  # noqa: N801
        def touched(self, resource: Resource, fingerprint: str) -> None:
            before = self._wrote
            super().touched(resource, fingerprint)
            self._wrote = before


class PassedIsNothing(Writing):
    class recording(MemoryRecording):  # noqa: N801
        def advance_time(self) -> None:
            pass


class AlwaysMoves(Writing):
    @contextmanager
    def record(self, now: datetime) -> Iterator[MemoryRecording]:
        with super().record(now) as recording:
            yield recording
            recording.advance_time()


class BelievesTheClock(MemoryCatalogue):
    @contextmanager
    def record(self, now: datetime) -> Iterator[MemoryRecording]:
        if self._latest is not None:
            self._latest = to_microseconds(now) - 1
        with super().record(now) as recording:
            yield recording


class Midway(MemoryCatalogue):
    """What was recorded before a failure stays."""

    @contextmanager
    def record(self, now: datetime) -> Iterator[MemoryRecording]:
        failed: BaseException | None = None
        with super().record(now) as recording:
            try:
                yield recording
            except BaseException as error:  # noqa: BLE001 - raised when all is recorded
                failed = error
        if failed is not None:
            raise failed


class ReadsInLots(MemoryCatalogue):
    """Each lot of a reading is what is there then, also of a recording that is going on."""

    def fingerprints(self) -> Iterator[tuple[str, str]]:
        done = 0
        while lot := sorted(self._resources)[done : done + 10]:
            yield from ((uri, self._resources[uri].fingerprint) for uri in lot)
            done += len(lot)

    @contextmanager
    def record(self, now: datetime) -> Iterator[MemoryRecording]:
        with super().record(now) as recording:
            self._resources = recording.resources
            yield recording


class EmptyFirst(MemoryCatalogue):
    @contextmanager
    def snapshot(self) -> Iterator[MemorySnapshot]:
        yield MemorySnapshot(from_microseconds(self._latest or 0), {}, [], {}, 0)


class ForgetsAllEdits(MemoryCatalogue):
    def forget_edits(self, last: int) -> None:
        self._edits.clear()


class CountsAnew(MemoryCatalogue):
    def forget_changes(self, last: int) -> bool:
        self._changes = self._changes[last:]
        return False


class ForgetsNothing(MemoryCatalogue):
    def forget_changes(self, last: int) -> bool:
        return False


class NeverBack(MemoryCatalogue):
    def rewind(self, moment: datetime) -> None:
        pass


class BackWithoutTheLog(MemoryCatalogue):
    def rewind(self, moment: datetime) -> None:
        self._latest = to_microseconds(moment)


class BackTooFar(MemoryCatalogue):
    def rewind(self, moment: datetime) -> None:
        super().rewind(moment - timedelta(days=1))
        self._latest = to_microseconds(moment)


class NotesOneByOne(MemoryCatalogue):
    def write_notes(self, notes: Mapping[str, str]) -> None:
        for key in notes:
            self._notes[key] = notes[key]


BROKEN: list[tuple[str, type[MemoryCatalogue]]] = [
    ("test_recorded_resources_are_read_unchanged_in_uri_order", Unsorted),
    ("test_recorded_resources_are_read_unchanged_in_uri_order", WithoutExtra),
    ("test_recorded_resources_are_read_unchanged_in_uri_order", WholeSeconds),
    ("test_a_part_of_the_resources_is_read_by_its_bounds", EndIncluded),
    ("test_a_part_of_the_resources_is_read_by_its_bounds", FirstRun),
    ("test_a_patch_belongs_to_the_change_alone", KeepsPatches),
    ("test_resources_of_a_run_are_recorded_like_single_ones", ForgetsFingerprints),
    ("test_resources_of_a_run_are_recorded_like_single_ones", LogsNoRuns),
    ("test_deleting_and_creating_in_one_recording_stores_the_last_version", DeletesLast),
    ("test_the_catalogue_can_be_read_during_a_recording", ReadsInLots),
    ("test_a_recording_that_fails_leaves_no_trace", Midway),
    ("test_a_new_catalogue_is_empty_and_has_no_snapshot", EmptyFirst),
    ("test_the_first_recording_logs_no_changes", LogsAll),
    ("test_an_empty_first_recording_is_a_first_recording", FirstWhenEmpty),
    ("test_each_change_is_logged_with_a_time_of_its_own", OneTime),
    ("test_changes_are_read_from_a_number_on", NumberIncluded),
    ("test_times_rise_strictly_whatever_the_clock_does", BelievesTheClock),
    ("test_an_empty_recording_does_not_advance_time", AlwaysMoves),
    ("test_touching_a_resource_or_advancing_time_moves_the_moment", TouchIsNothing),
    ("test_touching_a_resource_or_advancing_time_moves_the_moment", PassedIsNothing),
    ("test_a_snapshot_is_isolated_from_later_recordings", Alive),
    ("test_edits_are_the_entries_written_since_they_were_cleared", UnsortedEdits),
    ("test_edits_are_the_entries_written_since_they_were_cleared", ForgetsAllEdits),
    ("test_changes_are_pruned_and_their_numbers_are_not_reused", CountsAnew),
    ("test_changes_are_pruned_and_their_numbers_are_not_reused", ForgetsNothing),
    ("test_the_latest_moment_can_be_rewound", NeverBack),
    ("test_the_latest_moment_can_be_rewound", BackWithoutTheLog),
    ("test_the_latest_moment_can_be_rewound", BackTooFar),
    ("test_notes_are_stored_atomically", NotesOneByOne),
]


@pytest.mark.parametrize(("check", "kind"), BROKEN, ids=lambda item: getattr(item, "__name__", ""))
def test_a_catalogue_that_breaks_a_promise_is_found(
    check: str, kind: type[MemoryCatalogue]
) -> None:
    assert finds(Trial(), check, kind())


def test_each_check_of_catalogues_has_a_catalogue_that_fails_it() -> None:
    assert {check for check, _ in BROKEN} == checks_of(CatalogueSuite)
