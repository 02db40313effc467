"""Simulated network: the duration of requests, and their faults (``Fetcher``)."""

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Final

from resourcesync.errors import (
    BadResponseError,
    ResourceMissingError,
    SourceError,
    SourceRefusedError,
    SourceUnavailableError,
    StorageError,
)
from resourcesync.ports import FetchFailure, FetchRequest, FetchResponse, Outcomes, Purpose
from resourcesync_simulator.clock import SimulatedClock
from resourcesync_simulator.faults import FaultInjector
from resourcesync_simulator.origin import BASE
from resourcesync_simulator.scenario import DestinationSettings, Faults, is_within
from resourcesync_simulator.source import SimulatedAnswer, SimulatedSource

_TIMEOUT: Final = 30.0
_OVERHEAD: Final = 300
"""Bytes of the header fields of an answer, which are received too."""


STORM: Final[Mapping[int, type[SourceError]]] = {
    403: SourceRefusedError,
    404: ResourceMissingError,
    410: ResourceMissingError,
    429: SourceUnavailableError,
    500: SourceUnavailableError,
    502: SourceUnavailableError,
    503: SourceUnavailableError,
    504: SourceUnavailableError,
}
"""Answers in a storm, each status as likely as the others, with the error of the fetcher."""


class SimulatedNetwork:
    """A ``Fetcher`` in virtual time: a number of requests at a time, each with its duration."""

    def __init__(
        self,
        source: SimulatedSource,
        settings: DestinationSettings,
        faults: Faults,
        seed: int,
        clock: SimulatedClock,
        *,
        injector: FaultInjector,
    ) -> None:
        self._source = source
        self._settings = settings
        self._faults = faults
        self._random = random.Random(f"network {seed}")  # noqa: S311 - a simulation
        self._storm = random.Random(f"storm {seed}")  # noqa: S311 - a simulation
        self._clock = clock
        self._on_fault = injector.on_fault
        self._injector = injector
        self.is_healthy = False
        """True if no more faults happen."""
        self.requests = 0
        self.received = 0
        self.peak = 0
        """The most requests within one second."""
        self._recent = deque[float]()

    def fetch(self, requests: Iterable[FetchRequest]) -> Outcomes:
        """Carry out the requests; yield each outcome when its time has come."""
        waiting, numbers = iter(requests), count()
        under_way: list[tuple[float, int, Callable[[], FetchResponse | FetchFailure]]] = []
        is_over = False
        while True:
            while not is_over and len(under_way) < self._settings.jobs:
                request = next(waiting, None)
                if request is None:
                    is_over = True
                    break
                seconds, end = self._begin(request)
                moment = self._clock.elapsed + seconds
                heapq.heappush(under_way, (moment, next(numbers), end))
            if not under_way:
                return
            moment, _, end = heapq.heappop(under_way)
            self._clock.pass_until(moment)
            is_over = False
            yield end()

    def _begin(
        self, request: FetchRequest
    ) -> tuple[float, Callable[[], FetchResponse | FetchFailure]]:
        """Start a request; return its duration in seconds, and the function that completes it."""
        self._count()
        path = request.uri.removeprefix(BASE)
        self._injector.check_alive()
        if not self.is_healthy and self._happens(self._faults.crash):
            self._injector.die("crash", path)
        error, slow = (None, 1.0) if self.is_healthy else self._find_error(request.uri, path)
        if error is not None:
            seconds = _TIMEOUT if error.code == "too-slow" else self._settings.latency
            return seconds, lambda: FetchFailure(request=request, error=error)
        may_be_stale = not (self.is_healthy or request.uncached)
        is_stale = may_be_stale and self._occurs("stale", self._faults.stale, path)
        answer = self._source.answer(path, stale=is_stale)
        if answer is None:
            missing = ResourceMissingError("404", uri=request.uri, status=404)
            return self._settings.latency, lambda: FetchFailure(request=request, error=missing)
        if request.etag and request.etag == answer.etag:
            unchanged = self._response(request, answer, 304, 0)
            return self._settings.latency, lambda: unchanged
        body = answer.body if self.is_healthy else self._harmed(answer.body, request.purpose, path)
        seconds = self._settings.latency + len(body) / self._settings.bandwidth
        return seconds * slow + (slow > 1), lambda: self._end(request, answer, body)

    def _count(self) -> None:
        """Count a request."""
        self.requests += 1
        self._recent.append(self._clock.elapsed)
        while self._recent[0] <= self._recent[-1] - 1.0:
            self._recent.popleft()
        self.peak = max(self.peak, len(self._recent))

    def _find_error(self, uri: str, path: str) -> tuple[SourceError | None, float]:
        """Return the error of a request, or the factor of its duration."""
        elapsed, faults = self._clock.elapsed, self._faults
        if is_within(elapsed, faults.outages):
            self._on_fault("outages", path)
            return SourceUnavailableError("nobody answers", uri=uri, code="too-slow"), 1.0
        if is_within(elapsed, faults.storms):
            storm = self._stormy(uri, path)
            if storm is not None:
                return storm, 1.0
        if self._occurs("lost", faults.lost, path):
            return SourceUnavailableError("nobody answers", uri=uri, code="too-slow"), 1.0
        if self._occurs("failed", faults.failed, path):
            return SourceUnavailableError("503", uri=uri, status=503), 1.0
        if self._occurs("refused", faults.refused, path):
            return ResourceMissingError("404", uri=uri, status=404), 1.0
        return None, 10.0 if self._occurs("late", faults.late, path) else 1.0

    def _stormy(self, uri: str, path: str) -> SourceError | None:
        """Return the error that every second answer is in a storm."""
        if self._storm.random() < 0.5:  # noqa: PLR2004 - every second one
            return None
        status = self._storm.choice(tuple(STORM))
        self._on_fault("storms", f"{status} {path}")
        return STORM[status](str(status), uri=uri, status=status)

    def _harmed(self, body: bytes, purpose: Purpose, path: str) -> bytes:
        """Return a body with the faults of its transfer."""
        if body and self._occurs("cut", self._faults.cut, path):
            return body[: self._random.randrange(len(body))]
        is_resource = purpose is Purpose.RESOURCE
        if is_resource and body and self._occurs("altered", self._faults.altered, path):
            place = self._random.randrange(len(body))
            return body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
        return body * 2 if self._occurs("doubled", self._faults.doubled, path) else body

    def _occurs(self, fault: str, rate: float, path: str) -> bool:
        """True if a fault happens, which is reported."""
        happens = self._happens(rate)
        if happens:
            self._on_fault(fault, path)
        return happens

    def _happens(self, rate: float) -> bool:
        return rate > 0 and self._random.random() < rate

    def _end(
        self, request: FetchRequest, answer: SimulatedAnswer, body: bytes
    ) -> FetchResponse | FetchFailure:
        self.received += len(body) + _OVERHEAD
        if request.limit is not None and len(body) > request.limit:
            too_big = BadResponseError("more bytes than allowed", uri=request.uri, code="too-big")
            return FetchFailure(request=request, error=too_big)
        try:
            if request.part is not None:
                request.sink.restart()
            if body:
                request.sink.write(body)
        except StorageError as error:
            return FetchFailure(request=request, error=error)
        return self._response(request, answer, 200, len(body))

    def _response(
        self, request: FetchRequest, answer: SimulatedAnswer, status: int, received: int
    ) -> FetchResponse:
        if status == 304:  # noqa: PLR2004 - Not Modified
            self.received += _OVERHEAD
        return FetchResponse(
            request=request,
            status=status,
            uri=request.uri,
            headers={"etag": answer.etag},
            received=received,
        )
