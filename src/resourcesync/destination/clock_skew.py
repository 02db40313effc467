"""Skew of this machine's clock, by the ``Date`` of the Source's answers, and what it disproves.

A mirror accepts no time that is a day ahead of its own clock. If that clock is wrong, the times of
the lists prove nothing, and the mirror cannot be called in sync.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from typing import Final

from resourcesync.model.formatting import span
from resourcesync.model.timestamps import from_microseconds
from resourcesync.ports import Clock, Fetcher, FetchRequest, FetchResponse, Outcomes, Purpose
from resourcesync.ports.validators_and_dates import served_at

REPORTED_SKEW: Final = timedelta(hours=1)
"""Smallest skew that is reported."""
MAX_SKEW: Final = timedelta(days=1)
"""Smallest skew with which no time in a list can be trusted."""
_MAX_SPREAD: Final = timedelta(minutes=10)
_NO_SKEW: Final = timedelta()


class SkewMeasuringFetcher:
    """`Fetcher` that compares the clocks of servers with this machine's.

    Only answers made for the request itself count: a cache keeps the original date.
    """

    def __init__(self, fetcher: Fetcher, clock: Clock) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._skews: tuple[timedelta, timedelta] | None = None

    def fetch(self, requests: Iterable[FetchRequest]) -> Outcomes:
        """Execute the requests; yield each outcome as it comes."""
        sent: dict[FetchRequest, datetime] = {}
        with closing(self._fetcher.fetch(self._record_sent(requests, sent))) as outcomes:
            for outcome in outcomes:
                moment = sent.pop(outcome.request, None)
                if moment is not None and isinstance(outcome, FetchResponse):
                    self._compare(moment, outcome)
                yield outcome

    def reset(self) -> None:
        """Discard all measurements: a run begins."""
        self._skews = None

    @property
    def skew(self) -> timedelta:
        """Time by which this clock is ahead (negative: behind); 0 if the answers disagree."""
        if self._skews is None:
            return _NO_SKEW
        least, most = self._skews
        return _NO_SKEW if most - least > _MAX_SPREAD else min(least, most, key=abs)

    def _record_sent(
        self, requests: Iterable[FetchRequest], sent: dict[FetchRequest, datetime]
    ) -> Iterator[FetchRequest]:
        for request in requests:
            if request.purpose is not Purpose.RESOURCE:
                sent[request] = self._clock.now()
            yield request

    def _compare(self, sent: datetime, answer: FetchResponse) -> None:
        served, age = served_at(answer.headers), answer.headers.get("age", "0")
        if served is None or age.strip() != "0":
            return
        moment = from_microseconds(served)
        skew = max(sent - moment, _NO_SKEW) or min(self._clock.now() - moment, _NO_SKEW)
        least, most = self._skews or (skew, skew)
        self._skews = min(least, skew), max(most, skew)


def describe_skew(skew: timedelta) -> str:
    """Return the warning about the skew of this machine's clock."""
    way = "ahead of" if skew > _NO_SKEW else "behind"
    return f"this machine's clock is {span(abs(skew).total_seconds())} {way} the Source's"


def is_clock_wrong(skew: timedelta, listed_at: datetime | None, now: datetime) -> bool:
    """True if no time in a list can be trusted, by this clock.

    Lists of today, as of ``listed_at``, agree with it: then the server's clock is wrong.
    """
    is_right = listed_at is not None and abs(now - listed_at) <= MAX_SKEW
    return abs(skew) >= MAX_SKEW and not is_right
