"""Notice that this machine's clock and the Source's are far apart, by the ``Date`` of its answers.

A mirror believes no time that is a day ahead of its own clock. Where that clock is wrong, the times
of the lists say nothing, and nobody can call the mirror in sync.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from typing import Final

from resourcesync.ports import (
    Clock,
    Fetcher,
    FetchFailure,
    FetchRequest,
    FetchResponse,
    Purpose,
    served_at,
)
from resourcesync.ports.fetcher import age_when_served

REPORTED_SKEW: Final = timedelta(hours=1)
"""A difference that is reported."""
MAX_SKEW: Final = timedelta(days=1)
"""A difference with which no time of the lists can be believed."""
_MAX_SPREAD: Final = timedelta(minutes=10)
_NO_SKEW: Final = timedelta()


class SkewMeasuringFetcher:
    """A ``Fetcher`` that compares the clock of those who answer with this machine's.

    Only documents count that were made for the very request: a cache dates an answer as it came.
    A server that dates something later than its own answer has no clock to compare with.

    Args:
        fetcher: The network.
        clock: This machine's.
    """

    def __init__(self, fetcher: Fetcher, clock: Clock) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._skews: tuple[timedelta, timedelta] | None = None

    def fetch(self, requests: Iterable[FetchRequest]) -> Iterator[FetchResponse | FetchFailure]:
        """Carry out the requests; yield each outcome as it comes."""
        sent: dict[FetchRequest, datetime] = {}
        with closing(_closable(self._fetcher.fetch(self._record_sent(requests, sent)))) as outcomes:
            for outcome in outcomes:
                moment = sent.pop(outcome.request, None)
                if moment is not None and isinstance(outcome, FetchResponse):
                    self._compare(moment, outcome)
                yield outcome

    def reset(self) -> None:
        """Forget all answers: a run begins."""
        self._skews = None

    @property
    def skew(self) -> timedelta:
        """How far this machine's clock is ahead, by all answers so far; negative: behind.

        Nothing where the answers do not agree.
        """
        if self._skews is None:
            return _NO_SKEW
        least, most = self._skews
        if most - least > _MAX_SPREAD:
            return _NO_SKEW
        return min(least, most, key=abs)

    def _record_sent(
        self, requests: Iterable[FetchRequest], sent: dict[FetchRequest, datetime]
    ) -> Iterator[FetchRequest]:
        for request in requests:
            if request.purpose is not Purpose.RESOURCE:
                sent[request] = self._clock.now()
            yield request

    def _compare(self, sent: datetime, answer: FetchResponse) -> None:
        served, age = served_at(answer.headers), answer.headers.get("age", "0")
        modified = age_when_served(answer.headers)
        is_false = modified is not None and modified < -MAX_SKEW.total_seconds()
        if served is None or age.strip() != "0" or is_false:
            return
        skew = max(sent - served, _NO_SKEW) or min(self._clock.now() - served, _NO_SKEW)
        least, most = self._skews or (skew, skew)
        self._skews = min(least, skew), max(most, skew)


def describe_skew(skew: timedelta) -> str:
    """Say how far this machine's clock and the Source's are apart."""
    way = "ahead of" if skew > _NO_SKEW else "behind"
    days, hours = abs(skew).days, abs(skew).seconds // 3_600
    amount = f"{days:,} days" if days > 1 else f"{24 * days + hours} h"
    return f"this machine's clock is {amount} {way} the Source's"


def _closable(
    outcomes: Iterator[FetchResponse | FetchFailure],
) -> Generator[FetchResponse | FetchFailure, None, None]:
    yield from outcomes
