"""One ``stream``: a body without an end, which the caller takes as it comes."""

from collections.abc import Iterator

from resourcesync.adapters.http.run import FetchOutcome, TransferRun
from resourcesync.ports import FetchRequest

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
