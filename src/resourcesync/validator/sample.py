"""The sample of a Source's resources that is requested, to be judged by ``served_responses``."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from heapq import nsmallest
from typing import Final, NamedTuple, TypeVar

import msgspec

from resourcesync.discovery.links import MAX_PAGE
from resourcesync.errors import ResourceSyncError
from resourcesync.model.digests import ALGORITHMS, new_hashers
from resourcesync.ports import Fetcher, FetchRequest, FetchResponse, Purpose
from resourcesync.validator import served_responses
from resourcesync.validator.rule import AppliedRules, RuleFinding
from resourcesync.validator.summaries import DocumentSummary, ListedResource

T = TypeVar("T")

MOST_READ: Final = MAX_PAGE
"""Bytes of a page that are read: a head is shorter."""
_MOST: Final = 100_000
"""Most resources of one sample, and most changes that are stored for it."""


class SampleSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a sample: a number of resources, or a share of them in percent."""

    count: int | None = None
    percent: float | None = None

    def resolve(self, whole: int) -> int:
        """Return the size of a sample of so many things; at least one for a share above 0."""
        if self.count is not None:
            return min(self.count, whole)
        return min(whole, math.ceil(whole * (self.percent or 0.0) / 100))


Chance = Callable[[], float]
"""Function that returns a random number from 0 on, below 1."""


def choose(population: Iterable[T], number: int, chance: Chance) -> list[T]:
    """Return some members of a population, in a random order."""
    return nsmallest(number, population, key=lambda _: chance())


class _SampledEntry(NamedTuple):
    listed: ListedResource
    moment: datetime | None


class Sample:
    """Chooses resources as they are listed, in memory that is bounded by the sample."""

    def __init__(self, size: SampleSize, chance: Chance) -> None:
        self._size = size
        self._chance = chance
        self._resources: list[_SampledEntry] = []
        self._changes: dict[str, _SampledEntry] = {}
        self.listed = 0

    def add(self, listed: ListedResource, document: DocumentSummary) -> None:
        """Add the next entry of a Resource List, a sitemap or a Change List."""
        if listed.change:
            has_room = len(self._changes) < _MOST and self._size.count != 0
            if has_room or listed.uri in self._changes:
                self._changes[listed.uri] = _SampledEntry(listed, document.from_)
            return
        self.listed += 1
        if self._size.count == 0:
            return
        seen = _SampledEntry(listed, document.at)
        if self._size.count is None:
            if len(self._resources) < _MOST and self._is_drawn():
                self._resources.append(seen)
            return
        if len(self._resources) < min(self._size.count, _MOST):
            self._resources.append(seen)
        else:
            place = int(self._chance() * self.listed)
            if place < len(self._resources):
                self._resources[place] = seen

    def _is_drawn(self) -> bool:
        return self._chance() * 100 < (self._size.percent or 0.0)

    def selected(self) -> list[ListedResource]:
        """Return the resources to fetch, each with its latest entry."""
        changes = dict(self._changes)
        found: list[ListedResource] = []
        for seen in self._resources:
            last = _later(seen, changes.pop(seen.listed.uri, None))
            if last is not None:
                found.append(last)
        remaining = [seen.listed for seen in changes.values()]
        if self._size.count is None:
            return found + [listed for listed in remaining if self._is_drawn()]
        return choose(found + remaining, self._size.count, self._chance)


def _later(resource: _SampledEntry, change: _SampledEntry | None) -> ListedResource | None:
    if change is None:
        return resource.listed
    if resource.moment is not None and change.moment is not None:
        if change.moment >= resource.moment:
            return change.listed
        if resource.listed.hashes and resource.listed.hashes == change.listed.hashes:
            return resource.listed
    moment, other = resource.listed.lastmod, change.listed.lastmod
    if moment is None or other is None or change.listed.change == "deleted":
        return None
    return change.listed if other >= moment else resource.listed


class Meter:
    """Counts and digests a resource's bytes, and stores none."""

    def __init__(self, listed: ListedResource) -> None:
        self.listed = listed
        self.restart()

    def write(self, chunk: bytes) -> None:
        """Add the next bytes."""
        self.length += len(chunk)
        if len(self.start) < MOST_READ:
            self.start += chunk[: MOST_READ - len(self.start)]
        for digest in self._digests.values():
            digest.update(chunk)

    def restart(self) -> None:
        """Start over: the transfer starts again from the first byte."""
        self.length = 0
        self.start = bytearray()
        self._digests = new_hashers(name for name in self.listed.hashes if name in ALGORITHMS)

    @property
    def hashes(self) -> dict[str, str]:
        """The digests of the bytes so far."""
        return {name: digest.hexdigest() for name, digest in self._digests.items()}


class Unreached(msgspec.Struct, frozen=True, kw_only=True):
    """Something could not be fetched, so it was not checked."""

    uri: str
    error: ResourceSyncError


Answered = Callable[[str, Mapping[str, str], bytes], None]
"""Receives an answer: the resource, its header fields, and the start of its body."""


def judge_delivery(
    fetcher: Fetcher, source: str, chosen: list[ListedResource], on_answer: Answered
) -> Iterator[RuleFinding | AppliedRules | Unreached]:
    """Fetch resources of a Source and check their delivery; nothing is stored."""
    applied: set[str] = set()
    requests = (
        FetchRequest(uri=listed.uri, sink=Meter(listed), purpose=Purpose.RESOURCE, as_sent=True)
        for listed in chosen
    )
    for outcome in fetcher.fetch(requests):
        meter = outcome.request.sink
        assert isinstance(meter, Meter)
        uri = meter.listed.uri
        if isinstance(outcome, FetchResponse):
            answer = served_responses.DeliveredResponse(
                uri=uri,
                status=outcome.status,
                headers=outcome.headers,
                length=meter.length,
                hashes=meter.hashes,
            )
            start = bytes(meter.start)
            on_answer(uri, outcome.headers, start)
            yield from served_responses.judge_body(meter.listed, start)
        elif status := getattr(outcome.error, "status", 0):
            answer = served_responses.DeliveredResponse(uri=uri, status=status)
        else:
            yield Unreached(uri=uri, error=outcome.error)
            continue
        yield from served_responses.judge_resource(meter.listed, answer, applied)
    yield AppliedRules(source, frozenset(applied))
