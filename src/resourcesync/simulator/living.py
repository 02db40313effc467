"""The Source of a scenario in real time, with all that the network does wrong on the way.

It is the Source of ``simulate``: what happens to it, and when, follows from the seed alone. Only
who asks, and when, does not.
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime
from html import escape
from math import inf
from typing import Final

from resourcesync.model import formatting
from resourcesync.simulator.clock import SimulatedClock
from resourcesync.simulator.network import STORM
from resourcesync.simulator.scenario import Faults, Scenario, Spans, is_within
from resourcesync.simulator.source import SimulatedAnswer, SimulatedSource
from resourcesync.source.plan import PublicationStep

PLAIN: Final = "text/plain; charset=utf-8"
PAGE: Final = "text/html; charset=utf-8"
MOMENT: Final = 1.0
"""Seconds: how much later a late answer comes, and how long nothing comes of a lost one."""
_MICROSECOND: Final = 1e-6
"""What is nearer than this is now: the clock has nothing between."""
NOT_PLAYED: Final = (
    *("crash", "crash_writing", "power_cut", "disk_full"),
    *("push_lost", "push_doubled", "push_forged"),
)
"""Faults that are those of a Destination, or of notifications, which nobody sends here."""
_EVERY_SECOND: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAnswer:
    """What is answered.

    Attributes:
        status: Of HTTP; 0 for nothing at all: the connection is closed.
        media_type: Of the body.
        body: The bytes.
        etag: Tells this body from others; empty for none.
        lastmod: When the resource changed; ``None`` for documents.
        wait: Seconds until it is sent.
    """

    status: int = 200
    media_type: str = PLAIN
    body: bytes = b""
    etag: str = ""
    lastmod: datetime | None = None
    wait: float = 0.0


class ScenarioSource:
    """Answers for the Source of a scenario, whose time passes as somebody says.

    It may be used by several threads.

    Args:
        scenario: What is simulated; after its duration nothing changes or goes wrong any more.
        base: The URI of the resources' root.
        clock: By which the Source lives.
        source: The Source.
        elapsed: Tells how many seconds should have passed for it since the beginning.
        stretch: As many seconds may pass, as ``elapsed`` tells, while what is due happens; then the
            rest waits for the next time, so that a slow machine still answers.
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
        """Let happen what is due by now, each at its own time."""
        with self._lock:
            self._advance()

    def stop(self) -> None:
        """Let nothing more happen: what is due stays so."""
        self._is_stopped = True

    def answer(self, path: str, *, uncached: bool = False) -> LiveAnswer:
        """Return what is at a path now, or what the network makes of it.

        Args:
            path: Below the root, without a slash at its beginning; empty for a page that tells
                what this is, to which nothing happens on the way.
            uncached: Whether caches are not to answer, which may have something older.
        """
        with self._lock:
            self._advance()
            if not path:
                return LiveAnswer(media_type=PAGE, body=self._page().encode())
            return self._answer(path, uncached=uncached)

    # --- time ---

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

    # --- the network ---

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
        """Return what comes of a body on the way; its length is told as it is then."""
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

    # --- what is told of it ---

    def _page(self) -> str:
        scenario, clock = self._scenario, self._clock
        life = f"{formatting.span(clock.elapsed)} of {formatting.span(scenario.duration)}"
        over = " All is over: nothing changes or goes wrong any more." if self._has_ended else ""
        played, left = _played(scenario.faults), _not_played(scenario)
        base = escape(self._base)
        return (
            "<!doctype html><title>A simulated Source</title><h1>A simulated Source</h1>"
            f"<p>It is {clock.now():%Y-%m-%d %H:%M:%S} UTC here, seed {scenario.seed}: {life}."
            f" {len(self._source.origin.versions):,} resources;"
            f" published {self._source.published:,} times.{over}</p>"
            f'<p><a href="{base}.well-known/resourcesync">Source Description</a></p>'
            f"<pre>resourcesync pull {base} ./copy</pre>"
            f"<p>What goes wrong: {', '.join(played) or 'nothing'}.</p>"
            + (f"<p>Not played over HTTP: {', '.join(left)}.</p>" if left else "")
        )


def _missing(wait: float = 0.0) -> LiveAnswer:
    return LiveAnswer(status=404, body=b"There is nothing here.\n", wait=wait)


def _played(faults: Faults) -> list[str]:
    named = [it.name for it in fields(faults) if getattr(faults, it.name)]
    return [name for name in named if name not in NOT_PLAYED]


def _not_played(scenario: Scenario) -> list[str]:
    """Return what a scenario says, and nobody sees here."""
    faults = [f"faults.{name}" for name in NOT_PLAYED if getattr(scenario.faults, name)]
    return [*(["publish.push"] if scenario.publish.push else []), *faults]
