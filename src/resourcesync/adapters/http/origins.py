"""Requests in progress; the state and queue of each origin, and the secrets that only it gets.

A request goes through origins, redirects and retries to its one outcome.

The queue keeps the order of the requests, with those that wait for a retry.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import inf
from random import Random

from resourcesync.adapters import http
from resourcesync.adapters.http import addresses
from resourcesync.adapters.http.politeness import (
    RULES_LIFETIME,
    CircuitBreaker,
    CircuitLimits,
    KnownOrigins,
    Politeness,
    RequestWindow,
    RobotsRules,
    parse_rules,
)
from resourcesync.adapters.http.settings import FetchSettings
from resourcesync.errors import SourceError, SourceRefusedError
from resourcesync.ports import Clock, FetchRequest, PartialBody, Purpose, is_sendable

_REMEMBERED = 1024
_FAILURES_IN_A_ROW = 8
_MOST_SHORTENED = 10
_UNCODED = frozenset({Purpose.RESOURCE, Purpose.MESSAGE, Purpose.STREAM})
"""Purposes that are requested without a content coding."""


class RequestState:
    """The state of a request in progress.

    Once ``crossed``, by a redirect to another origin, the request carries no secrets. ``hops`` are
    the redirects since the last try began, ``trouble`` is why that failed, and ``waited`` the
    seconds that 503 asked for so far. ``reading`` is the digest of the last body of which nothing
    said that it was whole, ``readings`` the number of such bodies. With ``whole``, ranges failed,
    so a body that breaks off starts again from the first byte.
    """

    __slots__ = (
        "authority",
        "crossed",
        "delay",
        "first",
        "for_robots",
        "hops",
        "part",
        "probe",
        "reading",
        "readings",
        "request",
        "tries",
        "trouble",
        "uri",
        "waited",
        "whole",
    )

    def __init__(
        self, request: FetchRequest, address: addresses.Address, *, for_robots: bool = False
    ) -> None:
        self.request = request
        self.first = address
        self.tries = 0
        self.trouble: SourceError | None = None
        self.delay = self.waited = 0.0
        self.probe = False
        self.for_robots = for_robots
        self.part: PartialBody | None = request.part
        self.whole = False
        self.reading, self.readings = b"", 0
        self.uri, self.authority = address
        self.crossed = False
        self.hops = 0

    def restart(self) -> None:
        """Go back to the requested address."""
        self.uri, self.authority = self.first
        self.crossed = False
        self.hops = 0

    def request_whole(self) -> None:
        """Request the whole body from now on."""
        self.part, self.whole = None, True
        self.request.sink.restart()

    @property
    def condition_date(self) -> str:
        """``Last-Modified`` of what is known; none behind a redirect, where another page may be."""
        return "" if self.hops else self.request.last_modified

    def redirect_to(self, address: addresses.Address) -> None:
        """Follow a redirect."""
        self.hops += 1
        here, there = map(addresses.origin_of, (self.authority, address.authority))
        self.crossed |= here != there
        self.uri, self.authority = address.uri, address.authority


class OriginState:
    """An origin: its limits, its rules, and the header fields for it alone.

    With ``learns_reach``, where its name leads to decides on ``private``, and is not known yet.
    Rules that are ``is_recalled`` were read by a fetcher before this one; until ``free_until`` none
    restricts requests. Times are seconds of the clock.
    """

    def __init__(self, name: str, settings: FetchSettings, politeness: Politeness) -> None:
        self.name = name
        self.politeness = politeness
        self.rules: RobotsRules | None = None
        self.rules_until = 0.0
        self.free_until = inf if settings.robots == "ignore" else -inf
        self.is_recalled = False
        self.trouble: SourceError | None = None
        self.private = settings.allow_private == "always" or (
            settings.allow_private == "auto" and _is_trusted(name, settings.trusted_origins)
        )
        self.learns_reach = False
        self._secrets = [
            f"{field}: {value}"
            for origin, fields in settings.headers.items()
            if addresses.origin_of(origin) == name
            for field, value in fields
        ]
        self._from = [f"From: {settings.contact}"] if settings.contact else []
        self._usual: dict[tuple[bool, bool], list[str]] = {}

    def headers(self, errand: RequestState) -> list[str]:
        """Return the fields to send; one list for all requests that need the same."""
        request = errand.request
        key = (request.purpose in _UNCODED, errand.crossed)
        if key not in self._usual:
            coding = "identity" if key[0] else "gzip"
            secrets = [] if errand.crossed else self._secrets
            self._usual[key] = [f"Accept-Encoding: {coding}", *self._from, *secrets]
        usual = self._usual[key]
        asks_more = request.message or request.fields or request.uncached
        if not (asks_more or request.etag or request.last_modified or errand.part):
            return usual
        return [*usual, *_extra_fields(errand)]


def _is_trusted(name: str, trusted: frozenset[str]) -> bool:
    named = {addresses.origin_of(origin) for origin in trusted}
    return name in named or name.replace("https://", "http://", 1) in named


def _extra_fields(errand: RequestState) -> list[str]:
    request = errand.request
    fields = []
    if request.uncached:
        fields.append("Cache-Control: no-cache")
    if is_sendable(request.etag):
        fields.append(f"If-None-Match: {request.etag}")
    if is_sendable(errand.condition_date):
        fields.append(f"If-Modified-Since: {errand.condition_date}")
    if errand.part is not None:
        fields += http.resuming.range_fields(errand.part)
    fields += (f"{name}: {value}" for name, value in request.fields)
    if request.message is not None:  # libcurl would wait a second for permission to send a long one
        fields += ["Expect:", *(f"{name}: {value}" for name, value in request.message.fields)]
    return fields


OnShortened = Callable[[str, float], None]
"""Receives an origin whose robots.txt asks for a longer delay than is obeyed, and its seconds."""


class Origins:
    """The origins used last, at most 1,024."""

    def __init__(
        self,
        settings: FetchSettings,
        random: Random,
        clock: Clock,
        known_origins: KnownOrigins,
        on_shortened: OnShortened = lambda _name, _asked: None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._known_origins = known_origins
        self._random = random
        self._on_shortened = on_shortened
        self._shortened: set[str] = set()
        self._known: OrderedDict[str, OriginState] = OrderedDict()

    def find(self, authority: str, uri: str) -> OriginState:
        """Return the origin of the authority of ``uri``."""
        name = addresses.origin_of(authority)
        if name is None:
            raise SourceRefusedError("the port is invalid", uri=uri, code="uri")
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._create(name, uri)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(name)
        return known

    def _create(self, name: str, uri: str) -> OriginState:
        settings, host = self._settings, addresses.host_of(name)
        patience = CircuitLimits(
            failures=max(_FAILURES_IN_A_ROW, settings.retries + 2),
            probes=max(1, settings.retries),
            first=settings.backoff,
            longest=settings.max_wait,
        )
        politeness = Politeness(
            RequestWindow(first=settings.first_window, ceiling=settings.per_host),
            CircuitBreaker(patience, self._random),
            interval=1 / settings.rate if settings.rate else 0.0,
            max_wait=settings.max_wait,
        )
        origin = OriginState(name, settings, politeness)
        if origin.private and settings.allow_private == "auto" and host == settings.source_host:
            was_public = self._known_origins.recall_reach(host)
            origin.learns_reach, origin.private = was_public is None, not was_public
        if addresses.is_address(host) and not origin.private and not addresses.is_public(host):
            raise http.transfer_errors.blocked_error(uri, host)
        if addresses.is_ambiguous_number(host):
            raise SourceRefusedError(
                "the host is a number that only a resolver reads as an address",
                uri=uri,
                evidence=(("tried", host),),
                code="egress",
            )
        remembered = None if settings.robots == "ignore" else self._known_origins.recall(name)
        if remembered is not None:
            read, good_for = remembered
            self.apply_rules(origin, parse_rules(read) if read else RobotsRules(), good_for)
            origin.is_recalled = True
        return origin

    def apply_rules(self, origin: OriginState, rules: RobotsRules, good_for: float) -> None:
        """Set the rules of an origin, which expire after some seconds."""
        origin.rules = rules
        origin.rules_until = self._clock.monotonic() + good_for
        if self._settings.robots != "ignore":
            is_free = rules.robots is None and rules.unread is None
            origin.free_until = origin.rules_until if is_free else -inf
        if rules.delay:
            origin.politeness.slow_to(rules.delay)
        if rules.requested_delay > max(rules.delay, 1 / (self._settings.rate or 1.0)):
            name = origin.name
            if name not in self._shortened and len(self._shortened) < _MOST_SHORTENED:
                self._shortened.add(name)
                self._on_shortened(name, rules.requested_delay)

    def learn_reach(self, origin: OriginState, address: str) -> None:
        """Record the address that the name of an origin led to first: once public, for ever so."""
        host, reached = addresses.host_of(origin.name), addresses.is_public(address)
        self._known_origins.remember_reach(host, is_public=reached)
        for other in self._known.values():
            if other.learns_reach and addresses.host_of(other.name) == host:
                other.learns_reach, other.private = False, not reached

    def store_rules(self, origin: OriginState, rules: RobotsRules, read: bytes) -> None:
        """Set the rules that were just read, and store their bytes."""
        origin.is_recalled = False
        if rules.unread is not None:
            self.apply_rules(origin, rules, self._settings.max_wait)
            return
        self.apply_rules(origin, rules, RULES_LIFETIME)
        self._known_origins.remember(origin.name, b"" if rules.robots is None else read)


class OriginQueue:
    """A queue of requests to one origin.

    ``peak`` is the transfers in progress once the last requests were sent: answers come many at a
    time. ``awaits_rules`` is true while ``robots.txt`` is being fetched.
    """

    def __init__(self, origin: OriginState) -> None:
        self.origin = origin
        self.in_flight = self.peak = 0
        self.awaits_rules = False
        self._urgent: list[tuple[float, int, RequestState]] = []
        self._queue: deque[RequestState] = deque()
        self.add = self._queue.append
        self._later: list[tuple[float, int, RequestState]] = []
        self._order = count()

    def add_retry(self, errand: RequestState, moment: float) -> None:
        """Queue a retry before all new requests, to start at ``moment`` in seconds of the clock."""
        waiting = self._urgent if errand.for_robots else self._later
        heappush(waiting, (moment, next(self._order), errand))

    def pop(self, now: float) -> RequestState | None:
        """Return the next request that may start, ``None`` if there is none now.

        While the rules are being fetched, that can only be the request for the rules.
        """
        if self._urgent and self._urgent[0][0] <= now:
            return heappop(self._urgent)[2]
        if self.awaits_rules:
            return None
        if self._later and self._later[0][0] <= now:
            return heappop(self._later)[2]
        return self._queue.popleft() if self._queue else None

    def pop_all(self) -> list[RequestState]:
        """Return all waiting requests, those for rules first."""
        waiting = [errand for _, _, errand in (*self._urgent, *self._later)]
        waiting.extend(self._queue)
        self._urgent.clear()
        self._later.clear()
        self._queue.clear()
        return waiting

    @property
    def idle(self) -> bool:
        """True if no request waits and none is in progress."""
        return not (
            self.in_flight or self.awaits_rules or self._queue or self._later or self._urgent
        )

    def wake_at(self) -> float | None:
        """Return the time at which a request may start, ``None`` if it does not depend on time."""
        politeness = self.origin.politeness
        if self.in_flight >= politeness.allowance:
            return None
        heaps = [self._urgent] if self.awaits_rules else [self._urgent, self._later]
        due = [heap[0][0] for heap in heaps if heap]
        if self._queue and not self.awaits_rules:
            due.append(-inf)
        return max(min(due), politeness.not_before) if due else None
