"""Checks of originals (``resourcesync.ports.Originals``)."""

import hashlib
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from datetime import timedelta
from itertools import pairwise
from typing import ClassVar, Final

import pytest

from resourcesync.errors import OriginalChangedError, ResourceSyncError, StorageError
from resourcesync.model.entries import Resource
from resourcesync.ports.originals import Originals
from tests.contracts.readers import read_and_close

_NAMES: Final = ("b", "a/z", "a-b", "a.b", "a/b/c", "B", "x~1", "a_b")


class OriginalsSuite(ABC):
    """The promises of originals, one check each.

    Derive a class whose name begins with ``Test`` in a module of tests; give it a pytest fixture
    ``originals`` that returns originals where there are none yet, and the two methods by which
    they come and go. Names are of ASCII, with ``/``.
    """

    many: ClassVar[int] = 1_100
    """Number of originals that exceeds one page of a listing."""

    @abstractmethod
    def put(self, name: str, content: bytes) -> str:
        """Create an original, or replace its bytes; return its URI, the same for each name."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove an original."""

    def outage(self) -> AbstractContextManager[object] | None:
        """Make the originals unreachable in the block; ``None`` if impossible."""
        return None

    def partial_failure(self) -> AbstractContextManager[object] | None:
        """Make a listing fail after its first originals in the block; ``None`` if impossible."""
        return None

    def add_unpublished(self) -> str | None:
        """Create a file that is not published; return its name, or ``None`` if all are."""
        return None

    def test_every_original_is_listed_once_in_uri_order(self, originals: Originals) -> None:
        lengths = {self.put(name, name.encode()): len(name) for name in _NAMES}

        found = list(originals.scan())

        uris = [original.uri for original in found]
        assert uris == sorted(lengths)
        for original in found:
            assert original.length == lengths[original.uri], (
                f"the length of {original.uri} is listed"
            )
            is_utc = original.lastmod.utcoffset() == timedelta(0)
            assert is_utc
            assert not original.lastmod.microsecond

    def test_an_empty_system_lists_nothing(self, originals: Originals) -> None:
        assert list(originals.scan()) == []

    def test_the_next_listing_has_additions_and_removals(self, originals: Originals) -> None:
        uris = [self.put(name, b"x") for name in ("a", "b", "c")]
        assert _uris(originals) == uris

        self.remove("b")
        uris[1] = self.put("bb", b"x")

        assert _uris(originals) == uris

    def test_unchanged_originals_are_listed_unchanged(self, originals: Originals) -> None:
        for name in _NAMES:
            self.put(name, name.encode())

        assert list(originals.scan()) == list(originals.scan())

    def test_many_originals_are_all_listed(self, originals: Originals) -> None:
        uris = [self.put(f"m/{number:05}", b"") for number in range(self.many)]

        assert _uris(originals) == sorted(uris)

    def test_unchanged_originals_are_listed_during_concurrent_changes(
        self, originals: Originals
    ) -> None:
        names = [f"m/{number:05}" for number in range(self.many)]
        held = {self.put(name, b"x"): name for name in names}
        listing = iter(originals.scan())

        begun = next(listing).uri
        gone = {begun, sorted(held)[self.many // 2]}
        for uri in gone:
            self.remove(held[uri])
        new = self.put("m/zzz", b"x")
        found = [begun, *(original.uri for original in listing)]

        lacking = set(held) - gone - set(found)
        assert sorted(lacking)[:5] == []
        assert all(name < other for name, other in pairwise(found))
        assert set(found) <= {*held, new}

    def test_omissions_are_reported(self, originals: Originals) -> None:
        uri = self.put("a", b"x")
        name = self.add_unpublished()
        if name is None:
            pytest.skip("add_unpublished is not given")
        found = _uris(originals)

        reasons = {omission.name: omission.reason for omission in originals.omissions()}
        assert found == [uri]
        assert reasons.get(name)

    def test_originals_out_of_reach_are_an_error(self, originals: Originals) -> None:
        self.put("a", b"x")
        trouble = self.outage()
        if trouble is None:
            pytest.skip("outage is not given")
        with trouble, pytest.raises(ResourceSyncError):
            list(originals.scan())

    def test_a_truncated_listing_is_an_error(self, originals: Originals) -> None:
        for number in range(self.many):
            self.put(f"m/{number:05}", b"x")
        trouble = self.partial_failure()
        if trouble is None:
            pytest.skip("partial_failure is not given")
        with trouble, pytest.raises(StorageError):
            list(originals.scan())

    def test_a_fingerprint_changes_with_the_bytes(self, originals: Originals) -> None:
        self.put("a", b"old")
        (before,) = originals.scan()

        self.put("a", b"new")

        (after,) = originals.scan()
        assert before.fingerprint
        assert after.fingerprint
        assert before.fingerprint != after.fingerprint

    def test_measuring_reads_the_bytes(self, originals: Originals) -> None:
        held = {self.put(name, body): body for name, body in (("a", b"some bytes"), ("b", b""))}
        for original in originals.scan():
            resource, fingerprint = originals.measure(original)

            assert resource.uri == original.uri
            _expect_measured(resource, held[original.uri])
            assert fingerprint == original.fingerprint

    def test_an_original_changed_since_the_listing_is_measured_as_it_is(
        self, originals: Originals
    ) -> None:
        self.put("a", b"the old bytes")
        (original,) = originals.scan()
        self.put("a", b"the new bytes")
        try:
            resource, fingerprint = originals.measure(original)
        except OriginalChangedError:
            return
        (after,) = originals.scan()

        _expect_measured(resource, b"the new bytes")
        assert fingerprint == after.fingerprint

    def test_a_vanished_original_raises_an_error(self, originals: Originals) -> None:
        self.put("a", b"x")
        (original,) = originals.scan()
        self.remove("a")

        with pytest.raises(OriginalChangedError):
            originals.measure(original)

    def test_prefetching_does_not_change_measurements(self, originals: Originals) -> None:
        held = {self.put(name, name.encode()): name.encode() for name in ("a", "bc", "def", "g")}
        listed = list(originals.scan())

        for expected, measured in ((listed, listed[:2]), (listed[2:], listed[2:]), ([], listed)):
            originals.prefetch(expected)
            for original in measured:
                resource, fingerprint = originals.measure(original)
                assert resource.uri == original.uri
                _expect_measured(resource, held[original.uri])
                assert fingerprint == original.fingerprint

    def test_an_original_is_opened_by_its_uri(self, originals: Originals) -> None:
        body = hashlib.shake_128(b"any").digest(300_000)
        uri = self.put("a/b", body)

        assert read_and_close(originals.open(uri)) == body
        assert originals.open(f"{uri}x") is None
        self.remove("a/b")
        assert originals.open(uri) is None


def _uris(originals: Originals) -> list[str]:
    return [original.uri for original in originals.scan()]


def _expect_measured(resource: Resource, body: bytes) -> None:
    assert resource.length == len(body)
    usable = [digest for digest in resource.digests if digest.is_usable]
    assert usable
    for digest in usable:
        value = hashlib.new(digest.algorithm.replace("-", ""), body).hexdigest()
        assert digest.value == value, f"the {digest.algorithm} is that of the bytes"
