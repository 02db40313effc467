"""Views of a mirror for the pages, from its own state; its files are inspected, never read.

No lock is taken, and nothing is written.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from resourcesync.adapters.mirror.open_folders import FolderCopyInspector
from resourcesync.adapters.mirror.own_folder import STATE_FILE
from resourcesync.app import plugins
from resourcesync.app.mirrors import mirror_state
from resourcesync.destination.audits.explain import Explanation, load_recorded
from resourcesync.destination.audits.reports import AuditRecord, recorded_audits
from resourcesync.destination.mapping.names import uris_at
from resourcesync.destination.path_assignment import owner_of
from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.destination.status import read_failed
from resourcesync.destination.sync_state import SyncState
from resourcesync.destination.transfers.installed_files import check_installed
from resourcesync.discovery.uris import read_address
from resourcesync.errors import OutOfScopeError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import MirrorChangeKind, PendingTask, RunRow
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.server.dashboard.timeline import pull_summary
from resourcesync.server.dashboard.views import (
    AppliedChange,
    AwaitedChange,
    EndedPull,
    EndedRun,
    ListSpan,
    MirrorActivity,
    MirrorDetail,
    MirrorSummary,
    PendingCause,
)

_MOST_RUNS: Final = 10_000
_MOST_CHANGES: Final = 20_000
_MOST_LISTS: Final = 2_000
_MOST_AWAITED: Final = 500
_HISTORY: Final = 50
_DAY: Final = timedelta(days=1)
_SHORTEST: Final = timedelta(minutes=1)


@contextmanager
def _open_state(folder: Path) -> Iterator[SqliteMirrorState]:
    """Open a mirror's state for reading."""
    if not mirror_state.is_mirror(folder):
        raise mirror_state.not_a_mirror_error(folder)
    with SqliteMirrorState(folder / OWN_FOLDER / STATE_FILE, read_only=True) as state:
        yield state


def read_activity(folder: Path, now: datetime, days: int) -> MirrorActivity:
    """Return the recent past of a mirror; the days are those of UTC, the last one is today.

    The copies of the first pull are no changes.
    """
    if not mirror_state.is_mirror(folder):
        return MirrorActivity(days=(0,) * days)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    width = _DAY // timedelta(microseconds=1)
    with _open_state(folder) as state:
        found = state.changes_by(to_microseconds(midnight - (days - 1) * _DAY), width)
        failing = state.failing_since()
    return MirrorActivity(
        days=tuple(found.get(day, 0) for day in range(days)), failing_since=_moment(failing)
    )


def _pending_cause(code: str, count: int, uri: str, reason: str, due: int) -> PendingCause:
    return PendingCause(code=code, count=count, uri=uri, reason=reason, due=from_microseconds(due))


def read_detail(
    folder: Path,
    brief: MirrorSummary,
    since: datetime | None,
    until: datetime,
    notices: Sequence[datetime],
) -> MirrorDetail:
    """Return the events of a mirror in a window of time, which begins when the mirror began."""
    if not mirror_state.is_mirror(folder):
        return MirrorDetail(summary=brief, since=since or until - _SHORTEST, until=until)
    with _open_state(folder) as state:
        began = _moment(state.first_run()) or until
        since = min(max(since or began, began), until - _SHORTEST)
        first = to_microseconds(since)
        runs = tuple(map(_run_view, state.runs(first, _MOST_RUNS)))
        begin = first
        if runs and runs[-1].is_first:
            begin = to_microseconds(runs[-1].ended) + 1
        arrivals = state.arrivals(begin, _MOST_CHANGES)
        return MirrorDetail(
            summary=brief,
            since=since,
            until=until,
            runs=runs,
            changes=tuple(
                AppliedChange(
                    time=from_microseconds(arrival.time),
                    kind=arrival.kind,
                    uri=arrival.uri,
                    dated=_moment(arrival.dated),
                )
                for arrival in arrivals
                if arrival.kind != MirrorChangeKind.TOUCHED
            ),
            is_cut=len(arrivals) >= _MOST_CHANGES,
            lists=tuple(_lists(state)),
            awaited=tuple(_awaited(state, first)),
            notices=tuple(notice for notice in notices if since <= notice <= until),
            causes=tuple(_pending_cause(*cause) for cause in state.causes()),
            failing_since=_moment(state.failing_since()),
        )


def _moment(moment: int | None) -> datetime | None:
    return None if moment is None else from_microseconds(moment)


def _lists(state: SqliteMirrorState) -> Iterator[ListSpan]:
    for document in state.documents(_MOST_LISTS):
        if document.from_:
            since = from_microseconds(document.from_)
            yield ListSpan(uri=document.uri, since=since, until=_moment(document.until))


def _awaited(state: SqliteMirrorState, first: int) -> Iterator[AwaitedChange]:
    for row in islice(state.pending(PendingTask.FETCH), _MOST_AWAITED):
        if row.lastmod is not None and row.lastmod >= first:
            yield AwaitedChange(uri=row.loc, dated=from_microseconds(row.lastmod))


def _run_view(row: RunRow) -> EndedPull:
    report = None
    if row.mode:
        try:
            report = msgspec.json.decode(row.counts, type=RunReport)
        except msgspec.MsgspecError:  # of a version with other counts
            report = None
    return EndedPull(
        run=row.run,
        started=from_microseconds(row.started),
        ended=from_microseconds(row.ended),
        outcome=row.outcome,
        report=report,
        failed=read_failed(row),
    )


def read_run(folder: Path, run: str) -> EndedPull | None:
    """Return one pull of a mirror; ``None`` when it is not recorded."""
    with _open_state(folder) as state:
        row = state.find_run(run)
    return None if row is None else _run_view(row)


def read_events(folder: Path, name: str, since: datetime, most: int) -> tuple[EndedRun, ...]:
    """Return the newest pulls of a mirror since a moment, the newest first; equal ones as one."""
    if not mirror_state.is_mirror(folder):
        return ()
    with _open_state(folder) as state:
        rows = state.runs(to_microseconds(since), most)
    return tuple(fold_repeats(_ended_run(name, _run_view(row)) for row in rows))


def _ended_run(name: str, pull: EndedPull) -> EndedRun:
    state = None if pull.report is None else pull.report.state
    is_good = state is MirrorState.IN_SYNC or pull.outcome == "ok"
    word = "good" if is_good else "failed" if state is None else state.value
    text = pull_summary(pull)
    return EndedRun(
        time=pull.ended, mirror=name, kind="pull", word=word, is_good=is_good, text=text
    )


def fold_repeats(runs: Iterable[EndedRun]) -> Iterator[EndedRun]:
    """Yield runs, those of one mirror with the same result in a row as one; the newest first."""
    last: EndedRun | None = None
    for run in runs:
        if last is not None and _result_of(last) == _result_of(run):
            last = msgspec.structs.replace(last, count=last.count + 1, since=run.time)
            continue
        if last is not None:
            yield last
        last = run
    if last is not None:
        yield last


def _result_of(run: EndedRun) -> tuple[str, str, str, str]:
    return run.mirror, run.kind, run.word, run.text


def read_audits(folder: Path) -> tuple[str, tuple[AuditRecord, ...]]:
    """Return the address of a mirror's Source, and its last audits, the oldest first."""
    if not mirror_state.is_mirror(folder):
        return "", ()
    with _open_state(folder) as state:
        memory = SyncState(state)
        identity = memory.identity
        return "" if identity is None else identity.source, recorded_audits(state)


def read_resource(
    folder: Path, names: Sequence[str]
) -> tuple[Explanation, tuple[AppliedChange, ...]]:
    """Return the state of one resource, and its changes, the newest first.

    No request is sent, and its file is read only if it has another size or other times
    than recorded.
    """
    with _open_state(folder) as state:
        identity = SyncState(state).identity
        uris = [_uri_of(state, name) for name in names]
        uri = next((uri for uri in uris if state.copy(uri) or state.pending_of(uri)), uris[0])
        known = Explanation(source="" if identity is None else identity.source, uri=uri)
        if "://" not in names[uris.index(uri)]:
            known.path = names[uris.index(uri)].removeprefix("./").removeprefix("/")
        load_recorded(state, known)
        history = [
            AppliedChange(time=from_microseconds(change.time), kind=change.kind, uri=change.uri)
            for change in islice(state.changes_of(uri), _HISTORY)
        ]
    _probe_file(folder, known)
    findings = mirror_state.last_findings(folder)
    found = (finding for finding in findings if finding.uri == known.address)
    known.finding = next(found, None)
    return known, tuple(history)


def _uri_of(state: SqliteMirrorState, name: str) -> str:
    identity = SyncState(state).identity
    try:
        if "://" in name or identity is None:
            return read_address(name)
        path = name.removeprefix("./").removeprefix("/")
        mapping = SyncState(state).mapping(plugins.mapper)
        if mapping is None:
            return name
        return owner_of(state, mapping, path) or next(iter(uris_at(mapping, path)), name)
    except OutOfScopeError:
        return name


def _probe_file(folder: Path, known: Explanation) -> None:
    """Check whether the file exists, as it was installed."""
    if not known.path:
        return
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with closing(FolderCopyInspector(root)) as inspector:
            known.is_present = inspector.signature(known.path) is not None
            if known.copy is not None and known.is_present:
                known.is_altered = check_installed(known.copy, inspector) is None
    finally:
        os.close(root)
