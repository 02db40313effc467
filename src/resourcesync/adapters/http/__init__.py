"""Fetching over HTTP with libcurl: one loop, no thread per connection, polite and bounded.

``CurlFetcher`` has the port's methods, and the state that lasts from one call to the next;
``StreamRun`` is one ``stream``: a body without an end, passed on as it arrives. What only some
transfers need is imported at its first use.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

from resourcesync import export_lazily, ports
from resourcesync.adapters.http.curl_engine import CurlEngine
from resourcesync.adapters.http.origins import OnShortened, Origins
from resourcesync.adapters.http.politeness import KnownOrigins
from resourcesync.adapters.http.settings import FetchSettings, check_authorities
from resourcesync.adapters.http.transfer_run import FetchOutcome, TransferCounts, TransferRun
from resourcesync.errors import SourceError

if TYPE_CHECKING:
    from resourcesync.adapters.http import redirects, resuming, transfer_errors, unmarked_ends
    from resourcesync.model import content_codings

__all__ = [
    "CurlFetcher",
    "FetchSettings",
    "FetchStats",
    "content_codings",
    "redirects",
    "resuming",
    "transfer_errors",
    "unmarked_ends",
]
_RARE = dict.fromkeys(
    ("redirects", "resuming", "transfer_errors", "unmarked_ends"), "adapters.http"
)
_RARE["content_codings"] = "model"
__getattr__, __dir__ = export_lazily(
    __name__, {name: f"{home}.{name}:" for name, home in _RARE.items()}
)

MAX_TURN_SECONDS = 0.1
"""The longest time of one turn of the loop, in seconds."""


class StreamSink:
    """A sink that stores the bytes since the last call of ``take``."""

    def __init__(self) -> None:
        self.has_begun = False
        self._chunks: list[bytes] = []

    def begin(self, _validator: str) -> None:
        """Record that the body begins."""
        self.has_begun = True

    def write(self, chunk: bytes) -> None:
        """Store the next bytes."""
        self._chunks.append(chunk)

    def restart(self) -> None:
        """Do nothing: a stream has one try, so no bytes came before."""

    def take(self) -> bytes:
        """Return the bytes since the last call."""
        taken = b"".join(self._chunks)
        self._chunks.clear()
        return taken


class StreamRun(TransferRun):
    """The state of one ``stream``."""

    def turns(self, request: ports.FetchRequest) -> Generator[FetchOutcome | None, None, None]:
        """Carry out one request; yield ``None`` after each turn of the loop, then the outcome."""
        self._nap = min(self._nap, MAX_TURN_SECONDS)
        self._accept_requests(iter((request,)))
        with self._lend() as self._engine:
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
        yield self._done.pop()


class FetchStats(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of a fetcher; redirects, retries and ``robots.txt`` are requests too.

    ``wait`` is the seconds that a server still asks to wait (429, 503): 0 when that is over,
    ``None`` if none ever did. ``certificate_until`` is the end of the first certificate of the
    servers of the lists; ``None`` without TLS.
    """

    requests: int
    received: int  # bytes, heads of responses included
    wait: float | None = None
    certificate_until: datetime | None = None


_NO_KNOWN_ORIGINS: Final = KnownOrigins()


class CurlFetcher:
    """A fetcher by libcurl: many transfers in one loop, in the thread that iterates.

    Connections and the state of each origin last from one ``fetch`` to the next. A ``fetch`` may
    begin while another one is in progress, in the same thread; a fetcher is not for several
    threads at once.
    """

    def __init__(
        self,
        settings: FetchSettings,
        clock: ports.Clock,
        random: Random,
        known_origins: KnownOrigins = _NO_KNOWN_ORIGINS,
        on_shortened: OnShortened = lambda _name, _asked: None,
        cancel: ports.CancelToken | None = None,
    ) -> None:
        if _may_need_authorities(settings):
            check_authorities(settings.ca_file)
        self._settings, self._clock = settings, clock
        origins = Origins(settings, random, clock, known_origins, on_shortened)
        self._cancel = cancel or ports.CancelToken(clock)
        self._engines: list[CurlEngine] = []
        self._counts = TransferCounts()
        self._parts = settings, clock, random, origins

    def fetch(self, requests: Iterable[ports.FetchRequest | None]) -> ports.Outcomes:
        """Carry out the requests; yield each outcome as it comes, in no order.

        At most ``jobs`` requests and a few more are read ahead of their outcomes. Time that the
        caller takes between two outcomes is not counted against any server. ``None`` in place of a
        request means that there is none for the moment: the iterator is polled again soon, while
        other requests are in flight.
        """
        return TransferRun(*self._parts, self._engine, self._counts).outcomes(iter(requests))

    def stream(
        self, uri: str, fields: tuple[tuple[str, str], ...]
    ) -> Generator[bytes, None, ports.FetchResponse]:
        """Yield the bytes of a 200 response as they arrive; return the response when it ends."""
        sink = StreamSink()
        request = ports.FetchRequest(
            uri=uri, sink=sink, purpose=ports.Purpose.STREAM, fields=fields, on_start=sink.begin
        )
        with closing(StreamRun(*self._parts, self._engine, self._counts).turns(request)) as turns:
            for outcome in turns:
                if sink.has_begun:
                    yield sink.take()
                if isinstance(outcome, ports.FetchFailure):
                    raise outcome.error
                if outcome is not None:
                    return outcome
        raise AssertionError("a request has an outcome")

    @contextmanager
    def _engine(self) -> Iterator[CurlEngine]:
        engine = self._engines.pop() if self._engines else CurlEngine(self._settings, self._cancel)
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
        """The totals so far."""
        counts, quiet = self._counts, self._counts.quiet_until
        wait = None if quiet is None else max(0.0, quiet - self._clock.monotonic())
        return FetchStats(
            requests=counts.requests,
            received=counts.received,
            wait=wait,
            certificate_until=counts.certificate_until(),
        )

    def close(self) -> None:
        """Close all connections."""
        while self._engines:
            self._engines.pop().close()


def _may_need_authorities(settings: FetchSettings) -> bool:
    """True if TLS is expected: reading a file of authorities takes a tenth of a second."""
    named = (settings.proxies.http, settings.proxies.https, *settings.trusted_origins)
    return not settings.trusted_origins or any(name.startswith("https:") for name in named)
