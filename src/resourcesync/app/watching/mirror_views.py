"""The recent past of a mirror for its page, from its own state: no lock, and nothing is written."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from resourcesync.app.mirrors import mirror_state
from resourcesync.destination.audits.reports import recorded_audits
from resourcesync.destination.reports import RunReport
from resourcesync.destination.status import read_failed
from resourcesync.mirror_state.rows import RunRow
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.server.dashboard.views import EndedPull, MirrorDetail, MirrorSummary, PendingCause

_SPAN: Final = timedelta(days=7)
_MOST_RUNS: Final = 1_000


def read_detail(folder: Path, summary: MirrorSummary, now: datetime) -> MirrorDetail:
    """Return a mirror with its pulls of the last 7 days, at most 1,000 of them."""
    if not mirror_state.is_mirror(folder):
        return MirrorDetail(summary=summary, now=now)
    with mirror_state.open_state(folder) as state:
        return MirrorDetail(
            summary=summary,
            now=now,
            runs=tuple(map(_ended_pull, state.runs(to_microseconds(now - _SPAN), _MOST_RUNS))),
            causes=tuple(PendingCause(*cause) for cause in state.causes()),
            audits=recorded_audits(state)[::-1],
        )


def _ended_pull(row: RunRow) -> EndedPull:
    report = None
    if row.mode:
        try:
            report = msgspec.json.decode(row.counts, type=RunReport)
        except msgspec.MsgspecError:  # the row is damaged
            report = None
    return EndedPull(
        started=from_microseconds(row.started),
        ended=from_microseconds(row.ended),
        outcome=row.outcome,
        report=report,
        failed=read_failed(row),
    )
