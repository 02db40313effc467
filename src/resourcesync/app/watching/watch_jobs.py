"""Jobs of watching: the recent past of a mirror, from its own state; changes for a program."""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from resourcesync.adapters.consumer_programs import run_program
from resourcesync.adapters.mirror import own_folder
from resourcesync.app import mirror_home
from resourcesync.app.configured_pulls import PullTarget
from resourcesync.app.mirror_opening import open_mirror_folder
from resourcesync.destination.audits.reports import recorded_audits
from resourcesync.destination.reports import FailedRun, RunReport
from resourcesync.destination.runs import record_failed_run
from resourcesync.destination.sync_state import SyncState, read_failed
from resourcesync.errors import ConfigurationError, ResourceSyncError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import LoggedChange, RunRow
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.model.timestamps import SECOND, from_microseconds, to_microseconds
from resourcesync.ports import CancelToken, Clock
from resourcesync.server.dashboard import views
from resourcesync.watch.scheduler import MirrorHistory

ChangeLine = Callable[[LoggedChange, Callable[[str], str]], bytes]
"""Writes a change, with the function for present addresses, as a line."""

_LOG = logging.getLogger(__name__)
_SPAN: Final = timedelta(days=7)


def read_history(folder: Path) -> MirrorHistory:
    """Return what a mirror's own state has of its last pull and audit.

    Of a folder with a mirror for each set, the one that waits longest counts. Of a state that
    cannot be read, which each pull reports, only the pause is known.
    """
    is_paused = mirror_home.is_paused(folder)
    try:
        pasts = [_read_mirror_history(path) for path in mirror_home.pulled_mirrors(folder)]
    except ResourceSyncError:
        return MirrorHistory(is_paused=is_paused)
    return MirrorHistory(
        pulled=_earliest([past.pulled for past in pasts]),
        audited=_earliest([past.audited for past in pasts]),
        has_failed=any(past.has_failed for past in pasts),
        wait_until=max((past.wait_until for past in pasts), default=0.0),
        is_paused=is_paused,
    )


def record_failed_pull(
    target: PullTarget, failed: Mapping[str, FailedRun], began: datetime, clock: Clock
) -> None:
    """Record a failed pull in each mirror that has no record of it, so that none is in sync.

    A new mirror is made for it, if the configuration lets no pull begin, and it has no sets.
    """
    since, first = to_microseconds(began), failed.get("")
    is_single = not (target.place.all_sets or len(target.place.set_names) > 1)
    is_refused = first is not None and first.kind == ConfigurationError.__name__
    is_new = is_refused and is_single and not mirror_home.is_present(target.folder)
    for path in (target.folder,) if is_new else mirror_home.pulled_mirrors(target.folder):
        failure = failed.get(str(path), first)
        if failure is None or mirror_home.is_locked(path):
            continue  # a run that goes on will record its own end
        try:
            with ExitStack() as held:
                if is_new:
                    home = mirror_home.Home(path, target.store)
                    opened = open_mirror_folder(home, target.address, clock, is_expected=True)
                    state = held.enter_context(opened).state
                else:
                    file = path / OWN_FOLDER / own_folder.STATE_FILE
                    state = held.enter_context(SqliteMirrorState(file))
                last = state.last_run()
                if last is None or last.ended < since:
                    record_failed_run(failure, state, clock)
        except ResourceSyncError as error:  # a state that cannot be written; status reports damage
            _LOG.warning("the failed pull of %s cannot be recorded: %s", path, error)


def _read_mirror_history(folder: Path) -> MirrorHistory:
    last, audited = mirror_home.read_state(
        folder, lambda state: (state.last_run(), SyncState(state).audited_at)
    )
    failed = read_failed(last)
    is_cut = failed is not None and failed.is_stop
    is_cut |= own_folder.is_unfinished(folder) and not mirror_home.is_locked(folder)
    ended = 0.0 if last is None else last.ended / SECOND
    return MirrorHistory(
        pulled=None if is_cut or last is None else ended,  # None: due at once
        audited=None if audited is None else audited / SECOND,
        has_failed=failed is not None,
        wait_until=0.0 if failed is None else ended + (failed.retry_after or 0.0),
    )


def _earliest(moments: list[float | None]) -> float | None:
    known = [moment for moment in moments if moment is not None]
    return min(known, default=None) if len(known) == len(moments) else None


def read_detail(folder: Path, seen: views.MirrorDetail) -> views.MirrorDetail:
    """Return a mirror with its pulls of the last 7 days, at most 1,000 of them."""
    if not mirror_home.is_mirror(folder):
        return seen

    def read(state: SqliteMirrorState) -> views.MirrorDetail:
        runs = tuple(map(_ended_pull, state.runs(to_microseconds(seen.now - _SPAN))))
        return replace(
            seen,
            runs=(*(run for run in seen.runs if not runs or run.started > runs[0].ended), *runs),
            causes=tuple(state.causes()),
            audits=recorded_audits(state)[::-1],
        )

    return mirror_home.read_state(folder, read)


def _ended_pull(row: RunRow) -> views.EndedPull:
    report = None
    with suppress(msgspec.MsgspecError):  # the row is damaged
        report = msgspec.json.decode(row.counts, type=RunReport) if row.mode else None
    return views.EndedPull(
        started=from_microseconds(row.started),
        ended=from_microseconds(row.ended),
        outcome=row.outcome,
        report=report,
        failed=read_failed(row),
    )


def forward_changes(
    folder: Path, consumer: str, command: tuple[str, ...], line: ChangeLine, cancel: CancelToken
) -> tuple[int, int]:
    """Run a program when a mirror has changes for it; return their number, and its exit code.

    After exit code 0 it does not get them again, even if it did not read all of them.
    """
    with mirror_home.open_changes(folder) as opened:
        reader = opened.reader(consumer)
        before, present_uri = reader.position, opened.present_uris()
        count = 0

        def counted(change: LoggedChange) -> bytes:
            nonlocal count
            count += 1
            return line(change, present_uri)

        waiting = map(counted, reader.read_new())
        first = next(waiting, None)
        code = 0 if first is None else run_program(command, chain((first,), waiting), cancel)
        if not code:
            deque(waiting, maxlen=0)
            if reader.position is not None and reader.position != before:
                opened.consumers.acknowledge(consumer, reader.position)
    return count, code
