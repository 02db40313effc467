"""Status of a mirror by its own state, and the report of a run.

Listed = unchanged + applied + pending + absent + skipped + refused, always: nothing that a Source
lists is left out, and nothing is counted as done that is not.
"""

from itertools import chain, islice
from typing import Any, Final, NamedTuple

from resourcesync.destination.options import Dependencies
from resourcesync.destination.planner import (
    ABSENT_CODES,
    CONTRADICTING,
    EDITED,
    EDITED_REASON,
    FILTERED,
    LOCAL_CHANGE,
    RESTORED,
    SKIPPED_CODES,
    UNAVAILABLE_CODES,
)
from resourcesync.destination.reports import Failing, MirrorStatus, RunReport
from resourcesync.destination.reports import MirrorState as Word
from resourcesync.destination.runs import read_failed
from resourcesync.destination.session import SyncOutcome
from resourcesync.destination.sync_state import SyncState
from resourcesync.destination.transfers.commit import TransferTally
from resourcesync.model.timestamps import from_microseconds
from resourcesync.ports.mirror import Fixity, MirrorStateStore, PendingTask

_ALL: Final = (1 << 63) - 1
_MAX_SHOWN_FAILURES = 100


def status_of(folder: str, state: MirrorStateStore, *, running: bool) -> MirrorStatus:
    """Return the status of a mirror.

    Args:
        folder: The mirror's folder, as displayed.
        state: Its state; read-only is enough.
        running: A run has locked the mirror now.

    Raises:
        StateError: The state is damaged.
    """
    memory, resources = SyncState(state), state.count()
    identity, last = memory.identity, state.last_run()
    absent, skipped = count_unavailable(state, memory)
    waiting = state.pending_count(PendingTask.FETCH, met_before=_ALL, listed_before=_ALL)
    pending = waiting - absent - skipped
    unknown = (
        state.pending_with_copy(PendingTask.FETCH, UNAVAILABLE_CODES) if absent or skipped else 0
    )
    edited = state.pending_with_code(EDITED)
    held = state.pending_count(PendingTask.DELETE, met_before=_ALL, listed_before=_ALL) - edited
    resting, due = (0, 0) if last is None else state.pending_after(PendingTask.FETCH, last.ended)
    return MirrorStatus(
        folder=folder,
        source="" if identity is None else identity.source,
        state=Word.SYNCING if running else _current_state(memory, pending + held + edited),
        resources=resources,
        pending=pending,
        outdated=state.pending_with_copy(PendingTask.FETCH) - unknown
        if resources and pending
        else 0,
        contradicting=state.pending_with_code(CONTRADICTING),
        resting=resting,
        tried_again=from_microseconds(due) if resting else None,
        refused=memory.refused_count,
        absent=absent,
        skipped=skipped,
        unknown=unknown,
        held=held,
        moved_from=memory.moved_from,
        edited=edited,
        as_of=memory.as_of,
        in_sync_at=memory.in_sync_at,
        last_run=None if last is None else from_microseconds(last.ended),
        outcome="" if last is None else last.outcome,
        failed=read_failed(last),
        failures=failures_of(state, _MAX_SHOWN_FAILURES),
        is_counted=not (memory.cursor.checkpoint is None or memory.cursor.is_incomplete),
    )


def _current_state(memory: SyncState, pending: int) -> Word:
    """Return the state after the last run, corrected by what an audit found since."""
    word = memory.last_state
    # After a killed run, or with other filters.
    cursor = memory.cursor
    is_behind = pending or cursor.is_incomplete or cursor.has_gap or memory.refused_count
    return Word.BEHIND if word is Word.IN_SYNC and is_behind else word


def count_unavailable(state: MirrorStateStore, memory: SyncState) -> tuple[int, int]:
    """Return how many listed resources are absent at the Source, and how many are skipped.

    None are if that is not accepted: then they failed.
    """
    if not memory.accepts_missing:
        return 0, 0
    absent = sum(map(state.pending_with_code, ABSENT_CODES))
    return absent, sum(map(state.pending_with_code, SKIPPED_CODES))


def failures_of(state: MirrorStateStore, most: int) -> tuple[Failing, ...]:
    """Return the first listed resources that are not in the mirror as listed, and edited files.

    Args:
        state: The mirror's state.
        most: Largest number to return.
    """
    accepted = UNAVAILABLE_CODES if SyncState(state).accepts_missing else ()
    waiting = (row for row in state.pending(PendingTask.FETCH) if row.code not in accepted)
    edited = (row for row in state.pending(PendingTask.DELETE) if row.code == EDITED)
    rows = islice(chain(edited, waiting), most)
    return tuple(
        Failing(
            uri=row.loc,
            code=LOCAL_CHANGE if row.code == EDITED else row.code,
            reason=EDITED_REASON if row.code == EDITED else row.reason,
            tries=row.tries,
            due=from_microseconds(row.due),
        )
        for row in rows
    )


_MAX_REPORTED_FAILURES: Final = 1_000


class ListedCounts(NamedTuple):
    """Counts of everything that is listed, by result; ``listed`` is the sum of the others."""

    listed: int
    unchanged: int
    applied: int
    pending: int
    absent: int
    skipped: int
    refused: int


def count_listed(pulled: SyncOutcome, state: MirrorStateStore, memory: SyncState) -> ListedCounts:
    """Count all selected resources that the Source is known to list, by result.

    A baseline counts the list itself. Other runs read only changes: they count the copies and
    pending tasks.

    Args:
        pulled: Outcome of the run.
        state: The mirror's state after it.
        memory: Its notes.
    """
    tally, plan = pulled.tally, pulled.plan
    applied = tally.created + tally.updated - tally.contradicting
    if pulled.selected_count is not None:
        unchanged = plan.same + tally.same
        missing = (tally.absent, tally.skipped)
        pending = pulled.selected_count - tally.gone - unchanged - applied - sum(missing)
        if pulled.is_complete and pulled.is_written:  # as stored, not by addition
            missing = count_unavailable(state, memory)
            pending = count_pending(state, PendingTask.FETCH) - sum(missing)
        listed = pulled.selected_count - tally.gone + pulled.refused_count
        return ListedCounts(listed, unchanged, applied, pending, *missing, pulled.refused_count)
    missing = count_unavailable(state, memory)
    pending, outdated = (
        count_pending(state, PendingTask.FETCH),
        state.pending_with_copy(PendingTask.FETCH),
    )
    if not pulled.is_written:
        pending, outdated = pulled.postponed
        pending, outdated = pending + plan.create + plan.update, outdated + plan.update
    not_listed = count_pending(state, PendingTask.RETAIN) + count_pending(state, PendingTask.DELETE)
    pending -= sum(missing)
    unchanged = max(0, state.count() - not_listed - outdated - applied)
    refused = memory.refused_count
    listed = unchanged + applied + pending + sum(missing) + refused
    return ListedCounts(listed, unchanged, applied, pending, *missing, refused)


def build_report(
    run: str, pulled: SyncOutcome, equipment: Dependencies, *, dry_run: bool
) -> RunReport:
    """Return the report of a run.

    Args:
        run: Its id.
        pulled: Its outcome.
        equipment: Dependencies.
        dry_run: Nothing was changed, by request.
    """
    state, memory = equipment.state, SyncState(equipment.state)
    tally, deletions = pulled.tally, pulled.deletions
    to_delete, local = count_pending(state, PendingTask.DELETE), len(deletions.failures)
    held = _blocked_deletions(pulled, to_delete, dry_run=dry_run) - local
    failed = count_pending(state, PendingTask.FETCH) + local - sum(count_unavailable(state, memory))
    resources, waits = state.count(), to_delete and not pulled.are_deletions_done
    requests, received = equipment.traffic()
    unfinished = memory.cursor.has_gap or tally.undecided or not pulled.is_complete
    return RunReport(
        run=run,
        mode=pulled.mode,
        state=_state_after_run(
            held=held, behind=bool(failed or memory.refused_count or unfinished or waits)
        ),
        dry_run=dry_run,
        spent=pulled.spent,
        resources=resources,
        **count_listed(pulled, state, memory)._asdict(),
        same=resources - tally.created - tally.updated,
        **_transfer_counts(tally),
        deleted=deletions.deleted,
        unread=pulled.unread_parts,
        failed=failed,
        edited=sum(failure.code == LOCAL_CHANGE for failure in deletions.failures),
        held=held,
        held_of=deletions.held_of if held else 0,
        unlisted=pulled.retained_count,
        **_extra_counts(state),
        requests=requests,
        received=received,
        as_of=memory.as_of,
        failures=_first_failures(pulled, state),
    )


def _transfer_counts(tally: TransferTally) -> dict[str, Any]:
    return {
        "created": tally.created,
        "updated": tally.updated,
        "refetched": tally.refetched,
        "verified": tally.fixity.get(Fixity.VERIFIED, 0),
        "weak": tally.fixity.get(Fixity.WEAK, 0),
        "unverified": tally.fixity.get(Fixity.UNVERIFIED, 0),
        "patched": tally.patched,
        "unpatched": tally.unpatched,
        "useful": tally.useful,
    }


def _extra_counts(state: MirrorStateStore) -> dict[str, Any]:
    """Count copies beyond those that are listed, selected and as listed; report gaps and moves."""
    return {
        "gap": SyncState(state).cursor.has_gap,
        "moved_from": SyncState(state).moved_from,
        "filtered": state.pending_with_code(FILTERED),
        "restored": state.pending_with_code(RESTORED),
        "contradicting": state.pending_with_code(CONTRADICTING),
        "linked": state.linked_count(),
    }


def _first_failures(pulled: SyncOutcome, state: MirrorStateStore) -> tuple[Failing, ...]:
    found = [*pulled.tally.failures, *pulled.deletions.failures][:_MAX_REPORTED_FAILURES]
    return tuple(found) or failures_of(state, _MAX_REPORTED_FAILURES)


def _blocked_deletions(pulled: SyncOutcome, to_delete: int, *, dry_run: bool) -> int:
    """Return how many deletions are held, or would be."""
    if dry_run:
        return pulled.deletions.held
    return to_delete if pulled.are_deletions_done else 0


def count_pending(state: MirrorStateStore, task: PendingTask) -> int:
    """Return how many resources have a pending task of this kind."""
    return state.pending_count(task, met_before=_ALL, listed_before=_ALL)


def _state_after_run(*, held: int, behind: bool) -> Word:
    if held:
        return Word.STOPPED
    return Word.BEHIND if behind else Word.IN_SYNC
