"""A run, from its beginning to what the mirror remembers of it.

Notice that this machine's clock and the Source's are far apart, by the ``Date`` of its answers.

A mirror believes no time that is a day ahead of its own clock. Where that clock is wrong, the times
of the lists say nothing, and nobody can call the mirror in sync.
"""

import secrets
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from resourcesync.destination.options import Dependencies
from resourcesync.destination.reports import FailedRun, RunReport
from resourcesync.destination.reports import MirrorState as Word
from resourcesync.destination.sync_state import SyncState
from resourcesync.errors import ResourceSyncError
from resourcesync.model.timestamps import to_microseconds
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
from resourcesync.ports.mirror import RunRow

_MAX_MESSAGE: Final = 2_000


class MirrorRun:
    """One run that may write to the mirror; it begins when it is made.

    Args:
        equipment: What it works with.

    Attributes:
        id: Its id.
    """

    def __init__(self, equipment: Dependencies) -> None:
        self._dependencies = equipment
        self._began_at = to_microseconds(equipment.clock.now())
        self._started_monotonic = equipment.clock.monotonic()
        self.id = new_run_id()

    def with_duration(self, report: RunReport) -> RunReport:
        """Return its report with how long it took."""
        return replace(
            report, seconds=self._dependencies.clock.monotonic() - self._started_monotonic
        )

    def record(self, report: RunReport, mode: str) -> None:
        """Write down how it ended.

        A mirror that is in sync is so up to the moment when the run began to ask: what the Source
        published later is not known here.
        """
        counts = msgspec.json.encode(replace(report, failures=())).decode()
        word = report.state
        outcome = "ok" if word is Word.IN_SYNC else report.spent or word.value
        is_proven = word is Word.IN_SYNC and not report.spent
        self._close(mode, outcome, counts, word, in_sync_at=self._began_at if is_proven else None)

    def record_failure(self, error: BaseException) -> None:
        """Write down that it could not go on, and why."""
        failed = failed_run(error)
        counts = msgspec.json.encode(failed).decode()
        self._close("", failed.code, counts, Word.FAILING)

    def _close(
        self, mode: str, outcome: str, counts: str, word: Word, *, in_sync_at: int | None = None
    ) -> None:
        ended = to_microseconds(self._dependencies.clock.now())
        began, state = self._began_at, self._dependencies.state
        row = RunRow(
            run=self.id, started=began, ended=ended, mode=mode, outcome=outcome, counts=counts
        )
        if word is Word.IN_SYNC:
            state.add_run(row)
            moved = "" if SyncState(state).moved_from else None  # it did move: there it is in sync
            SyncState(state).write(word=word, in_sync_at=in_sync_at, moved_from=moved)
        else:  # killed between the two, nobody may call it in sync
            SyncState(state).write(word=word)
            state.add_run(row)


def failed_run(error: BaseException) -> FailedRun:
    """Return what is remembered of a run that an error ended."""
    if not isinstance(error, ResourceSyncError):
        return FailedRun(code="interrupted")
    uri: str = getattr(error, "uri", "")
    of = f" ({uri})" if uri and uri not in error.message else ""
    return FailedRun(
        code=error.code,
        kind=type(error).__name__,
        message=f"{error.message}{of}"[:_MAX_MESSAGE],
        hint=error.hint[:_MAX_MESSAGE],
    )


def read_failed(row: RunRow | None) -> FailedRun | None:
    """Return why a run could not go on; ``None`` for one that came to its end."""
    if row is None or row.mode or row.outcome == "ok":
        return None
    try:
        return msgspec.json.decode(row.counts, type=FailedRun)
    except msgspec.MsgspecError:  # written by a version that knew the code only
        return FailedRun(code=row.outcome)


def new_run_id() -> str:
    """Return the id of a run."""
    return secrets.token_hex(6)


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
