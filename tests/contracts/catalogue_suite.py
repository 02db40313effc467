"""The promises of a catalogue, one check each, and sample resources for them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise
from typing import ClassVar, Final

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.errors import StateError
from resourcesync.model.digests import Digest, format_digests
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource, ResourceRun
from resourcesync.model.vocabulary import ChangeKind, Relation
from tests.contracts.expectations import expect, expect_equal, expect_error

NOW: Final = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)


def sample_resource(name: str, version: int = 1) -> Resource:
    """Return a resource of a name; another version has another length and other digests."""
    return Resource(
        uri=f"https://h/{name}",
        lastmod=NOW.replace(microsecond=0),
        length=version,
        digests=(Digest("sha-256", f"{version:064x}"), Digest("md5", f"{version:032x}")),
        media_type="text/plain",
    )


FULL_SAMPLE: Final = Resource(
    uri="https://h/rich",
    encoding="gzip",
    changefreq="daily",
    links=(
        Link(
            rel="describedby",
            href="https://h/rich.xml",
            media_type="application/xml",
            length=0,
            digests=(Digest("odd", "a:b"),),
            modified=NOW,
            priority=1,
            extra=(("{urn:x}a", "é\n"),),
        ),
        Link(rel="up", href="https://h/"),
    ),
    extra=(("{urn:x}b", "<&>"),),
)
"""A resource with all optional metadata and none of the usual."""


_TICK: Final = timedelta(microseconds=1)
_HOUR: Final = timedelta(hours=1)
_NAMES: Final = ("b", "a/z", "a.b", "a", "é", "A", "~", "%20", "日本")


class CatalogueSuite:
    """The promises of a Source's catalogue, one check each.

    Derive a class whose name begins with ``Test`` in a module of tests, and give it a pytest
    fixture ``catalogue`` that returns an empty catalogue. Times are whole microseconds.
    """

    many: ClassVar[int] = 5_000
    """Number of resources that exceeds one batch of reading or writing."""

    def test_recorded_resources_are_read_unchanged_in_uri_order(
        self, catalogue: SourceCatalogue
    ) -> None:
        """Every field of every resource is stored; the order is that of the URIs' characters."""
        _record(catalogue, *map(sample_resource, _NAMES), FULL_SAMPLE)

        held = list(catalogue.fingerprints())

        uris = [uri for uri, _ in held]
        expected = sorted([*(sample_resource(name).uri for name in _NAMES), FULL_SAMPLE.uri])
        expect_equal(uris, expected, "recorded resources are read once each, in rising URI order")
        expect_equal({found for _, found in held}, {"f1"}, "fingerprints are stored")
        for resource in (*map(sample_resource, _NAMES), FULL_SAMPLE):
            found = catalogue.find(resource.uri)
            expect_equal(found, resource, "a resource is read as recorded")
        expect_equal(catalogue.find("https://h/none"), None, "an unknown resource is None")
        with catalogue.snapshot() as snapshot:
            expect_equal(
                list(snapshot.resources()),
                list(map(catalogue.find, uris)),
                "a snapshot has the same resources",
            )
            counts = (snapshot.count(), snapshot.count(3))
            expect_equal(counts, (len(held), 3), "a snapshot counts them, up to a limit")

    def test_a_part_of_the_resources_is_read_by_its_bounds(
        self, catalogue: SourceCatalogue
    ) -> None:
        """`resources` and `batches` yield the URIs from ``start`` up to before ``end``."""
        uris = [f"https://h/{number:05}" for number in range(self.many)]
        _record(catalogue, *(Resource(uri=uri) for uri in reversed(uris)))

        with catalogue.snapshot() as snapshot:
            for first, last in ((0, None), (self.many // 3, self.many // 2), (1, 1), (7, None)):
                start = uris[first] if first else ""
                end = None if last is None else uris[last]
                found = [resource.uri for resource in snapshot.resources(start, end)]
                expect_equal(found, uris[first:last], "resources between two bounds are read")
                runs = list(snapshot.batches(start, end))
                expect(all(runs), "no batch is empty")
                found = [resource.uri for resource in chain.from_iterable(runs)]
                expect_equal(found, uris[first:last], "batches between two bounds have the same")

    def test_resources_of_a_run_are_recorded_like_single_ones(
        self, catalogue: SourceCatalogue
    ) -> None:
        """`created_run` records each resource with its fingerprint, and logs its change."""
        resources = [sample_resource(f"{number:05}") for number in range(self.many)]
        half = len(resources) // 2
        for run in (resources[:half], resources[half:]):
            with catalogue.record(NOW) as recording:
                recording.created_run(_run_of(run), [f"f{found.uri[-5:]}" for found in run])

        expected = [(found.uri, f"f{found.uri[-5:]}") for found in resources]
        expect_equal(list(catalogue.fingerprints()), expected, "each has its fingerprint")
        with catalogue.snapshot() as snapshot:
            expect_equal(list(snapshot.resources()), resources, "all are recorded")
        logged = [(change.kind, change.resource) for _, change in _changes(catalogue)]
        expected_log = [(ChangeKind.CREATED, found) for found in resources[half:]]
        expect_equal(logged, expected_log, "all but the first recording log each change")

    def test_a_patch_belongs_to_the_change_alone(self, catalogue: SourceCatalogue) -> None:
        """A patch leads from the version before to this one (§14.4), so the resource has none."""
        _record(catalogue, sample_resource("a"))
        patch = Link(rel=Relation.PATCH, href="https://h/a.patch", media_type="application/x-diff")
        other = Link(rel="up", href="https://h/")
        new = Resource(uri="https://h/a", length=2, links=(patch, other))
        with catalogue.record(NOW) as recording:
            recording.updated(new, "f2")

        held = catalogue.find(new.uri)
        links = None if held is None else held.links
        expect_equal(links, (other,), "a resource is recorded without its patches")
        expect_equal(_changes(catalogue)[0][1].resource, new, "the change has them")

    def test_deleting_and_creating_in_one_recording_stores_the_last_version(
        self, catalogue: SourceCatalogue
    ) -> None:
        """The last version counts, and every change is logged."""
        _record(catalogue, sample_resource("a"))
        with catalogue.record(NOW) as recording:
            recording.deleted(sample_resource("a"))
            recording.created(sample_resource("a", 2), "f2")
            recording.updated(sample_resource("a", 3), "f3")
            recording.deleted(sample_resource("a"))
            recording.created(sample_resource("a", 4), "f4")

        held = [catalogue.find(uri) for uri, _ in catalogue.fingerprints()]
        expect_equal(held, [sample_resource("a", 4)], "it is the last")
        expect_equal(len(_changes(catalogue)), 5, "every change is logged")

    def test_the_catalogue_can_be_read_during_a_recording(self, catalogue: SourceCatalogue) -> None:
        """A reader sees the entries as they were at its start."""
        _record(catalogue, *(sample_resource(f"{number:05}") for number in range(self.many)))

        with catalogue.record(NOW) as recording:
            seen = 0
            for uri, _ in catalogue.fingerprints():
                seen += 1
                recording.deleted(Resource(uri=uri))

        expect_equal(seen, self.many, "a reader sees all entries of its start")
        expect_equal(list(catalogue.fingerprints()), [], "the recording is complete")

    def test_a_recording_that_fails_leaves_no_trace(self, catalogue: SourceCatalogue) -> None:
        """Nothing of a block that fails is recorded, however much it was."""
        _record(catalogue, sample_resource("a"))

        with (
            expect_error(_NotesReadError, "an error of the block propagates"),
            catalogue.record(NOW + _HOUR) as recording,
        ):
            for number in range(self.many):
                recording.created(sample_resource(f"b{number}"), "f")
            recording.deleted(sample_resource("a"))
            raise _NotesReadError

        uris = [uri for uri, _ in catalogue.fingerprints()]
        expect_equal(uris, ["https://h/a"], "a recording that fails changes no resource")
        expect_equal(_changes(catalogue), [], "a recording that fails logs no change")
        expect_equal(catalogue.latest(), NOW, "a recording that fails assigns no moment")
        with catalogue.snapshot() as snapshot:
            expect_equal(list(snapshot.edits()), [], "a recording that fails edits nothing")

    def test_a_new_catalogue_is_empty_and_has_no_snapshot(self, catalogue: SourceCatalogue) -> None:
        """It has no entries and no latest moment, and refuses a snapshot."""
        expect_equal(list(catalogue.fingerprints()), [], "there are no entries")
        expect_equal(catalogue.latest(), None, "there is no latest moment")
        with (
            expect_error(StateError, "there is no snapshot before the first recording"),
            catalogue.snapshot(),
        ):
            pass

    def test_the_first_recording_logs_no_changes(self, catalogue: SourceCatalogue) -> None:
        """The Resource List will list them all."""
        _record(catalogue, sample_resource("a"))

        expect_equal(_changes(catalogue), [], "the first recording logs no changes")
        with catalogue.snapshot() as snapshot:
            expect_equal(snapshot.at, NOW, "a snapshot has the moment of its recording")
            expect_equal(snapshot.last_change(), 0, "no number was assigned")

    def test_an_empty_first_recording_is_a_first_recording(
        self, catalogue: SourceCatalogue
    ) -> None:
        """All recordings after it log changes."""
        _record(catalogue)
        with catalogue.snapshot() as snapshot:
            expect_equal((snapshot.at, snapshot.count()), (NOW, 0), "an empty snapshot is valid")
        _record(catalogue, sample_resource("a"))

        kinds = [change.kind for _, change in _changes(catalogue)]
        expect_equal(kinds, [ChangeKind.CREATED], "only the second recording logs changes")

    def test_each_change_is_logged_with_a_time_of_its_own(self, catalogue: SourceCatalogue) -> None:
        """Kinds, resources and times are stored as recorded; a touch is no change."""
        _record(catalogue, sample_resource("a"), sample_resource("b"), sample_resource("c"))
        later = NOW + _HOUR
        with catalogue.record(later) as recording:
            recording.updated(sample_resource("a", 2), "f2")
            recording.deleted(sample_resource("b"))
            recording.touched(sample_resource("c"), "f2")
            recording.created(sample_resource("d"), "f2")

        created = Change(
            kind=ChangeKind.CREATED, time=later + 2 * _TICK, resource=sample_resource("d")
        )
        gone = Resource(uri="https://h/b")
        expected = [
            Change(kind=ChangeKind.UPDATED, time=later, resource=sample_resource("a", 2)),
            Change(kind=ChangeKind.DELETED, time=later + _TICK, resource=gone),
            created,
        ]
        found = _changes(catalogue)
        expect_equal(
            [change for _, change in found], expected, "changes are logged as they were recorded"
        )
        prints = [fingerprint for _, fingerprint in catalogue.fingerprints()]
        expect_equal(prints, ["f2"] * 3, "new fingerprints are recorded")
        with catalogue.snapshot() as snapshot:
            expect_equal(snapshot.at, created.time, "a snapshot includes the last change")
            expect_equal(snapshot.last_change(), found[-1][0], "a snapshot has the last number")

    def test_changes_are_read_from_a_number_on(self, catalogue: SourceCatalogue) -> None:
        """Numbers rise, and ``after`` skips the changes that were read."""
        _record(catalogue)
        _record(catalogue, *(sample_resource(f"{number:03}") for number in range(10)))

        numbers = [number for number, _ in _changes(catalogue)]
        expect_equal(numbers, sorted(set(numbers)), "numbers rise")
        for place in (0, 6, 9):
            found = [number for number, _ in _changes(catalogue, after=numbers[place])]
            expect_equal(found, numbers[place + 1 :], "changes after a number are read")

    def test_times_rise_strictly_whatever_the_clock_does(self, catalogue: SourceCatalogue) -> None:
        """Every change is later than all snapshots before it, even if the clock was set back."""
        _record(catalogue, sample_resource("x"))
        now = NOW
        for number, step in enumerate((-1, -1, 0, 0, 87_600, 1, -87_600, -1)):
            with catalogue.snapshot() as snapshot:
                before = snapshot.at
            now += step * _HOUR
            _record(
                catalogue, sample_resource(f"a{number}"), sample_resource(f"b{number}"), now=now
            )
            times = _times(catalogue)
            expect(
                all(time > before for time in times[-2:]), "a change is later than views before it"
            )
            expect(times[-2] >= now, "a change is no earlier than its recording")

        times = _times(catalogue)
        expect(all(moment < other for moment, other in pairwise(times)), "times rise strictly")
        expect_equal(catalogue.latest(), times[-1], "the latest moment is the last change's")

    def test_an_empty_recording_does_not_advance_time(self, catalogue: SourceCatalogue) -> None:
        """A recording without changes assigns no moment."""
        _record(catalogue, sample_resource("a"))
        with catalogue.record(NOW + _HOUR):
            pass

        with catalogue.snapshot() as snapshot:
            expect_equal(snapshot.at, NOW, "an empty recording does not advance the moment")

    def test_touching_a_resource_or_advancing_time_moves_the_moment(
        self, catalogue: SourceCatalogue
    ) -> None:
        """Two lists of one moment are equal; but neither is a change."""
        _record(catalogue, sample_resource("a"))
        with catalogue.record(NOW - _HOUR) as recording:
            recording.touched(sample_resource("a"), "f2")
        with catalogue.snapshot() as snapshot:
            expect_equal(snapshot.at, NOW + _TICK, "a touch moves the moment")
        with catalogue.record(NOW + _HOUR) as recording:
            recording.advance_time()

        with catalogue.snapshot() as snapshot:
            expect_equal(snapshot.at, NOW + _HOUR, "advancing time moves the moment")
            expect_equal(snapshot.last_change(), 0, "neither is a change")

    def test_a_snapshot_is_isolated_from_later_recordings(self, catalogue: SourceCatalogue) -> None:
        """A snapshot stays as it was when it was opened."""
        _record(catalogue, sample_resource("a"))
        with catalogue.snapshot() as snapshot:
            with catalogue.record(NOW + _HOUR) as recording:
                recording.created(sample_resource("b"), "f")
                recording.deleted(sample_resource("a"))
            uris = [resource.uri for resource in snapshot.resources()]
            expect_equal(uris, ["https://h/a"], "a snapshot has the resources of its moment")
            expect_equal(snapshot.at, NOW, "a snapshot has its moment")
            found = (snapshot.count(), snapshot.last_change(), snapshot.last_edit())
            expect_equal(found, (1, 0, 0), "a snapshot has the numbers of its moment")
            expect_equal(list(snapshot.changes()), [], "a snapshot has the changes of its moment")
            expect_equal(list(snapshot.edits()), [], "a snapshot has the edits of its moment")

    def test_edits_are_the_entries_written_since_they_were_cleared(
        self, catalogue: SourceCatalogue
    ) -> None:
        """Edits are in URI order, with present values; the first recording has none."""
        _record(catalogue, *map(sample_resource, "abcd"))
        expect_equal(_edits(catalogue), {}, "the first recording is no edit")
        with catalogue.record(NOW) as recording:
            recording.updated(sample_resource("d", 2), "f")
            recording.touched(sample_resource("b", 2), "f")
            recording.deleted(sample_resource("a"))
            recording.created(sample_resource("A"), "f")
        expected = {
            "A": sample_resource("A"),
            "a": None,
            "b": sample_resource("b", 2),
            "d": sample_resource("d", 2),
        }
        expect_equal(_edits(catalogue), expected, "written or removed entries are edits")
        with catalogue.snapshot() as snapshot:
            last = snapshot.last_edit()
            _record(catalogue, sample_resource("b", 3), sample_resource("e"))
            catalogue.forget_edits(last)

        expected = {"b": sample_resource("b", 3), "e": sample_resource("e")}
        expect_equal(_edits(catalogue), expected, "later edits are not cleared")

    def test_changes_are_pruned_and_their_numbers_are_not_reused(
        self, catalogue: SourceCatalogue
    ) -> None:
        """Changes up to a number are removed, and no others; also when none is left."""
        _record(catalogue)
        _record(catalogue, *map(sample_resource, "abc"))
        numbers = [number for number, _ in _changes(catalogue)]

        _forget(catalogue, numbers[1])
        left = [number for number, _ in _changes(catalogue)]
        expect_equal(left, numbers[2:], "changes up to a number are removed")
        _forget(catalogue, numbers[2])
        expect_equal(_changes(catalogue), [], "all changes may be forgotten")
        _record(catalogue, sample_resource("d"))

        ((number, _),) = _changes(catalogue)
        expect(number > numbers[-1], "numbers are not used again")
        expect_equal(len(list(catalogue.fingerprints())), 4, "no resource is forgotten with them")

    def test_the_latest_moment_can_be_rewound(self, catalogue: SourceCatalogue) -> None:
        """Changes after the moment are removed, and later ones are dated from there."""
        ahead = NOW + 87_600 * _HOUR
        _record(catalogue)
        _record(catalogue, sample_resource("a"), now=NOW + _HOUR)
        _record(catalogue, sample_resource("b"), now=ahead)

        catalogue.rewind(NOW + 2 * _HOUR)

        expect_equal(catalogue.latest(), NOW + 2 * _HOUR, "the latest moment is rewound")
        expect_equal(_times(catalogue), [NOW + _HOUR], "changes dated later are forgotten")
        _record(catalogue, sample_resource("c"), now=NOW + 3 * _HOUR)
        expect_equal(_times(catalogue)[1:], [NOW + 3 * _HOUR], "later ones are dated from there")

    def test_notes_are_stored_atomically(self, catalogue: SourceCatalogue) -> None:
        """Any text by any key; a failed write changes nothing."""
        expect_equal(catalogue.note("a"), None, "a note never written is None")
        catalogue.write_notes({"a": "1", "b": "é\n", "": ""})
        catalogue.write_notes({"a": "2"})
        with expect_error(_NotesReadError, "the error propagates"):
            catalogue.write_notes(_UnreadableNotes({"a": "3", "c": "3"}))

        found = [catalogue.note(key) for key in ("a", "b", "", "c")]
        expect_equal(found, ["2", "é\n", "", None], "notes are stored, all of them or none")


class _NotesReadError(Exception):
    """An error that no catalogue raises by itself."""


class _UnreadableNotes(Mapping[str, str]):
    """Notes that cannot all be read."""

    def __init__(self, notes: Mapping[str, str]) -> None:
        self._notes = notes

    def __getitem__(self, key: str) -> str:
        return self._notes[key]

    def __len__(self) -> int:
        return len(self._notes) + 1

    def __iter__(self) -> Iterator[str]:
        yield from self._notes
        raise _NotesReadError


def _record(catalogue: SourceCatalogue, *resources: Resource, now: datetime = NOW) -> None:
    with catalogue.record(now) as recording:
        for resource in resources:
            recording.created(resource, "f1")


def _run_of(resources: Sequence[Resource]) -> ResourceRun:
    return ResourceRun(
        uris=[resource.uri for resource in resources],
        lastmods=[resource.lastmod for resource in resources],
        lengths=[resource.length for resource in resources],
        hashes=[format_digests(resource.digests) for resource in resources],
        media_types=[resource.media_type for resource in resources],
    )


def _changes(catalogue: SourceCatalogue, after: int = 0) -> Sequence[tuple[int, Change]]:
    with catalogue.snapshot() as snapshot:
        return list(snapshot.changes(after))


def _times(catalogue: SourceCatalogue) -> list[datetime]:
    times = [change.time for _, change in _changes(catalogue) if change.time is not None]
    expect_equal(len(times), len(_changes(catalogue)), "every change has a time")
    return times


def _edits(catalogue: SourceCatalogue) -> dict[str, Resource | None]:
    with catalogue.snapshot() as snapshot:
        found = list(snapshot.edits())
    uris = [uri for uri, _ in found]
    expect_equal(uris, sorted(set(uris)), "edits are read once each, in rising URI order")
    return {uri.removeprefix("https://h/"): resource for uri, resource in found}


def _forget(catalogue: SourceCatalogue, last: int) -> None:
    while catalogue.forget_changes(last):
        pass
