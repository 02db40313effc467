"""The simulated network: how long requests take, and what goes wrong with them (``Fetcher``)."""

import heapq
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Final

from resourcesync.errors import (
    BadResponseError,
    ResourceMissingError,
    SourceError,
    SourceUnavailableError,
    StorageError,
)
from resourcesync.ports import Failure, Purpose, Request, Response
from resourcesync.simulator.clock import SimulatedClock
from resourcesync.simulator.origin import BASE
from resourcesync.simulator.scenario import DestinationSettings, Faults
from resourcesync.simulator.source import Answer, SimulatedSource

_TIMEOUT: Final = 30.0
_OVERHEAD: Final = 300
"""Bytes of the header fields of an answer, which are received too."""


class Crash(BaseException):
    """A Destination died: nothing catches it but who begins it anew."""


class SimulatedNetwork:
    """A ``Fetcher`` in virtual time: so many requests at a time, each as long as it would take.

    Args:
        source: Answers.
        settings: How fast it is asked.
        faults: What goes wrong on the way.
        seed: Of all that is left to chance.
        clock: Passes while requests are on their way.
    """

    def __init__(
        self,
        source: SimulatedSource,
        settings: DestinationSettings,
        faults: Faults,
        seed: int,
        clock: SimulatedClock,
    ) -> None:
        self._source = source
        self._settings = settings
        self._faults = faults
        self._luck = random.Random(f"network {seed}")  # noqa: S311 - a simulation
        self._clock = clock
        self.is_well = False
        """Whether nothing goes wrong any more."""
        self.requests = 0
        self.received = 0

    def fetch(self, requests: Iterable[Request]) -> Iterator[Response | Failure]:
        """Carry out the requests; yield each outcome when its time has come.

        Raises:
            Crash: The Destination dies.
        """
        waiting, numbers = iter(requests), count()
        under_way: list[tuple[float, int, Callable[[], Response | Failure]]] = []
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

    def _begin(self, request: Request) -> tuple[float, Callable[[], Response | Failure]]:
        """Ask; return how many seconds it takes, and what ends it."""
        self.requests += 1
        if not self.is_well and self._happens(self._faults.crash):
            raise Crash
        error, slow = (None, 1.0) if self.is_well else self._trouble(request.uri)
        if error is not None:
            seconds = _TIMEOUT if error.code == "too-slow" else self._settings.latency
            return seconds, lambda: Failure(request=request, error=error)
        path = request.uri.removeprefix(BASE)
        is_stale = not (self.is_well or request.uncached) and self._happens(self._faults.stale)
        answer = self._source.answer(path, stale=is_stale)
        if answer is None:
            missing = ResourceMissingError("404", uri=request.uri, status=404)
            return self._settings.latency, lambda: Failure(request=request, error=missing)
        if request.etag and request.etag == answer.etag:
            unchanged = self._response(request, answer, 304, 0)
            return self._settings.latency, lambda: unchanged
        body = answer.body if self.is_well else self._harmed(answer.body, request.purpose)
        seconds = self._settings.latency + len(body) / self._settings.bandwidth
        return seconds * slow + (slow > 1), lambda: self._end(request, answer, body)

    def _trouble(self, uri: str) -> tuple[SourceError | None, float]:
        """Return what keeps an answer from coming, or how many times longer it takes."""
        elapsed, faults = self._clock.elapsed, self._faults
        if any(since <= elapsed < until for since, until in faults.outages):
            return SourceUnavailableError("nobody answers", uri=uri, code="too-slow"), 1.0
        if self._happens(faults.lost):
            return SourceUnavailableError("nobody answers", uri=uri, code="too-slow"), 1.0
        if self._happens(faults.failed):
            return SourceUnavailableError("503", uri=uri, status=503), 1.0
        if self._happens(faults.refused):
            return ResourceMissingError("404", uri=uri, status=404), 1.0
        return None, 10.0 if self._happens(faults.late) else 1.0

    def _harmed(self, body: bytes, purpose: Purpose) -> bytes:
        """Return what comes of a body on the way."""
        if body and self._happens(self._faults.cut):
            return body[: self._luck.randrange(len(body))]
        if purpose is Purpose.RESOURCE and body and self._happens(self._faults.altered):
            place = self._luck.randrange(len(body))
            return body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
        return body

    def _happens(self, rate: float) -> bool:
        return rate > 0 and self._luck.random() < rate

    def _end(self, request: Request, answer: Answer, body: bytes) -> Response | Failure:
        self.received += len(body) + _OVERHEAD
        if request.limit is not None and len(body) > request.limit:
            too_big = BadResponseError("more bytes than allowed", uri=request.uri, code="too-big")
            return Failure(request=request, error=too_big)
        try:
            if request.part is not None:
                request.sink.restart()
            if body:
                request.sink.write(body)
        except StorageError as error:
            return Failure(request=request, error=error)
        return self._response(request, answer, 200, len(body))

    def _response(self, request: Request, answer: Answer, status: int, received: int) -> Response:
        if status == 304:  # noqa: PLR2004 - Not Modified
            self.received += _OVERHEAD
        return Response(
            request=request,
            status=status,
            uri=request.uri,
            headers={"etag": answer.etag},
            received=received,
        )
