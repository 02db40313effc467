"""Runs: their record in the mirror's state, and the clock check of this machine.

A mirror accepts no time that is a day ahead of its own clock. If that clock is wrong, by the
``Date`` of the Source's answers, the times of the lists prove nothing, and the mirror cannot be
called in sync.
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
    """Run that may write to the mirror; it begins with this object.

    Args:
        equipment: Dependencies.

    Attributes:
        id: Its id.
    """

    def __init__(self, equipment: Dependencies) -> None:
        self._dependencies = equipment
        self._began_at = to_microseconds(equipment.clock.now())
        self._started_monotonic = equipment.clock.monotonic()
        self.id = new_run_id()

    def with_duration(self, report: RunReport) -> RunReport:
        """Return the report with the duration of the run."""
        return replace(
            report, seconds=self._dependencies.clock.monotonic() - self._started_monotonic
        )

    def record(self, report: RunReport, mode: str) -> None:
        """Record the outcome of the run.

        A mirror that is in sync is so up to the start of the run: what the Source published later
        is unknown.
        """
        counts = msgspec.json.encode(replace(report, failures=())).decode()
        word = report.state
        outcome = "ok" if word is Word.IN_SYNC else report.spent or word.value
        is_proven = word is Word.IN_SYNC and not report.spent
        self._close(mode, outcome, counts, word, in_sync_at=self._began_at if is_proven else None)

    def record_failure(self, error: BaseException) -> None:
        """Record the error that ended the run."""
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
            moved = "" if SyncState(state).moved_from else None  # the move is complete
            SyncState(state).write(word=word, in_sync_at=in_sync_at, moved_from=moved)
        else:  # after a kill between the two it must not count as in sync
            SyncState(state).write(word=word)
            state.add_run(row)


def failed_run(error: BaseException) -> FailedRun:
    """Return the record of a run that an error ended."""
    if not isinstance(error, ResourceSyncError):
        return FailedRun(code="interrupted")
    uri: str = getattr(error, "uri", "")
    of = f" ({uri})" if uri and uri not in error.message else ""
    return FailedRun(
        code=error.code,
        kind=type(error).__name__,
        message=f"{error.message}{of}"[:_MAX_MESSAGE],
        hint=error.hint[:_MAX_MESSAGE],
        remedy=error.remedy,
    )


def read_failed(row: RunRow | None) -> FailedRun | None:
    """Return the error that ended a run; ``None`` if it completed."""
    if row is None or row.mode or row.outcome == "ok":
        return None
    try:
        return msgspec.json.decode(row.counts, type=FailedRun)
    except msgspec.MsgspecError:  # written by a version that stored the code only
        return FailedRun(code=row.outcome)


def new_run_id() -> str:
    """Return the id of a run."""
    return secrets.token_hex(6)


REPORTED_SKEW: Final = timedelta(hours=1)
"""Smallest skew that is reported."""
MAX_SKEW: Final = timedelta(days=1)
"""Smallest skew with which no time in a list can be trusted."""
_MAX_SPREAD: Final = timedelta(minutes=10)
_NO_SKEW: Final = timedelta()


class SkewMeasuringFetcher:
    """`Fetcher` that compares the clocks of servers with this machine's.

    Only answers made for the request itself count: a cache keeps the original date. A server that
    dates a document later than its own answer has no usable clock.

    Args:
        fetcher: The network.
        clock: This machine's clock.
    """

    def __init__(self, fetcher: Fetcher, clock: Clock) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._skews: tuple[timedelta, timedelta] | None = None

    def fetch(self, requests: Iterable[FetchRequest]) -> Iterator[FetchResponse | FetchFailure]:
        """Execute the requests; yield each outcome as it comes."""
        sent: dict[FetchRequest, datetime] = {}
        with closing(_closable(self._fetcher.fetch(self._record_sent(requests, sent)))) as outcomes:
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
        """Time by which this machine's clock is ahead, by all answers so far; negative: behind.

        Zero if the answers do not agree.
        """
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
        modified = age_when_served(answer.headers)
        is_false = modified is not None and modified < -MAX_SKEW.total_seconds()
        if served is None or age.strip() != "0" or is_false:
            return
        skew = max(sent - served, _NO_SKEW) or min(self._clock.now() - served, _NO_SKEW)
        least, most = self._skews or (skew, skew)
        self._skews = min(least, skew), max(most, skew)


def describe_skew(skew: timedelta) -> str:
    """Return the warning about the skew of this machine's clock."""
    way = "ahead of" if skew > _NO_SKEW else "behind"
    days, hours = abs(skew).days, abs(skew).seconds // 3_600
    amount = f"{days:,} days" if days > 1 else f"{24 * days + hours} h"
    return f"this machine's clock is {amount} {way} the Source's"


def _closable(
    outcomes: Iterator[FetchResponse | FetchFailure],
) -> Generator[FetchResponse | FetchFailure, None, None]:
    yield from outcomes
