"""The Source of ``simulate`` in real time, for clients over HTTP, with the faults of its network.

Its events and their times follow from the seed alone, only the requests do not. Nothing waits: due
events happen at the next request.
"""

import random
import threading
from collections.abc import Callable
from datetime import datetime
from html import escape
from math import inf
from typing import Final

import msgspec

from resourcesync.model import formatting
from resourcesync.source.stored_plan import PublicationStep
from resourcesync_simulator.clock import SimulatedClock
from resourcesync_simulator.network import STORM
from resourcesync_simulator.scenario import Scenario, Spans, is_within
from resourcesync_simulator.source import SimulatedAnswer, SimulatedSource

PLAIN: Final = "text/plain; charset=utf-8"
PAGE: Final = "text/html; charset=utf-8"
MOMENT: Final = 1.0
"""Delay in seconds of a late answer, and duration of a lost one."""
_MICROSECOND: Final = 1e-6
"""Smallest interval that counts: the resolution of the clock."""
_EVERY_SECOND: Final = 0.5


class LiveAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer."""

    status: int = 200
    media_type: str = PLAIN
    body: bytes = b""
    etag: str = ""
    lastmod: datetime | None = None
    wait: float = 0.0


class ScenarioSource:
    """Answers for the Source of a scenario, whose time passes as its owner says.

    Thread-safe.
    """

    def __init__(
        self,
        scenario: Scenario,
        base: str,
        clock: SimulatedClock,
        source: SimulatedSource,
        elapsed: Callable[[], float],
        stretch: float = inf,
    ) -> None:
        self._scenario = scenario
        self._base = base
        self._clock = clock
        self._source = source
        self._elapsed = elapsed
        self._stretch = stretch
        self._random = random.Random(f"live network {scenario.seed}")  # noqa: S311 - a simulation
        self._lock = threading.Lock()
        self._is_stopped = False
        self._has_ended = False

    def advance(self) -> None:
        """Let due events happen, each at its own time."""
        with self._lock:
            self._advance()

    def stop(self) -> None:
        """Stop: due events do not happen any more."""
        self._is_stopped = True

    def answer(self, path: str, *, uncached: bool = False) -> LiveAnswer:
        """Return the answer for a path now, with the faults of the network."""
        with self._lock:
            self._advance()
            if not path:
                return LiveAnswer(media_type=PAGE, body=self._page().encode())
            return self._answer(path, uncached=uncached)

    def _advance(self) -> None:
        duration = self._scenario.duration
        now = self._elapsed()
        until = min(now, duration)
        while until - self._clock.elapsed > _MICROSECOND and not self._is_stopped:
            self._clock.pass_to_next(until)
            if self._elapsed() - now > self._stretch:
                return
        if duration - self._clock.elapsed <= _MICROSECOND and not self._has_ended:
            self._has_ended = True
            self._clock.cancel_all()
            self._source.stop_faults()
            self._source.publish(PublicationStep.REBASE)

    def _answer(self, path: str, *, uncached: bool) -> LiveAnswer:
        faults = self._scenario.faults
        if self._is_within(faults.outages) or self._happens(faults.lost):
            return LiveAnswer(status=0, wait=MOMENT)
        if self._is_within(faults.storms) and self._happens(_EVERY_SECOND):
            return LiveAnswer(status=self._random.choice(tuple(STORM)), body=b"There is a storm.\n")
        if self._happens(faults.failed):
            return LiveAnswer(status=503, body=b"The service is not available.\n")
        if self._happens(faults.refused):
            return _missing()
        wait = MOMENT if self._happens(faults.late) else 0.0
        is_stale = not uncached and self._happens(faults.stale)
        answer = self._source.answer(path, stale=is_stale)
        if answer is None:
            return _missing(wait)
        return LiveAnswer(
            media_type=answer.media_type,
            body=self._harmed(answer),
            etag=answer.etag,
            lastmod=answer.lastmod,
            wait=wait,
        )

    def _harmed(self, answer: SimulatedAnswer) -> bytes:
        """Return a body with the faults of its transfer; its length header fits it."""
        body, faults = answer.body, self._scenario.faults
        if body and self._happens(faults.cut):
            return body[: self._random.randrange(len(body))]
        if body and answer.lastmod is not None and self._happens(faults.altered):
            place = self._random.randrange(len(body))
            return body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
        return body * 2 if self._happens(faults.doubled) else body

    def _is_within(self, spans: Spans) -> bool:
        elapsed = self._clock.elapsed
        return not self._has_ended and is_within(elapsed, spans)

    def _happens(self, rate: float) -> bool:
        return rate > 0 and not self._has_ended and self._random.random() < rate

    def _page(self) -> str:
        scenario, clock = self._scenario, self._clock
        life = f"{formatting.span(clock.elapsed)} of {formatting.span(scenario.duration)}"
        over = " The scenario has ended: no more changes or faults." if self._has_ended else ""
        base = escape(self._base)
        return (
            "<!doctype html><title>A simulated Source</title><h1>A simulated Source</h1>"
            f"<p>Simulated time: {clock.now():%Y-%m-%d %H:%M:%S} UTC, seed {scenario.seed}: {life}."
            f" {len(self._source.origin.versions):,} resources;"
            f" published {self._source.published:,} times.{over}</p>"
            f'<p><a href="{base}.well-known/resourcesync">Source Description</a></p>'
            f"<pre>resourcesync pull {base} ./copy</pre>"
        )


def _missing(wait: float = 0.0) -> LiveAnswer:
    return LiveAnswer(status=404, body=b"Not found.\n", wait=wait)
