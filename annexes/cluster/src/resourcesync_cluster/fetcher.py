"""The ``Fetcher`` port by workers: they fetch and stage, and this machine alone commits.

A pull with workers is an ordinary pull with this fetcher. Nothing is recorded of a request before
its bytes are staged, so a worker or a coordinator that dies leaves no more than staged bytes, which
the next run removes.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import Any, Final, cast
from urllib.parse import urlsplit

from resourcesync.errors import ResourceSyncError, SourceError, StorageError
from resourcesync.ports import FetchFailure, FetchRequest, FetchResponse, Outcomes
from resourcesync_cluster.ports import TakingCopy, UnitOutcome
from resourcesync_cluster.units import FetchedResource, FetchUnit, UnitResult, wanted_by

UNIT_BYTES: Final = 256 << 20
"""Listed bytes at which a unit is full: a large resource has a unit of its own."""

UnitRun = Callable[[Iterable[FetchUnit]], Generator[UnitOutcome, None, None]]
"""Runs units, and yields the outcome of each as it comes."""


class WorkerFetcher:
    """A fetcher whose requests workers carry out; their sinks take over what was staged."""

    def __init__(self, run: UnitRun, site: Any, *, rows: int) -> None:
        self._run = run
        self._site = site
        self._rows = rows
        self._requests = self._received = 0

    def traffic(self) -> tuple[int, int]:
        """Return requests sent and bytes received by workers so far."""
        return self._requests, self._received

    def fetch(self, requests: Iterable[FetchRequest]) -> Outcomes:
        """Carry out requests for resources; yield each outcome as its unit ends."""
        waiting: dict[str, list[FetchRequest]] = {}
        with closing(self._run(self._units(iter(requests), waiting))) as outcomes:
            for outcome in outcomes:
                yield from self._ends(waiting.pop(outcome.name), outcome)

    def _units(
        self, requests: Iterator[FetchRequest], waiting: dict[str, list[FetchRequest]]
    ) -> Iterator[FetchUnit]:
        number = 0
        while group := self._next_group(requests):
            unit = FetchUnit(
                name=f"{number}",
                host=_most_common_host(group),
                wanted=tuple(
                    wanted_by(request, tuple(_taking(request).algorithms)) for request in group
                ),
                site=self._site,
            )
            waiting[unit.name] = group
            number += 1
            yield unit

    def _next_group(self, requests: Iterator[FetchRequest]) -> list[FetchRequest]:
        group, size = [], 0
        for request in requests:
            group.append(request)
            size += request.limit or 0
            if len(group) >= self._rows or size >= UNIT_BYTES:
                break
        return group

    def _ends(self, group: list[FetchRequest], outcome: UnitOutcome) -> Outcomes:
        if outcome.failed is not None:
            code, reason = outcome.failed
            error = SourceError(f"no worker could fetch it: {reason}", code=code)
            yield from (FetchFailure(request=request, error=error) for request in group)
            return
        if isinstance(outcome.details, ResourceSyncError):
            raise outcome.details
        result: UnitResult = outcome.details
        self._requests += result.requests
        self._received += result.received
        for request, fetched in zip(group, result.fetched, strict=True):
            yield _end(request, fetched)


def _end(request: FetchRequest, fetched: FetchedResource) -> FetchResponse | FetchFailure:
    if fetched.error is not None:
        return FetchFailure(request=request, error=fetched.error, tries=fetched.tries)
    if fetched.place:
        try:
            _taking(request).take(fetched.place, fetched.length, fetched.digests)
        except StorageError as error:
            return FetchFailure(request=request, error=error)
    return FetchResponse(
        request, fetched.status, fetched.uri, fetched.headers, fetched.length, fetched.tries
    )


def _taking(request: FetchRequest) -> TakingCopy:
    return cast("TakingCopy", request.sink)  # all copies of a mirror with workers are


def _most_common_host(group: list[FetchRequest]) -> str:
    """Return the host of most requests, with its port."""
    hosts = Counter(urlsplit(request.uri).netloc for request in group)
    return hosts.most_common(1)[0][0].rpartition("@")[2].lower()
