"""The fetcher: the port's methods, and the state that lasts from one call to the next.

``StreamRun`` is one ``stream``: a body without an end, passed on as it arrives.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Final

from resourcesync.adapters.http.certificate_authorities import check_authorities
from resourcesync.adapters.http.curl_engine import CurlEngine
from resourcesync.adapters.http.origins import OnShortened, Origins
from resourcesync.adapters.http.robots import KnownRules, NoKnownRules
from resourcesync.adapters.http.settings import FetchSettings
from resourcesync.adapters.http.transfer_run import FetchOutcome, TransferCounts, TransferRun
from resourcesync.errors import SourceError
from resourcesync.ports import Clock, FetchFailure, FetchRequest, FetchResponse, Purpose

_TURN = 0.1
"""Seconds that a turn of the loop takes at most."""


class StreamSink:
    """A sink that keeps what came since the last look.

    Attributes:
        has_begun: Whether the answer is there that was asked for.
    """

    def __init__(self) -> None:
        self.has_begun = False
        self._chunks: list[bytes] = []

    def begin(self, _validator: str) -> None:
        """Take note that the body begins."""
        self.has_begun = True

    def write(self, chunk: bytes) -> None:
        """Keep the next bytes."""
        self._chunks.append(chunk)

    def restart(self) -> None:
        """Do nothing: a stream is tried once, so nothing came before."""

    def take(self) -> bytes:
        """Return what came since the last time."""
        taken = b"".join(self._chunks)
        self._chunks.clear()
        return taken


class StreamRun(TransferRun):
    """The state of one ``stream``."""

    def turns(self, request: FetchRequest) -> Iterator[FetchOutcome | None]:
        """Carry out one request; yield ``None`` after each turn of the loop, then the outcome."""
        self._nap = min(self._nap, _TURN)
        self._accept_requests(iter((request,)))
        while not self._done:
            now = self._clock.monotonic()
            self._start(now)
            if self._engine.active:
                self._drive(now)
            if self._done:
                break
            self._resumed_at = self._clock.monotonic()
            yield None
            now = self._clock.monotonic()
            self._exclude_caller_time(now)
            self._wait(now)
        yield self._done.popleft()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStats:
    """What a fetcher has done so far.

    Attributes:
        requests: Requests sent, with redirects, further tries and ``robots.txt``.
        received: Bytes received, heads of responses included.
        wait: Seconds for which a server still wants to be left alone; 0 when that is over, ``None``
            when none ever said so (429, 503).
    """

    requests: int
    received: int
    wait: float | None = None


_NO_KNOWN_RULES: Final = NoKnownRules()


class CurlFetcher:
    """Fetches with libcurl: many transfers in one loop, in the thread that iterates.

    Connections, and what is known of each origin, last from one ``fetch`` to the next. A ``fetch``
    may begin while another one is under way, in the same thread; a fetcher is not for several
    threads at once.

    Args:
        settings: Limits, manners and secrets.
        clock: Time.
        random: Where the jitter of back-off comes from.
        known_rules: Remembers what ``robots.txt`` said, from one fetcher to the next.
        on_shortened: Receives an origin whose ``robots.txt`` asks for more than 30 seconds between
            two requests, and what it asks for; they are not kept.

    Raises:
        ConfigurationError: The file of authorities cannot be used. It is not looked at where only
            plain http was named; what is asked for by https all the same then fails.
    """

    def __init__(
        self,
        settings: FetchSettings,
        clock: Clock,
        random: Random,
        known_rules: KnownRules = _NO_KNOWN_RULES,
        on_shortened: OnShortened = lambda _name, _asked: None,
    ) -> None:
        if _may_need_authorities(settings):
            check_authorities(settings.ca_file)
        self._settings = settings
        self._clock = clock
        self._random = random
        self._origins = Origins(settings, random, clock, known_rules, on_shortened)
        self._engines: list[CurlEngine] = []
        self._counts = TransferCounts()

    def fetch(
        self, requests: Iterable[FetchRequest | None]
    ) -> Iterator[FetchResponse | FetchFailure]:
        """Carry out the requests; yield each outcome as it comes, in no order.

        At most ``jobs`` requests and a few more are taken ahead of their outcomes. Time that the
        caller takes between two outcomes is not counted against any server. ``None`` in the place
        of a request means that there is none for the moment: it is asked for again soon, while
        others are in flight.
        """
        with self._engine() as engine:
            run = TransferRun(*self._parts(), engine, self._counts)
            yield from run.outcomes(iter(requests))

    def stream(
        self, uri: str, fields: tuple[tuple[str, str], ...]
    ) -> Generator[bytes, None, FetchResponse]:
        """Yield the bytes of a 200 answer as they come; return the answer when it ends.

        Raises:
            SourceError: There is no such answer, or it broke off.
        """
        sink = StreamSink()
        request = FetchRequest(
            uri=uri, sink=sink, purpose=Purpose.STREAM, fields=fields, on_start=sink.begin
        )
        with self._engine() as engine:
            run = StreamRun(*self._parts(), engine, self._counts)
            for outcome in run.turns(request):
                if sink.has_begun:
                    yield sink.take()
                if isinstance(outcome, FetchFailure):
                    raise outcome.error
                if outcome is not None:
                    return outcome
        raise AssertionError("a request has an outcome")

    def _parts(self) -> tuple[FetchSettings, Clock, Random, Origins]:
        return self._settings, self._clock, self._random, self._origins

    @contextmanager
    def _engine(self) -> Iterator[CurlEngine]:
        """Give an engine, and take it back for the next call unless something crashed."""
        engine = self._engines.pop() if self._engines else CurlEngine(self._settings, self._clock)
        sound = False
        try:
            yield engine
            sound = True
        except (GeneratorExit, SourceError):
            sound = True
            raise
        finally:
            if sound:
                engine.abort_all()
                self._engines.append(engine)
            else:
                engine.close()

    @property
    def stats(self) -> FetchStats:
        """What was done so far."""
        counts, quiet = self._counts, self._counts.quiet_until
        wait = None if quiet is None else max(0.0, quiet - self._clock.monotonic())
        return FetchStats(requests=counts.requests, received=counts.received, wait=wait)

    def close(self) -> None:
        """Close all connections."""
        while self._engines:
            self._engines.pop().close()


def _may_need_authorities(settings: FetchSettings) -> bool:
    """Whether TLS is to be expected: reading a file of authorities takes a tenth of a second."""
    named = (settings.proxy, *settings.trusted_origins)
    return not settings.trusted_origins or any(name.startswith("https:") for name in named)
