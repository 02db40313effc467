"""Bringing the catalogue in step with the originals."""

from collections.abc import Iterator, Sequence

import pytest

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.errors import OriginalChangedError, StorageError
from resourcesync.model.entries import Resource
from resourcesync.ports.originals import Omission, Original
from resourcesync.source.scan_for_changes import LeftFile, ScanReport, scan
from tests.support.in_memory import ManualClock, MemoryOriginals
from tests.support.sources.publishing import BASE, Source


class Stubborn(MemoryOriginals):
    """Originals some of which cannot be measured, or listed."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.errors: dict[str, StorageError] = {}
        self.ends_after = 1_000

    def scan(self) -> Iterator[Original]:
        for number, original in enumerate(super().scan()):
            if number == self.ends_after:
                raise StorageError("the folder cannot be read")
            yield original

    def measure(self, original: Original) -> tuple[Resource, str]:
        error = self.errors.get(original.uri)
        if error is not None:
            raise error
        return super().measure(original)

    def omissions(self) -> Sequence[Omission]:
        return (Omission(name="pipe", reason="a pipe"),)


class Fresh(MemoryOriginals):
    """Originals that cannot be trusted by their looks at first."""

    is_fresh = True

    def scan(self) -> Iterator[Original]:
        for original in super().scan():
            yield original._replace(fingerprint="") if self.is_fresh else original

    def measure(self, original: Original) -> tuple[Resource, str]:
        resource, fingerprint = super().measure(original)
        return resource, "" if self.is_fresh else fingerprint


def test_originals_that_cannot_be_trusted_unread_are_read_each_time_and_move_nothing() -> None:
    clock, catalogue = ManualClock(), SourceCatalogue()
    originals = MemoryOriginals(clock, trusted=False)
    originals.put(BASE + "a", b"x")
    scan(originals, catalogue, clock.now())
    before = clock.now()
    clock.advance(hours=1)

    report = scan(originals, catalogue, clock.now())

    assert report == ScanReport(files=1, bytes=1, hashed=1)
    with catalogue.snapshot() as snapshot:
        assert snapshot.at == before


def test_a_resource_deleted_and_created_again_between_two_scans_is_one_update() -> None:
    source = Source()
    source.put("a")
    source.scan()
    source.remove("a")
    source.put("a", content="anew")

    assert source.scan().updated == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OriginalChangedError("it moves"), "original-changed"),
        (StorageError("it moves", code="unreadable-file"), "unreadable-file"),
    ],
    ids=["it changes", "it cannot be read"],
)
def test_an_original_that_cannot_be_read_stays_as_it_was_and_stops_nothing(
    error: StorageError, code: str
) -> None:
    originals, catalogue = Stubborn(), SourceCatalogue()
    originals.put(BASE + "a", b"old")
    originals.put(BASE + "b", b"old")
    scan(originals, catalogue, ManualClock().now())
    held = list(catalogue.fingerprints())
    for name in ("a", "b", "c", "d"):
        originals.put(BASE + name, b"anew")
    for name in ("a", "c"):
        originals.errors[BASE + name] = error

    report = scan(originals, catalogue, ManualClock().now())

    assert report == ScanReport(
        files=4,
        bytes=16,
        hashed=2,
        created=1,
        updated=1,
        changing=2 * (code == "original-changed"),
        unreadable=2 * (code != "original-changed"),
        unlisted=1,
        omitted=1,
        left=(LeftFile(code=code, reason="it moves"),) * 2,
    )
    assert next(catalogue.fingerprints()) == held[0]
    uris = [uri.removeprefix(BASE) for uri, _ in catalogue.fingerprints()]
    assert uris == ["a", "b", "d"]


@pytest.mark.parametrize("ends_after", [0, 1, 2, None])
def test_a_scan_that_fails_is_not_a_shorter_scan(ends_after: int | None) -> None:
    originals, catalogue = Stubborn(), SourceCatalogue()
    for name in ("a", "b", "c"):
        originals.put(BASE + name, b"old")
    scan(originals, catalogue, ManualClock().now())
    held = list(catalogue.fingerprints())
    originals.put(BASE + "a", b"anew")
    if ends_after is None:
        gone = StorageError("the root cannot be read", code="unreadable-folder")
        originals.errors[BASE + "a"] = gone
    else:
        originals.ends_after = ends_after

    with pytest.raises(StorageError, match="cannot be read"):
        scan(originals, catalogue, ManualClock().now())

    assert list(catalogue.fingerprints()) == held


def test_a_file_that_was_too_fresh_to_be_trusted_is_read_again_and_not_called_touched() -> None:
    originals, catalogue = Fresh(ManualClock()), SourceCatalogue()
    originals.put(BASE + "a", b"x")
    scan(originals, catalogue, ManualClock().now())
    originals.is_fresh = False

    report = scan(originals, catalogue, ManualClock().now())

    assert report == ScanReport(files=1, bytes=1, hashed=1)
    assert [fingerprint for _, fingerprint in catalogue.fingerprints()] != [""]
    assert scan(originals, catalogue, ManualClock().now()).hashed == 0
