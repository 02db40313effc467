"""Deletion of copies that the Source no longer lists: into the trash, within a limit.

More deletions than the limit are held until the operator confirms them, or until the Source proves
them. A list may be wrong, and the next one wrong in the same way.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec import structs

from resourcesync.destination import pending_tasks, planner
from resourcesync.destination.options import Dependencies
from resourcesync.destination.pull_session import SyncOutcome, SyncSession
from resourcesync.destination.reports import DeletionResult, Failing
from resourcesync.destination.sync_state import SyncState, encode_notes, gone_rows
from resourcesync.destination.transfers.verification import installed_content
from resourcesync.discovery.known_addresses import address_fields
from resourcesync.errors import StorageError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Copy, Pending, PendingTask, StateTransaction, TrashRow
from resourcesync.model.settings import Limit
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import CopyRemoval

_GROUP: Final = 256


def plan_deletions(
    state: SqliteMirrorState, limit: Limit, here: int, deletions: int, untold: int, filtered: int
) -> DeletionResult:
    """Return how many deletions are held: all, or none.

    A hold refers to the copies at its start: it does not end because the mirror grows, nor because
    some deletions were proven. While the Source lists unusable entries, every deletion counts as
    unannounced: a resource that goes under one address may come under another, which cannot be
    parsed.
    """
    memory = SyncState(state)
    held_of = memory.held_of or here
    # A number given by the operator counts the pending deletions, as a pull shows them.
    gone = (memory.held_gone or 0) if limit.number is None else 0
    if memory.held_of and limit.number is None:  # a new filter releases none
        gone += filtered
    untold = deletions if state.read_note("refused", int) else untold
    if not deletions or planner.may_delete(limit, deletions + gone, held_of, untold=untold + gone):
        return DeletionResult()
    return DeletionResult(held=deletions, held_of=held_of)


def delete_pending(
    pull: SyncSession, pulled: SyncOutcome, tally: DeletionResult, *, generation: int | None
) -> None:
    """Execute the pending deletions if the limit allows them all, else hold them."""
    equipment, state, limit = pull.dependencies, pull.state, pull.options.max_delete
    here = state.count() - pulled.tally.created

    def pending_rows() -> Iterator[Pending]:
        tried = {failure.uri for failure in tally.failures}  # among those that are proven
        rows = state.pending(PendingTask.DELETE)
        return (r for r in rows if generation in (None, r.generation) and r.uri not in tried)

    is_held = next(state.pending(PendingTask.DELETE), None) is not None
    proven = list[Pending]()
    if is_held and limit.number is None and generation is None:  # a number is never exceeded
        from resourcesync.destination.held_deletion_probes import find_proven_gone  # noqa: PLC0415 - lazy

        proven = find_proven_gone(equipment, pull.now, pull.selection.addresses.source_uri)
    _complete_deletions_without_copy(state)
    if proven:  # first: after a kill here the rest must not count as fewer
        pull.sync_state.write(held_gone=(pull.sync_state.held_gone or 0) + len(proven))
        _delete_all(equipment, iter(proven), tally)
    deletions = untold = 0
    for row in pending_rows():
        deletions += not row.code  # one that failed was allowed before: it holds no other
        untold += not row.code and row.reason == planner.ABSENT
    filtered = state.pending_counts().with_codes(planner.FILTERED)
    planned = plan_deletions(state, limit, here, deletions, untold, filtered)
    tally.held, tally.held_of = planned.held, planned.held_of
    if not tally.held:
        _delete_all(equipment, pending_rows(), tally)
    if tally.held:
        by = "pull --prune" if pull.options.prune else "pull"
        _hold(state, tally, by if generation is None else "repair --delete")
    elif generation is None and _is_hold_released(state):
        SyncState(state).write(held_of=0, held_gone=0)


def _hold(state: SqliteMirrorState, tally: DeletionResult, by: str) -> None:
    memory = SyncState(state)
    others = memory.on_hold(state.pending_counts()) - tally.held
    is_of_others = by.startswith("repair") and others > 0  # a repair releases only its own
    memory.write(held_of=tally.held_of, stopped_command=None if is_of_others else by)


def _complete_deletions_without_copy(state: SqliteMirrorState) -> None:
    count = state.pending_counts().of_task(PendingTask.DELETE)
    if count == state.pending_with_copy(PendingTask.DELETE):
        return
    gone = (row.uri for row in state.pending(PendingTask.DELETE) if state.copy(row.uri) is None)
    while group := list(islice(gone, _GROUP)):
        state.commit(StateTransaction(completed=group))


def _is_hold_released(state: SqliteMirrorState) -> bool:
    memory = SyncState(state)
    has_notes = memory.held_of or memory.held_gone
    left = (row for row in gone_rows(state) if row.task != PendingTask.DELETE or not row.code)
    return bool(has_notes) and not any(True for _ in left)


def _delete_all(equipment: Dependencies, rows: Iterator[Pending], tally: DeletionResult) -> None:
    equipment.check_folder()
    # By a clock that was set back, such as to 1970, the next pull would purge the trash at once.
    listed_at = SyncState(equipment.state).cursor.checkpoint or 0
    now = max(to_microseconds(equipment.clock.now()), listed_at)
    while group := list(islice(rows, _GROUP)):
        _delete_group(equipment, group, now, tally)


def _delete_group(
    equipment: Dependencies, group: list[Pending], now: int, tally: DeletionResult
) -> None:
    state = equipment.state
    known = [(row, state.copy(row.uri)) for row in group]
    gone = [row.uri for row, copy in known if copy is None]
    present = [(row, copy) for row, copy in known if copy is not None]
    if present:
        # After a kill in the middle it is unknown which files are still in place.
        suspects = [planner.as_unknown(copy) for _, copy in present]
        state.commit(StateTransaction(suspect=suspects, notes=encode_notes(trashing=True)))
    results = equipment.copies.remove([_removal(equipment, copy) for _, copy in present], "deleted")
    set_aside = dict(equipment.copies.newly_quarantined())
    for path, place in set_aside.items():
        equipment.report("warning", pending_tasks.quarantine_warning(path, place))
    removed: list[str] = []
    trashed: list[TrashRow] = []
    kept: list[Copy] = []
    failed: list[Pending] = []
    for (row, copy), result in zip(present, results, strict=True):
        if isinstance(result, StorageError):
            tally.failures.append(_report_failure(equipment, row, result))
            is_edited = result.code == pending_tasks.LOCAL_CHANGE
            is_marked = is_edited and not copy.is_damaged
            kept.append(copy._replace(signature=pending_tasks.EDITED) if is_marked else copy)
            failed.append(row._replace(code=pending_tasks.EDITED if is_edited else result.code))
            continue
        removed.append(row.uri)
        if result:
            trashed.append(TrashRow(result, row.uri, copy.path, now, row.reason, copy.digests))
    done = StateTransaction(removed=removed, completed=gone, trashed=trashed, now=now)
    notes = encode_notes(trashing=False)
    state.commit(structs.replace(done, suspect=kept, pending=failed, notes=notes))
    tally.deleted, moved = tally.deleted + len(removed), SyncState(state).moved
    tally.trashed += len(trashed)
    for (row, copy), result in zip(present, results, strict=True):
        if not isinstance(result, StorageError):
            found = {"place": result, "set_aside": set_aside.get(copy.path, "")}
            more = {"path": copy.path, "was_bytes": copy.length, "reason": row.reason}
            fields = address_fields(row.uri, moved) | {"status": "ok", "action": "delete"}
            equipment.report("item", {**fields, **more, **found})


def _report_failure(equipment: Dependencies, row: Pending, error: StorageError) -> Failing:
    is_edited = error.code == pending_tasks.LOCAL_CHANGE
    reason = pending_tasks.EDITED_REASON if is_edited else error.message
    fields = pending_tasks.failed_item("delete", row.loc, row.path, error.code, reason, kept=True)
    equipment.report("item", fields | address_fields(row.uri, SyncState(equipment.state).moved))
    return Failing(uri=row.uri, code=error.code, reason=reason)


def _removal(equipment: Dependencies, copy: Copy) -> CopyRemoval:
    """Return the removal of the known file, or of any file after a kill during its replacement."""
    known = copy.signature
    if copy.is_unknown:
        known = equipment.copies.signature(copy.path) or known
    content, is_altered = installed_content(copy), copy.is_marked_by_audit
    return CopyRemoval(path=copy.path, signature=known, content=content, is_altered=is_altered)
