"""A worker's part for one unit: it fetches, stages and makes durable, and changes no copy."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from resourcesync.errors import ConfigurationError, StorageError
from resourcesync.ports import Fetcher, FetchFailure, FetchRequest, FetchResponse, StagedCopy
from resourcesync_cluster.ports import StagingArea, UnitOutcome
from resourcesync_cluster.units import FetchedResource, FetchUnit, UnitResult, WantedResource

_GROUP: Final = 64
"""Number of resources that are made durable together."""


class WorkerTools(msgspec.Struct, frozen=True, kw_only=True):
    """Dependencies of a worker."""

    fetcher: Fetcher
    area: StagingArea
    traffic: Callable[[], tuple[int, int]]
    wait: Callable[[], float | None]


class _Received(NamedTuple):
    number: int
    staged: StagedCopy
    fetched: FetchedResource


def fetch_unit(unit: FetchUnit, tools: WorkerTools) -> UnitOutcome:
    """Carry out the requests of a unit.

    Run again, it stages everything again: what another attempt staged is never used.
    """
    try:
        fetched = _UnitFetch(unit.wanted, tools).carry_out()
    except (StorageError, ConfigurationError) as error:
        return UnitOutcome(unit.name, wait=tools.wait(), details=error)
    result = UnitResult(fetched, *tools.traffic())
    return UnitOutcome(unit.name, len(fetched), wait=tools.wait(), details=result)


class _UnitFetch:
    def __init__(self, wanted: Sequence[WantedResource], tools: WorkerTools) -> None:
        self._wanted = wanted
        self._tools = tools
        self._under_way: dict[FetchRequest, tuple[int, StagedCopy]] = {}
        self._received: list[_Received] = []
        self._ended: dict[int, FetchedResource] = {}

    def carry_out(self) -> tuple[FetchedResource, ...]:
        try:
            for outcome in self._tools.fetcher.fetch(self._requests()):
                self._handle(outcome, *self._under_way.pop(outcome.request))
                if len(self._received) >= _GROUP:
                    self._hand_over()
            self._hand_over()
        finally:
            for _, staged in self._under_way.values():
                staged.discard()
            for received in self._received:
                received.staged.discard()
        return tuple(self._ended[number] for number in range(len(self._wanted)))

    def _requests(self) -> Iterator[FetchRequest]:
        for number, wanted in enumerate(self._wanted):
            staged = self._tools.area.stage(wanted.algorithms)
            request = FetchRequest(
                uri=wanted.uri,
                sink=staged,
                etag=wanted.etag,
                last_modified=wanted.last_modified,
                limit=wanted.limit,
                uncached=wanted.uncached,
                proof=wanted.proof,
                as_sent=True,
                fields=wanted.fields,
            )
            self._under_way[request] = number, staged
            yield request

    def _handle(
        self, outcome: FetchResponse | FetchFailure, number: int, staged: StagedCopy
    ) -> None:
        if isinstance(outcome, FetchFailure):
            staged.discard()
            self._ended[number] = FetchedResource(outcome.error, tries=outcome.tries)
        elif outcome.status != 200:  # noqa: PLR2004 - the one status with a body
            staged.discard()
            self._ended[number] = _fetched(outcome)
        else:
            length, digests = staged.seal()
            fetched = _fetched(outcome)._replace(length=length, digests=tuple(digests))
            self._received.append(_Received(number, staged, fetched))

    def _hand_over(self) -> None:
        """Make what was received durable."""
        places = self._tools.area.hand_over(
            [(received.staged, received.fetched.headers) for received in self._received]
        )
        for received, place in zip(self._received, places, strict=True):
            if isinstance(place, str):
                self._ended[received.number] = received.fetched._replace(place=place)
            else:
                self._ended[received.number] = FetchedResource(place)
        self._received = []


def _fetched(answer: FetchResponse) -> FetchedResource:
    return FetchedResource(
        status=answer.status, uri=answer.uri, headers=dict(answer.headers), tries=answer.tries
    )
