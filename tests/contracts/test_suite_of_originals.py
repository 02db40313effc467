"""Each check of the suite of originals finds originals that break its promise."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import islice
from typing import BinaryIO

import pytest
from msgspec.structs import replace

from resourcesync.adapters.in_memory import ManualClock, MemoryOriginals
from resourcesync.errors import StorageError
from resourcesync.model.resources import Resource
from resourcesync.ports.catalogue import Omission, Original
from resourcesync.testing import OriginalsSuite
from tests.support.breaking import checks_of, finds

BASE = "https://h/"


class Trial(OriginalsSuite):
    many = 50

    def __init__(self, held: "Right") -> None:
        self.held = held

    def put(self, name: str, content: bytes) -> str:
        self.held.put(f"{BASE}{name}", content)
        return f"{BASE}{name}"

    def remove(self, name: str) -> None:
        self.held.remove(f"{BASE}{name}")

    @contextmanager
    def outage(self) -> Iterator[None]:
        self.held.reached = 0
        yield

    @contextmanager
    def partial_failure(self) -> Iterator[None]:
        self.held.reached = 20
        yield

    def add_unpublished(self) -> str:
        self.put(".hidden", b"x")
        return ".hidden"


class Right(MemoryOriginals):
    """Originals that leave some out, read ahead, and fail when they are told to."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.reached: int | None = None
        self.left_out: list[Omission] = []
        self.ahead: dict[Original, tuple[Resource, str]] = {}

    def prefetch(self, originals: Sequence[Original]) -> None:
        self.ahead = {original: super(Right, self).measure(original) for original in originals}

    def measure(self, original: Original) -> tuple[Resource, str]:
        return self.ahead.pop(original, None) or super().measure(original)

    def scan(self) -> Iterator[Original]:
        self.left_out = []
        held = list(super().scan())
        for number, original in enumerate(held):
            if number == self.reached:
                raise StorageError("it cannot be listed")
            if original.uri.startswith(f"{BASE}."):
                self.left_out.append(
                    Omission(name=original.uri.removeprefix(BASE), reason="hidden")
                )
            else:
                yield original

    def omissions(self) -> Sequence[Omission]:
        return self.left_out


class ByTime(Right):
    def scan(self) -> Iterator[Original]:
        order = list(self._stored)
        return iter(sorted(super().scan(), key=lambda original: order.index(original.uri)))


class Twice(Right):
    def scan(self) -> Iterator[Original]:
        for original in super().scan():
            yield from (original, original)


class WithoutCase(Right):
    def scan(self) -> Iterator[Original]:
        return iter(sorted(super().scan(), key=lambda original: original.uri.lower()))


class LocalTime(Right):
    def scan(self) -> Iterator[Original]:
        return (
            original._replace(lastmod=original.lastmod.replace(tzinfo=None))
            for original in super().scan()
        )


class FailsWhenEmpty(Right):
    def scan(self) -> Iterator[Original]:
        if not self._stored:
            raise StorageError("there is nothing")
        return super().scan()


class Remembers(Right):
    known: Sequence[Original] = ()

    def scan(self) -> Iterator[Original]:
        self.known = self.known or list(super().scan())
        return iter(self.known)


class OtherFingerprints(Right):
    asked = 0

    def scan(self) -> Iterator[Original]:
        self.asked += 1
        return (original._replace(fingerprint=f"{self.asked}") for original in super().scan())


class FirstPage(Right):
    def scan(self) -> Iterator[Original]:
        return islice(super().scan(), 20)


class ByNumber(Right):
    """Pages by number: what vanishes meanwhile hides others."""

    def scan(self) -> Iterator[Original]:
        done = 0
        while page := list(islice(super().scan(), done, done + 10)):
            yield from page
            done += len(page)


class SaysNothing(Right):
    def omissions(self) -> Sequence[Omission]:
        return ()


class EndsWhenItFails(Right):
    def scan(self) -> Iterator[Original]:
        try:
            yield from super().scan()
        except StorageError:
            return


class SameFingerprint(Right):
    def scan(self) -> Iterator[Original]:
        return (original._replace(fingerprint="same") for original in super().scan())


class WithoutFingerprint(Right):
    def scan(self) -> Iterator[Original]:
        return (original._replace(fingerprint="") for original in super().scan())


class Measuring(Right):
    """Spoils what is measured."""

    def spoiled(self, resource: Resource, original: Original) -> Resource:
        raise NotImplementedError

    def measure(self, original: Original) -> tuple[Resource, str]:
        resource, fingerprint = super().measure(original)
        return self.spoiled(resource, original), fingerprint


class WithoutDigest(Measuring):
    def spoiled(self, resource: Resource, original: Original) -> Resource:
        return replace(resource, digests=())


class ListedLength(Measuring):
    def spoiled(self, resource: Resource, original: Original) -> Resource:
        return replace(resource, length=1)


class ListedFingerprint(Right):
    def measure(self, original: Original) -> tuple[Resource, str]:
        return super().measure(original)[0], original.fingerprint


class MeasuresNothing(Right):
    def measure(self, original: Original) -> tuple[Resource, str]:
        if original.uri not in self._stored:
            return Resource(uri=original.uri), original.fingerprint
        return super().measure(original)


class LastFirst(Right):
    """Gives what was expected last, whatever is asked for."""

    def measure(self, original: Original) -> tuple[Resource, str]:
        return super().measure(next(reversed(self.ahead), original))


class ForgetsTheRest(Right):
    """Measures nothing but what was expected."""

    def measure(self, original: Original) -> tuple[Resource, str]:
        if original not in self.ahead:
            raise StorageError("nobody expected it")
        return super().measure(original)


class OpensAnything(Right):
    def open(self, uri: str) -> BinaryIO | None:
        return super().open(uri) or BytesIO()


class OpensABlock(Right):
    def open(self, uri: str) -> BinaryIO | None:
        found = super().open(uri)
        return found and BytesIO(found.read(1 << 16))


BROKEN: list[tuple[str, type[Right]]] = [
    ("test_every_original_is_listed_once_in_uri_order", ByTime),
    ("test_every_original_is_listed_once_in_uri_order", Twice),
    ("test_every_original_is_listed_once_in_uri_order", WithoutCase),
    ("test_every_original_is_listed_once_in_uri_order", LocalTime),
    ("test_an_empty_system_lists_nothing", FailsWhenEmpty),
    ("test_the_next_listing_has_additions_and_removals", Remembers),
    ("test_unchanged_originals_are_listed_unchanged", OtherFingerprints),
    ("test_many_originals_are_all_listed", FirstPage),
    ("test_unchanged_originals_are_listed_during_concurrent_changes", ByNumber),
    ("test_omissions_are_reported", SaysNothing),
    ("test_originals_out_of_reach_are_an_error", EndsWhenItFails),
    ("test_a_truncated_listing_is_an_error", EndsWhenItFails),
    ("test_a_fingerprint_changes_with_the_bytes", SameFingerprint),
    ("test_a_fingerprint_changes_with_the_bytes", WithoutFingerprint),
    ("test_measuring_reads_the_bytes", WithoutDigest),
    ("test_measuring_reads_the_bytes", ListedLength),
    ("test_an_original_changed_since_the_listing_is_measured_as_it_is", ListedFingerprint),
    ("test_a_vanished_original_raises_an_error", MeasuresNothing),
    ("test_prefetching_does_not_change_measurements", LastFirst),
    ("test_prefetching_does_not_change_measurements", ForgetsTheRest),
    ("test_an_original_is_opened_by_its_uri", OpensAnything),
    ("test_an_original_is_opened_by_its_uri", OpensABlock),
]


@pytest.mark.parametrize(("check", "kind"), BROKEN, ids=lambda item: getattr(item, "__name__", ""))
def test_originals_that_break_a_promise_are_found(check: str, kind: type[Right]) -> None:
    held = kind()

    assert finds(Trial(held), check, held)


@pytest.mark.parametrize("check", sorted(checks_of(OriginalsSuite)))
def test_originals_that_keep_their_promises_are_not(check: str) -> None:
    held = Right()

    assert not finds(Trial(held), check, held)


def test_each_check_of_originals_has_originals_that_fail_it() -> None:
    assert {check for check, _ in BROKEN} == checks_of(OriginalsSuite)
