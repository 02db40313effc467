"""A scan records the same, whether the originals are listed one by one or in runs."""

from collections.abc import Iterator, Sequence
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.errors import OriginalChangedError, StorageError
from resourcesync.model.entries import Resource
from resourcesync.ports.originals import MeasuredRun, Original, OriginalRun
from resourcesync.source.scan_for_changes import ScanReport, scan
from tests.support.in_memory import ManualClock, MemoryOriginals
from tests.support.sources.recording import run_of

NAMES = [f"https://h/{name}" for name in ("a", "b", "b/a", "b/b", "c", "d", "d0", "e", "f")]
STATES = st.dictionaries(st.sampled_from(NAMES), st.sampled_from([b"old", b"new", b"other"]))
SOME = st.frozensets(st.sampled_from(NAMES))


class Single(MemoryOriginals):
    """Originals that are listed one by one; some are not trusted, some cannot be read."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.untrusted: frozenset[str] = frozenset()
        self.errors: dict[str, StorageError] = {}

    def scan(self) -> Iterator[Original]:
        for original in super().scan():
            is_trusted = original.uri not in self.untrusted
            yield original if is_trusted else original._replace(fingerprint="")

    def measure(self, original: Original) -> tuple[Resource, str]:
        if original.uri in self.errors:
            raise self.errors[original.uri]
        resource, fingerprint = super().measure(original)
        return resource, "" if original.uri in self.untrusted else fingerprint


class InRuns(Single):
    """The same originals in runs of a few; some of each are read one by one."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.sizes = sizes

    def runs(self) -> Iterator[OriginalRun]:
        listing, number = self.scan(), 0
        while some := list(islice(listing, self.sizes[number % len(self.sizes)])):
            number += 1
            yield OriginalRun(
                uris=[original.uri for original in some],
                fingerprints=[original.fingerprint for original in some],
                lengths=[original.length for original in some],
                modified=[int(original.lastmod.timestamp()) * 10**9 for original in some],
            )

    def measure_run(self, run: Sequence[Original]) -> MeasuredRun:
        assert isinstance(run, OriginalRun)
        places = [
            at
            for at, original in enumerate(run)
            if original.fingerprint and original.uri not in self.errors
        ]
        measured = [self.measure(run[at]) for at in places]
        return MeasuredRun(
            run_of([resource for resource, _ in measured]),
            [fingerprint for _, fingerprint in measured],
            run.select([at for at in range(len(run)) if at not in places]),
        )


def scanned(
    originals: Single,
    states: list[dict[str, bytes]],
    untrusted: frozenset[str],
    bad: frozenset[str],
    *,
    anew: bool,
) -> tuple[list[ScanReport], list[tuple[str, str, Resource | None]], list[tuple[str, str]]]:
    catalogue, clock, reports = SourceCatalogue(), ManualClock(), []
    for number, state in enumerate(states):
        for uri in NAMES:
            if uri not in state:
                originals.remove(uri)
            elif originals.contents().get(uri) != state[uri]:
                originals.put(uri, state[uri])
        if number:
            originals.untrusted = untrusted
            originals.errors = {uri: OriginalChangedError(uri) for uri in bad}
        clock.advance(hours=1)
        reports.append(scan(originals, catalogue, clock.now(), anew=anew and number > 0))
    recorded = [(uri, text, catalogue.find(uri)) for uri, text in catalogue.fingerprints()]
    with catalogue.snapshot() as snapshot:
        changes = sorted((change.uri, change.kind.value) for _, change in snapshot.changes())
    return reports, recorded, changes


@given(
    st.lists(STATES, min_size=1, max_size=4),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    SOME,
    SOME,
    st.booleans(),
)
def test_a_scan_in_runs_records_what_a_scan_one_by_one_records(
    states: list[dict[str, bytes]],
    sizes: list[int],
    untrusted: frozenset[str],
    bad: frozenset[str],
    anew: bool,
) -> None:
    alone = scanned(Single(), states, untrusted, bad, anew=anew)
    in_runs = scanned(InRuns(sizes), states, untrusted, bad, anew=anew)

    assert [set(report.left) for report in in_runs[0]] == [set(report.left) for report in alone[0]]
    assert [replace(report, left=()) for report in in_runs[0]] == [
        replace(report, left=()) for report in alone[0]
    ]
    assert in_runs[1:] == alone[1:]
    assert {uri for uri, _, _ in alone[1]} >= states[-1].keys() - bad


@given(st.lists(STATES, min_size=1, max_size=4), st.lists(st.integers(1, 5), min_size=1))
def test_a_second_scan_of_the_same_originals_reads_and_records_nothing(
    states: list[dict[str, bytes]], sizes: list[int]
) -> None:
    reports, _, _ = scanned(
        InRuns(sizes), [*states, states[-1]], frozenset(), frozenset(), anew=False
    )

    size = sum(map(len, states[-1].values()))
    assert reports[-1] == ScanReport(files=len(states[-1]), bytes=size)
