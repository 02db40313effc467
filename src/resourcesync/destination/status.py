"""What a mirror's own memory says of it, without asking the Source."""

from itertools import chain, islice

from resourcesync.destination.memory import SyncState
from resourcesync.destination.plan import (
    ABSENT_CODES,
    CONTRADICTING,
    EDITED,
    EDITED_REASON,
    LOCAL_CHANGE,
    SKIPPED_CODES,
    UNAVAILABLE_CODES,
)
from resourcesync.destination.reports import Failing, MirrorStatus
from resourcesync.destination.reports import MirrorState as Word
from resourcesync.destination.runs import read_failed
from resourcesync.model.timestamps import from_microseconds
from resourcesync.ports.mirror import MirrorStateStore, PendingTask

_ALL = (1 << 63) - 1
_MAX_SHOWN_FAILURES = 100


def status_of(folder: str, state: MirrorStateStore, *, running: bool) -> MirrorStatus:
    """Return the status of a mirror.

    Args:
        folder: The mirror, as people name it.
        state: Its memory; open for reading is enough.
        running: Whether a run holds the mirror now.

    Raises:
        StateError: The memory is damaged.
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
        is_counted=not (memory.is_first_pull_incomplete or memory.is_reading_incomplete),
    )


def _current_state(memory: SyncState, pending: int) -> Word:
    """Return the state after the last run, or what an audit made of it since."""
    word = memory.last_state
    # A run was killed, or other filters were chosen.
    is_behind = pending or memory.is_reading_incomplete or memory.has_gap or memory.refused_count
    return Word.BEHIND if word is Word.IN_SYNC and is_behind else word


def count_unavailable(state: MirrorStateStore, memory: SyncState) -> tuple[int, int]:
    """Return how many listed resources are absent at the Source, and how many are skipped.

    None are where that is not accepted: then they failed.
    """
    if not memory.accepts_missing:
        return 0, 0
    absent = sum(map(state.pending_with_code, ABSENT_CODES))
    return absent, sum(map(state.pending_with_code, SKIPPED_CODES))


def failures_of(state: MirrorStateStore, most: int) -> tuple[Failing, ...]:
    """Return the first listed resources that are not here as listed, and files changed here.

    Args:
        state: The mirror's memory.
        most: How many to return at most.
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
