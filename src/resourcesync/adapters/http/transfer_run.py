"""The run of one ``fetch``: sends each request when the limits allow, and reports the outcome."""

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from math import inf
from random import Random

import msgspec
import pycurl

from resourcesync import errors
from resourcesync.adapters import http
from resourcesync.adapters.http.addresses import Address, parse_address, without_query
from resourcesync.adapters.http.curl_engine import CurlEngine
from resourcesync.adapters.http.origins import OriginQueue, Origins, OriginState, RequestState
from resourcesync.adapters.http.politeness import (
    NO_LIMIT,
    RobotsRules,
    RobotsSink,
    decorrelated,
    parse_rules,
    rules_after_failure,
)
from resourcesync.adapters.http.response_head import PUSHBACK, REDIRECTS, ResponseHead
from resourcesync.adapters.http.settings import FAIR_RATE, FetchSettings
from resourcesync.adapters.http.transfer import HttpTransfer
from resourcesync.ports import Clock, FetchFailure, FetchRequest, FetchResponse, Purpose

FetchOutcome = FetchResponse | FetchFailure

_AHEAD = 16
_LONGEST_NAP = 0.5
_STILL = 0.02
_SOON = 0.02
"""Seconds until the requests are polled again, if there are none for the moment."""
_BURST = 0.05
_MAX_QUEUES = 2048
_BROWSERS = 6
"""Connections that browsers open to a server. One that closes each after its answer, as Python's
``http.server`` does, has a short queue for new ones, and what overflows waits for up to a minute.
"""
_ROBOTS_RETRIES = 1
_UNRULED = frozenset({Purpose.MESSAGE, Purpose.STREAM})
"""Purposes exempt from ``robots.txt``: the operator, or the Source, named the very address."""
_OF_LISTS = frozenset({Purpose.DISCOVERY, Purpose.DOCUMENT})
_OK = 200
_NOT_MODIFIED = 304
_BUSY = 503
"""A status of one page, unlike 429: while others of its origin are served, only this one waits."""
_CROWDED = frozenset({"connect", "reset", "timeout", "too-slow"})


class TransferCounts(msgspec.Struct):
    """Running totals of a fetcher.

    ``quiet_until`` is the end of the longest requested wait; a document was requested from each of
    the ``list_origins``.
    """

    requests: int = 0
    received: int = 0
    quiet_until: float | None = None
    certificates: dict[str, datetime] = msgspec.field(default_factory=dict)
    list_origins: set[str] = msgspec.field(default_factory=set)

    def certificate_until(self) -> datetime | None:
        """Return the end of the first certificate of the servers of the lists; ``None``: no TLS."""
        ends = [end for name, end in self.certificates.items() if name in self.list_origins]
        return min(ends, default=None)


class TransferRun:
    """The state of one ``fetch``."""

    def __init__(
        self,
        settings: FetchSettings,
        clock: Clock,
        random: Random,
        origins: Origins,
        lend: Callable[[], AbstractContextManager[CurlEngine]],
        counts: TransferCounts,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._random = random
        self._origins = origins
        self._lend = lend
        self._counts = counts
        self._lanes: dict[str, OriginQueue] = {}
        self._busy: dict[OriginQueue, None] = {}
        self._done: list[FetchOutcome] = []
        self._open = 0
        self._polls_soon = False
        self._resumed_at = clock.monotonic()
        self._sweep_at = self._resumed_at
        self._affordable_at = self._resumed_at
        self._charged = counts.received
        self._nap = min(_LONGEST_NAP, settings.timeout / 4)
        self._jobs = settings.jobs
        if settings.bandwidth:  # so each transfer has enough of it not to look stalled
            self._jobs = min(settings.jobs, max(1, settings.bandwidth // FAIR_RATE))

    def outcomes(
        self, requests: Iterator[FetchRequest | None]
    ) -> Generator[FetchOutcome, None, None]:
        """Yield the outcome of every request; ``None`` among them means: poll again soon."""
        more = True
        with self._lend() as self._engine:
            while more or self._open:
                self._engine.cancel.raise_if_cancelled()
                more = more and self._accept_requests(requests)
                now = self._clock.monotonic()
                self._exclude_caller_time(now)
                self._start(now)
                if self._engine.active:
                    self._drive(now)
                if self._done:
                    self._resumed_at = self._clock.monotonic()
                    done, self._done = self._done, []
                    yield from done
                elif self._open:
                    self._wait(now)
                    self._resumed_at = self._clock.monotonic()

    def _accept_requests(self, requests: Iterator[FetchRequest | None]) -> bool:
        self._polls_soon = False
        most = self._settings.jobs + _AHEAD
        if self._open >= most:
            return True
        for request in requests:
            if request is None:
                self._polls_soon = True
                return True
            self._open += 1
            try:
                address = parse_address(request.uri)
                known = address.authority in self._lanes
                lane = self._lanes[address.authority] if known else self._queue_for(address)
            except errors.SourceRefusedError as error:
                self._conclude(FetchFailure(request=request, error=error, tries=0))
                return True  # the caller gets each outcome soon, however many are refused
            lane.add(RequestState(request, address))
            self._busy[lane] = None
            if self._open >= most:
                return True
        return False

    def _queue_for(self, address: Address) -> OriginQueue:
        lane = self._lanes.get(address.authority)
        if lane is None:
            if len(self._lanes) > _MAX_QUEUES:
                self._lanes = {key: kept for key, kept in self._lanes.items() if not kept.idle}
            origin = self._origins.find(address.authority, address.uri)
            lane = self._lanes.get(origin.name) or OriginQueue(origin)
            self._lanes[origin.name] = self._lanes[address.authority] = lane
        return lane

    def _start(self, now: float) -> None:
        for lane in list(self._busy):
            if self._start_queue(lane, now):
                del self._busy[lane]  # behind the others, so each has its turn
                self._busy[lane] = None
            elif lane.idle:
                del self._busy[lane]

    def _start_queue(self, lane: OriginQueue, now: float) -> bool:
        politeness = lane.origin.politeness
        if politeness.must_fail(now):
            self._fail_waiting(lane, now)
            return False
        room = before = self._jobs - len(self._engine.active)
        while room > 0 and lane.in_flight < politeness.allowance and politeness.not_before <= now:
            errand = lane.pop(now)
            if errand is None:
                break
            if now >= lane.origin.free_until and self._check_rules(lane, errand, now):
                continue
            self._send(lane, errand, now)
            room -= 1
        lane.peak = lane.in_flight
        return room < before

    def _check_rules(self, lane: OriginQueue, errand: RequestState, now: float) -> bool:
        request = errand.request
        if errand.for_robots or request.is_explicit or request.purpose in _UNRULED:
            return False
        origin = lane.origin
        if origin.rules is not None and now < origin.rules_until:
            error = origin.rules.refusal(errand.uri, errand.request.purpose)
            if error is None:
                return False
            if not origin.is_recalled:  # else fetch: the site may have changed its rules
                self._fail(errand, error)
                return True
        lane.awaits_rules = True
        lane.add_retry(errand, now)
        uri = f"{origin.name}/robots.txt"
        request = FetchRequest(
            uri=uri, sink=RobotsSink(), purpose=Purpose.DISCOVERY, limit=NO_LIMIT
        )
        lane.add_retry(RequestState(request, parse_address(uri), for_robots=True), now)
        return True

    def _send(self, lane: OriginQueue, errand: RequestState, now: float) -> None:
        origin, politeness = lane.origin, lane.origin.politeness
        errand.probe = politeness.circuit.open
        if not errand.hops:
            errand.tries += 1
        if politeness.interval:
            politeness.record_start(now)
        lane.in_flight += 1
        self._counts.requests += 1
        self._engine.start(errand, origin.headers(errand), now, private=origin.private)

    def _drive(self, now: float) -> None:
        for transfer in self._engine.poll():
            self._finish_transfer(transfer, now)
        if now >= self._sweep_at:
            self._sweep_at = now + self._nap
            self._sweep(now)
        if self._settings.bandwidth:
            self._throttle(self._settings.bandwidth, now)

    def _sweep(self, now: float) -> None:
        active, bandwidth = self._engine.active, self._settings.bandwidth
        share = bandwidth / (4 * max(1, len(active))) if bandwidth else inf
        for transfer in list(active.values()):
            if transfer.check_slow(now, share):
                self._engine.abort(transfer)
                self._finish_transfer(transfer, now)

    def _throttle(self, bandwidth: int, now: float) -> None:
        total = self._counts.received + sum(t.wire for t in self._engine.active.values())
        self._affordable_at = max(self._affordable_at, now) + (total - self._charged) / bandwidth
        self._charged = total
        ahead = self._affordable_at - now
        if ahead > _BURST:
            self._engine.cancel.wait(ahead)

    def _exclude_caller_time(self, now: float) -> None:
        still = now - self._resumed_at
        if still > _STILL:
            for transfer in self._engine.active.values():
                transfer.exclude_pause(still)

    def _wait(self, now: float) -> None:
        until = now + (_SOON if self._polls_soon else self._nap)
        if len(self._engine.active) < self._jobs:
            for lane in self._busy:
                wake = lane.wake_at()
                if wake is not None and wake < until:
                    until = wake
        self._engine.wait(max(0.0, until - now))

    def _finish_transfer(self, transfer: HttpTransfer, now: float) -> None:
        errand = transfer.errand
        lane = self._lanes[errand.authority]
        lane.in_flight -= 1
        self._counts.received += transfer.wire
        self._record_server(lane.origin, transfer)
        error, head = transfer.error, transfer.head
        if error is not None and isinstance(error, errors.SourceUnavailableError):
            self._record_trouble(lane, transfer, error, now)
        elif head is not None:
            politeness = lane.origin.politeness
            may_grow = _BROWSERS <= politeness.allowance < self._settings.per_host
            is_enough = may_grow and head.is_last
            politeness.record_answer(transfer.latency(), 0 if is_enough else lane.peak)
        if transfer.broken_range:
            self._request_whole(errand, now)
        elif error is not None:
            if error.transient and not (transfer.is_late or isinstance(error, errors.StorageError)):
                errand.part = transfer.part()
                self._retry(lane, errand, error, now)
            else:
                self._fail(errand, error)
        elif (
            head is not None
            and head.status in REDIRECTS
            and errand.request.purpose is not Purpose.MESSAGE
        ):
            self._redirect(errand, transfer, head.get("location", ""), now)
        elif head is not None and (not transfer.reading or self._check_end(errand, transfer, now)):
            self._succeed(errand, head, transfer.received)

    def _record_server(self, origin: OriginState, transfer: HttpTransfer) -> None:
        if origin.learns_reach and transfer.head is not None and not transfer.proxy:
            self._origins.learn_reach(origin, transfer.curl.getinfo(pycurl.PRIMARY_IP))
        if not transfer.is_secure:
            return
        errand, end = transfer.errand, transfer.certificate_end()
        if end is not None:
            self._counts.certificates[errand.authority] = end
        if errand.request.purpose in _OF_LISTS and not errand.for_robots:
            self._counts.list_origins.add(errand.authority)

    def _record_trouble(
        self,
        lane: OriginQueue,
        transfer: HttpTransfer,
        error: errors.SourceUnavailableError,
        now: float,
    ) -> None:
        politeness = lane.origin.politeness
        lane.origin.trouble = error
        wait, of_page = error.retry_after or 0.0, error.status == _BUSY
        if error.status in PUSHBACK and politeness.record_pushback(now, wait, of_page=of_page):
            self._counts.quiet_until = max(self._counts.quiet_until or 0.0, now + wait)
        if error.status in PUSHBACK or error.code in _CROWDED:
            politeness.record_overload(now, transfer.began)
        politeness.record_failure(
            now, probe=transfer.errand.probe, answered=transfer.head is not None
        )

    def _retry(
        self, lane: OriginQueue, errand: RequestState, error: errors.SourceError, now: float
    ) -> None:
        most = _ROBOTS_RETRIES if errand.for_robots else self._settings.retries
        most = 0 if errand.request.purpose is Purpose.STREAM else most
        wait = (error.retry_after or 0.0) if error.status == _BUSY else 0.0
        errand.trouble, errand.waited = error, errand.waited + wait
        is_too_long = errand.waited > self._settings.max_wait
        if errand.tries > most or is_too_long or lane.origin.politeness.must_fail(now):
            self._fail(errand, error)
            return
        try:
            if errand.part is None:
                errand.request.sink.restart()
        except errors.StorageError as storage:
            self._fail(errand, storage)
            return
        errand.restart()
        settings = self._settings
        errand.delay = decorrelated(self._random, settings.backoff, errand.delay, settings.max_wait)
        again = self._lanes[errand.authority]
        again.add_retry(errand, now + max(errand.delay, wait))
        self._busy[again] = None

    def _check_end(self, errand: RequestState, transfer: HttpTransfer, now: float) -> bool:
        """Return whether a body without a marked end is whole: if it came twice."""
        before, errand.reading = errand.reading, transfer.reading
        if transfer.reading == before:
            return True
        errand.readings += 1
        if errand.readings > self._settings.retries + 1:
            error = http.transfer_errors.unmarked_end_error(errand.uri, errand.readings)
            self._fail(errand, error)
        else:
            self._request_whole(errand, now)
        return False

    def _request_whole(self, errand: RequestState, now: float) -> None:
        try:
            errand.request_whole()
        except errors.StorageError as error:
            self._fail(errand, error)
            return
        errand.restart()
        again = self._lanes[errand.authority]
        again.add_retry(errand, now)
        self._busy[again] = None

    def _redirect(
        self, errand: RequestState, transfer: HttpTransfer, location: str, now: float
    ) -> None:
        wait = transfer.wait or 0.0
        try:
            address = http.redirects.follow_redirect(
                errand.uri, location, left=self._settings.redirects - errand.hops
            )
            lane = self._queue_for(address)
            if wait > self._settings.max_wait:
                raise errors.SourceUnavailableError(
                    "the redirect may not be followed yet", uri=errand.uri, retry_after=wait
                )
        except errors.SourceError as error:
            self._fail(errand, error)
            return
        errand.redirect_to(address)
        lane.add_retry(errand, now + wait)
        self._busy[lane] = None

    def _succeed(self, errand: RequestState, head: ResponseHead, received: int) -> None:
        sink = errand.request.sink
        if errand.for_robots and isinstance(sink, RobotsSink):
            self._store_rules(errand, parse_rules(bytes(sink.content)), bytes(sink.content))
            return
        status = _OK
        if head.status == _NOT_MODIFIED or errand.request.purpose is Purpose.MESSAGE:
            status = head.status
        self._open -= 1
        self._done.append(
            FetchResponse(errand.request, status, errand.uri, head, received, errand.tries)
        )

    def _fail(self, errand: RequestState, error: errors.SourceError | errors.StorageError) -> None:
        sink = errand.request.sink
        if errand.for_robots and isinstance(sink, RobotsSink):
            self._store_rules(
                errand, rules_after_failure(error, bytes(sink.content)), bytes(sink.content)
            )
            return
        self._conclude(FetchFailure(request=errand.request, error=error, tries=errand.tries))

    def _fail_waiting(self, lane: OriginQueue, now: float) -> None:
        trouble = lane.origin.trouble
        for errand in lane.pop_all():
            if errand.trouble is not None and not errand.hops:
                self._fail(errand, errand.trouble)
                continue
            message = trouble.message if trouble else "the origin does not answer"
            if errand.hops:
                there = without_query(errand.uri)
                message = f"redirected to {there}, which was not requested: {message}"
            error = errors.SourceUnavailableError(
                message,
                uri=errand.uri,
                status=trouble.status if trouble else 0,
                retry_after=lane.origin.politeness.wait_left(now),
                evidence=trouble.evidence if trouble else (),
                hint=trouble.hint if trouble else "",
                code=trouble.code if trouble else "",
            )
            self._fail(errand, error)

    def _store_rules(self, errand: RequestState, rules: RobotsRules, read: bytes) -> None:
        lane = self._lanes[errand.first.authority]
        lane.awaits_rules = False
        self._origins.store_rules(lane.origin, rules, read)

    def _conclude(self, outcome: FetchOutcome) -> None:
        self._open -= 1
        self._done.append(outcome)
