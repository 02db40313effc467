"""Status of a mirror by its own state."""

from collections.abc import Iterator
from itertools import islice
from posixpath import commonprefix
from typing import Any

import msgspec

from resourcesync.destination import reports, tasks
from resourcesync.destination.cursor import Cursor
from resourcesync.destination.planner import FILTERED
from resourcesync.destination.reports import MirrorState as Word
from resourcesync.destination.sync_state import SyncState
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Pending, PendingCounts, PendingTask, RunRow
from resourcesync.model.timestamps import SECOND, from_microseconds

_MAX_SHOWN_FAILURES = 100
_FEW = 4
"""Listed resources below which a share says little."""


def status_of(folder: str, state: SqliteMirrorState, *, running: bool) -> reports.MirrorStatus:
    """Return the status of a mirror."""
    memory, resources = SyncState(state), state.count()
    identity, last, cursor = memory.identity, state.last_run(), memory.cursor
    counts = state.pending_counts()
    retained = count_retained(state, counts)
    listed = _listed_counts(state, counts, memory, retained)
    resting, due = 0, 0
    if last is not None and counts.rows:
        resting, due = state.pending_after(PendingTask.FETCH, last.ended)
    waits = listed.pending + counts.of_task(PendingTask.DELETE)
    return reports.MirrorStatus(
        mirror=folder,
        source="" if identity is None else identity.source,
        state=Word.SYNCING if running else _current_state(memory, cursor, waits),
        left=memory.last_state if running else None,
        resources=resources,
        listed=listed,
        retained=retained,
        resting=resting,
        tried_again=from_microseconds(due) if resting else None,
        held=count_held(counts),
        moved_from=memory.moved_from,
        as_of=from_microseconds(cursor.checkpoint) if cursor.checkpoint else None,
        in_sync_at=memory.in_sync_at,
        **_last_run(last, state, memory),
        failures=failures_of(state, _MAX_SHOWN_FAILURES) if counts.rows else (),
        certificate_until=memory.certificate_until,
        size_bytes=state.size(),
        is_refuted=memory.is_refuted,
        is_counted=not (cursor.checkpoint is None or cursor.is_incomplete or cursor.has_gap),
        **_rechecks(memory, resources),
    )


def _listed_counts(
    state: SqliteMirrorState,
    counts: PendingCounts,
    memory: SyncState,
    retained: reports.RetainedCounts,
) -> reports.ListedCounts:
    absent, skipped = count_unavailable(counts, memory)
    pending = counts.of_task(PendingTask.FETCH) - absent - skipped
    outdated = state.pending_with_copy(PendingTask.FETCH) - retained.unknown if pending else 0
    unlisted = counts.of_task(PendingTask.RETAIN) + counts.of_task(PendingTask.DELETE)
    wrong = outdated + retained.unknown + unlisted
    return reports.ListedCounts(
        unchanged=max(state.count() - wrong, 0),
        pending=pending,
        absent=absent,
        skipped=skipped,
        refused=memory.refused_count,
        **listed_since(memory),
    )


def listed_since(memory: SyncState) -> dict[str, Any]:
    """Return the fields about a Source that lists changes only; none if it lists all."""
    since = memory.changes_since
    if since is None:
        return {}
    return {"since": from_microseconds(since), "is_since_accepted": not memory.has_gap}


def count_held(counts: PendingCounts) -> int:
    """Return the number of deletions on hold; one that was tried and failed was allowed."""
    return counts.rows.get((PendingTask.DELETE, ""), 0)


def count_retained(state: SqliteMirrorState, counts: PendingCounts) -> reports.RetainedCounts:
    """Return the numbers of copies that are not what the Source lists, as they are stored."""
    filtered, restored = counts.with_codes(FILTERED), counts.with_codes(tasks.RESTORED)
    return reports.RetainedCounts(
        unlisted=counts.of_task(PendingTask.RETAIN) - filtered - restored,
        filtered=filtered,
        restored=restored,
        edited=counts.with_codes(tasks.EDITED),
        contradicting=counts.with_codes(tasks.CONTRADICTING),
        unknown=count_unknown(state, counts),
        linked=state.linked_count(),
    )


def _last_run(last: RunRow | None, state: SqliteMirrorState, memory: SyncState) -> dict[str, Any]:
    found: dict[str, Any] = {}
    is_failing = memory.last_state is Word.FAILING
    if is_failing and (since := state.failing_since()) is not None:
        found["failing_since"] = from_microseconds(since)
    failure = memory.last_failure if is_failing else None
    if failure is not None and (last is None or last.ended < failure[0]):  # no room for its row
        ended, failed = failure
        moment = from_microseconds(ended)
        return {
            "failing_since": moment,
            **found,
            "last_run": moment,
            "outcome": failed.code,
            "failed_run": failed,
        }
    if last is None:
        return found
    ended_at = from_microseconds(last.ended)
    return {**found, "last_run": ended_at, "outcome": last.outcome, "failed_run": read_failed(last)}


def _rechecks(memory: SyncState, resources: int) -> dict[str, Any]:
    rechecks = memory.rechecks
    known = {
        "evidence": count_evidence(
            memory, resources, 0 if rechecks is None else rechecks.by_request
        )
    }
    if rechecks is None:
        return known
    reached = rechecks.reached / SECOND if rechecks.period else 0.0
    return {
        **known,
        "recheck_seconds": rechecks.period / SECOND,
        "recheck_reached_seconds": reached,
    }


def count_evidence(memory: SyncState, resources: int, by_request: int) -> reports.EvidenceCounts:
    """Return the numbers of copies by the evidence that they are as at the Source."""
    unhashed, _ = memory.unhashed()
    requested = min(by_request, unhashed.copies)
    return reports.EvidenceCounts(
        by_hash=resources - unhashed.copies,
        by_request=requested,
        by_date=unhashed.copies - requested,
        unconfirmed=unhashed.unconfirmed,
    )


def count_unknown(state: SqliteMirrorState, counts: PendingCounts) -> int:
    """Return how many of the absent and skipped have an older copy, which may be wrong."""
    if not any(count_unavailable(counts, SyncState(state))):
        return 0
    return state.pending_with_copy(PendingTask.FETCH, tasks.UNAVAILABLE_CODES)


def _current_state(memory: SyncState, cursor: Cursor, pending: int) -> Word:
    """Return the state after the last run, corrected by what an audit found since."""
    word = memory.last_state
    # After a killed run, or with other filters.
    is_behind = pending or cursor.is_incomplete or memory.has_gap or memory.refused_count
    is_behind = is_behind or memory.is_refuted
    return Word.BEHIND if word is Word.IN_SYNC and is_behind else word


def count_unavailable(counts: PendingCounts, memory: SyncState) -> tuple[int, int]:
    """Return how many listed resources are accepted as absent, and how many as skipped."""
    if not memory.accepts_missing:
        return 0, 0
    return counts.with_codes(*tasks.ABSENT_CODES), counts.with_codes(*tasks.SKIPPED_CODES)


def serves_too_little(memory: SyncState, absent: int, served: int, listed: int) -> bool:
    """True if so few of the listed pages are served that no mirror of them is in sync.

    Nothing delivered never is. Until a mirror was in sync once, or the operator accepts it, nor is
    one of a site that lacks more than half of its pages: most of its addresses are wrong.
    """
    if not absent or not served:
        return absent > 0
    stored = memory.stored_options
    is_unsaid = stored is None or stored.accept_missing is None
    is_first = memory.in_sync_at is None and is_unsaid
    return is_first and listed >= _FEW and 2 * absent > listed


def absent_folder(state: SqliteMirrorState) -> str:
    """Return the longest common prefix, up to a slash, of the listed resources that are absent."""
    rows = (row.loc for row in state.pending(PendingTask.FETCH) if row.code in tasks.ABSENT_CODES)
    first = last = next(rows, "")
    for uri in rows:
        first, last = min(first, uri), max(last, uri)
    return commonprefix([first, last]).rpartition("/")[0] + "/"


def failing_tasks(state: SqliteMirrorState) -> Iterator[Pending]:
    """Yield the tasks of edited files, and of what is listed and not in the mirror as listed."""
    memory = SyncState(state)
    for row in state.pending(PendingTask.DELETE):
        if row.code == tasks.EDITED:
            yield row._replace(code=tasks.LOCAL_CHANGE, reason=tasks.EDITED_REASON)
    for row in state.pending(PendingTask.FETCH):
        if not memory.accepts(row.code):
            yield row._replace(reason=row.reason or tasks.NOT_TRIED)


def failures_of(state: SqliteMirrorState, most: int) -> tuple[reports.Failing, ...]:
    """Return the first failures: see `failing_tasks`."""
    return tuple(
        reports.Failing(
            uri=row.loc,
            code=row.code,
            reason=row.reason,
            tries=row.tries,
            due=from_microseconds(row.due),
        )
        for row in islice(failing_tasks(state), most)
    )


def read_failed(row: RunRow | None) -> reports.FailedRun | None:
    """Return the error that ended a run; ``None`` if it completed."""
    if row is None or row.mode or row.outcome == "ok":
        return None
    try:
        return msgspec.json.decode(row.counts, type=reports.FailedRun)
    except msgspec.MsgspecError:  # the row is damaged
        return reports.FailedRun(code=row.outcome)
