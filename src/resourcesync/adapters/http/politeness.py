"""Limits on the requests to one origin: window, pace, pauses, circuit breaker, robots.txt. Pure.

The caller passes every time, in seconds of a monotonic clock.
"""

from math import inf
from random import Random
from typing import TYPE_CHECKING

import msgspec

from resourcesync.errors import ResourceMissingError, SourceError, SourceRefusedError, StorageError
from resourcesync.ports import Purpose

if TYPE_CHECKING:
    from protego import Protego


LONGEST_BACKOFF = 900.0
"""Seconds between two probes of an origin that stays down."""

_NO_DISTRESS = 0.05
"""Seconds: a server that answers within this is not overloaded, however fast it was before."""

_DEGRADED = 3.0
"""Multiple of the shortest latency that means that requests queue."""


_REFUSALS = 5
"""Refusals in a row, each of one page, after which they count as the origin's."""

_FORGET = 1 / 1024
"""Decay of the shortest latency with each response: one lucky response does not count for ever."""


class RequestWindow:
    """The number of requests that may be in flight, adapted as TCP adapts its rate.

    It grows by one for each response, which doubles it in a round trip, until the ceiling, the
    first overload or longer latency; from then on by one in a round trip. Overload halves it.
    """

    def __init__(self, *, first: int, ceiling: int) -> None:
        self._ceiling = float(ceiling)
        self.size = min(first, ceiling)
        """Requests that may be in flight; at least 1, never more than the ceiling."""
        self._size = float(self.size)
        self._fast_below = inf
        self._cut_at = -inf
        self._shortest = 0.0
        self._smooth = 0.0

    def record_answer(self, latency: float | None, in_flight: int) -> None:
        """Record a response: seconds to its first byte (if known), and those in flight with it."""
        if latency is not None:
            share = 1 / 8 if self._smooth else 1.0
            known = self._shortest or latency
            self._smooth += (latency - self._smooth) * share
            known += (self._smooth - known) * _FORGET
            self._shortest = min(known, latency)
        if self._size >= self._ceiling or in_flight * 2 < self._size:
            return
        if self._smooth > _NO_DISTRESS and self._smooth > _DEGRADED * self._shortest:
            self._fast_below = min(self._fast_below, self._size)
            return
        grown = self._size + (1.0 if self._size < self._fast_below else 1.0 / self._size)
        self._size = min(self._ceiling, grown)
        self.size = int(self._size)

    def record_trouble(self, now: float, started: float) -> None:
        """Halve the window, but once only for all requests that were in flight together."""
        if started < self._cut_at:
            return
        self._cut_at = now
        self._size = max(1.0, self._size / 2)
        self.size = int(self._size)
        self._fast_below = self._size


def decorrelated(random: Random, first: float, previous: float, longest: float) -> float:
    """Return the next back-off: between ``first`` and three times the previous one."""
    return min(longest, random.uniform(first, max(first, previous * 3)))


class CircuitLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits after which an origin counts as down."""

    failures: int  # in a row that open the circuit
    probes: int  # in a row that may fail before all requests fail at once
    first: float  # seconds before the first probe; later ones wait longer
    longest: float  # pause in seconds before a probe for which requests wait


class CircuitBreaker:
    """A circuit breaker: stops requests to an origin that is down, and probes for its return.

    An origin that never answered gets one probe, so a wrong name or a dead host is reported soon.
    It is ``settled`` if the last outcome was a response: another one changes nothing.
    """

    def __init__(self, patience: CircuitLimits, random: Random) -> None:
        self._patience = patience
        self._random = random
        self._failures = 0
        self._missed = 0
        self._delay = 0.0
        self._met = False
        self.settled = False
        self.open = False
        self.until = -inf

    @property
    def away(self) -> bool:
        """True if requests should fail at once rather than wait for the next probe."""
        probes = self._patience.probes if self._met else 1
        return self.open and (self._missed >= probes or self._delay > self._patience.longest)

    def record_answer(self) -> bool:
        """Record a response that is not a failure; return whether that closes the circuit."""
        self._met = self.settled = True
        self._failures = 0
        if not self.open:
            return False
        self._missed = 0
        self._delay = 0.0
        self.open = False
        self.until = -inf
        return True

    def record_failure(self, now: float, *, probe: bool, answered: bool) -> None:
        """Record a temporary failure; ``answered`` if there was an HTTP response."""
        self._met = self._met or answered
        self.settled = False
        if self.open:
            if probe:
                self._missed += 1
                self._wait(now)
            return
        self._failures += 1
        if self._failures >= (self._patience.failures if self._met else 1):
            self.open = True
            self._wait(now)

    def _wait(self, now: float) -> None:
        first = max(self._patience.first, self._delay)  # never sooner than the last time
        self._delay = decorrelated(self._random, first, self._delay, LONGEST_BACKOFF)
        self.until = now + self._delay


class Politeness:
    """All limits on the requests to one origin.

    No request may start before ``not_before``; ``interval`` is the seconds between two of them, and
    ``allowance`` the number that may be in flight now.
    """

    def __init__(
        self, window: RequestWindow, circuit: CircuitBreaker, *, interval: float, max_wait: float
    ) -> None:
        self._window = window
        self.circuit = circuit
        self.interval = interval
        self._max_wait = max_wait
        self._waited = 0.0
        self._refusals = 0
        self._paused_until = -inf
        self._next = -inf
        self._alone = False
        self.not_before = -inf
        self.allowance = window.size

    def slow_to(self, interval: float) -> None:
        """Leave ``interval`` seconds between two requests and send one at a time."""
        self.interval = max(self.interval, interval)
        self._alone = True
        self.allowance = 1

    def must_fail(self, now: float) -> bool:
        """True if requests should fail at once: the origin is down, or asks for too long a wait."""
        if now < self.circuit.until and self.circuit.away:
            return True
        left = self._paused_until - now
        return left > 0 and max(left, self._waited) > self._max_wait

    def wait_left(self, now: float) -> float | None:
        """Return the seconds that the origin still asks to wait, or ``None``."""
        return self._paused_until - now if self._paused_until > now else None

    def record_start(self, now: float) -> None:
        """Record that a request is sent."""
        if self.interval:
            self._next = max(now, self._next) + self.interval
            self._update()

    def record_answer(self, latency: float | None, in_flight: int) -> None:
        """Record a response, whatever its status."""
        self._waited = 0.0
        self._refusals = 0
        self._window.record_answer(latency, in_flight)
        if not self.circuit.settled and self.circuit.record_answer():
            self._update()
        elif not self._alone:
            self.allowance = self._window.size

    def record_overload(self, now: float, started: float) -> None:
        """Record a sign of overload, from a request sent at ``started``."""
        self._window.record_trouble(now, started)
        self._update()

    def record_pushback(self, now: float, wait: float, *, of_page: bool) -> bool:
        """Record that the origin refuses a request for some time; return whether it refuses all.

        It does after some in a row, also if each is ``of_page``. Waits add up while no response
        comes between; past the longest, ``must_fail`` turns true.
        """
        self._refusals += 1
        if of_page and self._refusals < _REFUSALS:
            return False
        if now + wait <= self._paused_until:
            return True
        self._waited += wait
        self._paused_until = now + wait
        self._update()
        return True

    def record_failure(self, now: float, *, probe: bool, answered: bool) -> None:
        """Record a temporary failure."""
        self.circuit.record_failure(now, probe=probe, answered=answered)
        self._update()

    def _update(self) -> None:
        self.not_before = max(self._next, self._paused_until, self.circuit.until)
        self.allowance = 1 if self._alone or self.circuit.open else self._window.size


AGENT = "resourcesync"
"""The product token: the name in rules for this package."""

NO_LIMIT = 1 << 62
"""Bytes: the sink itself stops the reading, see ``EnoughReadError``."""

READ_AT_MOST = 500 * 1024
"""Bytes of a ``robots.txt`` that are read; the rest is ignored (§2.5)."""

RULES_LIFETIME = 86_400.0
"""Seconds after which the rules expire (§2.4)."""

LONGEST_DELAY = 30.0
"""The longest delay between two requests that is obeyed, in seconds."""

_UNBOUND = (Purpose.DOCUMENT, Purpose.RESOURCE)


class KnownOrigins:
    """What is known of origins from one run to the next: ``robots.txt`` (§2.4), and addresses.

    This class stores nothing; see its subclasses.
    """

    def recall(self, origin: str) -> tuple[bytes, float] | None:
        """Return the stored bytes, and the seconds until they expire; ``None`` for none."""
        del origin
        return None

    def remember(self, origin: str, read: bytes) -> None:
        """Store the bytes read just now."""

    def recall_reach(self, host: str) -> bool | None:
        """Return whether a name first led to a public address; ``None`` if it is not known."""
        del host
        return None

    def remember_reach(self, host: str, *, is_public: bool) -> None:
        """Store where a name led first."""


class EnoughReadError(StorageError):
    """The part of a ``robots.txt`` that is read is complete; the rest is not fetched."""


class RobotsSink:
    """A sink for the part of a ``robots.txt`` that is read."""

    def __init__(self) -> None:
        self.content = bytearray()

    def write(self, chunk: bytes) -> None:
        """Store the next bytes."""
        self.content += chunk[: READ_AT_MOST - len(self.content)]
        if len(self.content) == READ_AT_MOST:
            raise EnoughReadError("the rest of robots.txt is not read")

    def restart(self) -> None:
        """Discard all bytes so far."""
        self.content.clear()


class RobotsRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one origin; without ``robots`` there are none.

    ``unread`` is why the file could not be fetched: discovery must then not guess.
    """

    robots: "Protego | None" = None
    unread: SourceError | None = None
    requested_delay: float = 0.0  # seconds between two requests; 0 for none

    @property
    def delay(self) -> float:
        """Seconds to leave between two requests: those in the file, at most 30."""
        return min(self.requested_delay, LONGEST_DELAY)

    def refusal(self, uri: str, purpose: Purpose) -> SourceError | None:
        """Return why a URI must not be fetched, or ``None`` when it may."""
        if self.robots is not None and not self.robots.can_fetch(uri, AGENT):
            return SourceRefusedError(
                "robots.txt disallows it",
                uri=uri,
                hint="if the site's owner agrees, ignore its robots.txt: -o robots=ignore",
                code="robots",
            )
        return None if purpose in _UNBOUND else self.unread


def parse_rules(body: bytes) -> RobotsRules:
    """Return the rules in a ``robots.txt``; invalid lines are ignored."""
    from protego import Protego  # noqa: PLC0415 - many sites have no rules

    robots = Protego.parse(body.decode("utf-8-sig", "replace").replace("\0", ""))
    asked = robots.crawl_delay(AGENT) or 0.0
    return RobotsRules(robots=robots, requested_delay=asked if 0 < asked < inf else 0.0)


def rules_after_failure(error: SourceError | StorageError, read: bytes) -> RobotsRules:
    """Return the rules if ``robots.txt`` was not fetched completely.

    A missing (4xx) or unusable file has no rules. An overlong one is read up to the limit. One
    that is unavailable now (5xx, no response) stops discovery only, since the URIs in a list are
    meant to be fetched.
    """
    if isinstance(error, StorageError):
        return parse_rules(read)
    if isinstance(error, ResourceMissingError):
        return RobotsRules()
    if 400 <= error.status < 500 and not error.transient:  # noqa: PLR2004
        return RobotsRules()
    return RobotsRules(unread=error)
