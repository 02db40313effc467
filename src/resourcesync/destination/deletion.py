"""Take away what the Source took away: into the trash, never many at once without a second word.

Proof that what is held is gone: the Source itself is asked, one resource after the other.

A list may be wrong, and the next one wrong in the same way. What answers 404 or 410 at its own
address, a day after its deletion was held, is gone. A server that answers so to everything proves
nothing: first, something that is listed must be there.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice, takewhile
from typing import Final

from resourcesync.destination.mapping import origin
from resourcesync.destination.options import Dependencies
from resourcesync.destination.planner import (
    ABSENT,
    EDITED,
    EDITED_REASON,
    LOCAL_CHANGE,
    DeletionLimit,
    as_unknown,
    is_suspect,
    is_unknown,
)
from resourcesync.destination.reports import Failing
from resourcesync.destination.tasks import gone_rows, quarantine_warning
from resourcesync.destination.uris import normalise
from resourcesync.errors import OutOfScopeError, ResourceMissingError, StorageError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock, Copies, CopyRemoval, FetchFailure, FetchRequest, FetchResponse
from resourcesync.ports.mirror import (
    Copy,
    MirrorStateStore,
    Pending,
    PendingTask,
    StateTransaction,
    TrashRow,
)

_GROUP: Final = 256
_DAY: Final = 24 * 3_600_000_000
_TRASHING: Final = "trashing"
"""The note that says whether files are being moved to the trash just now."""
_HELD_OF: Final = "held-of"
"""The note that says how many copies were here when deletions were held; 0 when none is."""
_HELD_GONE: Final = "held-gone"
"""The note that says how many of them were deleted since, because the Source said so."""


@dataclass(slots=True, kw_only=True)
class DeletionResult:
    """What was deleted, and what was not.

    Attributes:
        deleted: Copies that went to the trash.
        held: Deletions that are more than one run may do, and so were not done.
        held_of: How many copies were here when they were held first.
        failures: Copies that could not be deleted.
    """

    deleted: int = 0
    held: int = 0
    held_of: int = 0
    failures: list[Failing] = field(default_factory=list)


def plan_deletions(
    state: MirrorStateStore, limit: DeletionLimit, here: int, deletions: int, untold: int
) -> DeletionResult:
    """Say which of so many deletions are held: all, or none.

    A hold is of what was here when it began: it does not end because the mirror grows, nor because
    some of it was proven to be gone. While the
    Source lists something that cannot be used, nothing counts as told: what goes under one address
    may come under another, which is not understood.

    Args:
        state: What the mirror knows.
        limit: How many deletions one run may do.
        here: How many copies were here before the run.
        deletions: How many wait.
        untold: How many of them no Change List told.
    """
    held_of = int(state.note(_HELD_OF) or 0) or here
    # A number that a person gives is of what still waits, as a pull shows it.
    gone = int(state.note(_HELD_GONE) or 0) if limit.count is None else 0
    is_understood = int(state.note("refused") or 0) == 0
    untold = untold if is_understood else deletions
    if not deletions or limit.allows(deletions + gone, held_of, untold=untold + gone):
        return DeletionResult()
    return DeletionResult(held=deletions, held_of=held_of)


def delete_pending(
    equipment: Dependencies,
    limit: DeletionLimit,
    here: int,
    *,
    generation: int | None = None,
    proven: Sequence[Pending] = (),
) -> DeletionResult:
    """Delete the copies whose deletion is pending if the limit allows them all, else hold them.

    Args:
        equipment: What to work with.
        limit: How many deletions one run may do.
        here: How many copies were here before the run.
        generation: That of the reading which tells what is to go; ``None`` for all that waits.
        proven: Of those that wait, which are proven to be gone: they go in any case.

    Raises:
        MirrorChangedError: The folder is not the one we knew; nothing was deleted.
        StorageError: The mirror cannot be written.
    """
    state = equipment.state

    def meant() -> Iterator[Pending]:
        rows = state.pending(PendingTask.DELETE)
        return (row for row in rows if generation in (None, row.generation))

    swept = DeletionResult()
    if proven:  # first: who is killed here must not take the rest for less than it is
        gone = int(state.note(_HELD_GONE) or 0) + len(proven)
        state.commit(StateTransaction(notes={_HELD_GONE: str(gone)}))
        _delete_all(equipment, iter(proven), swept)
    deletions = untold = 0
    for deletions, row in enumerate(meant(), 1):  # noqa: B007 - how many there are
        untold += row.reason == ABSENT
    foreseen = plan_deletions(state, limit, here, deletions, untold)
    swept.held, swept.held_of = foreseen.held, foreseen.held_of
    if deletions and not swept.held:
        _delete_all(equipment, meant(), swept)
    if swept.held:
        state.commit(StateTransaction(notes={_HELD_OF: str(swept.held_of)}))
    elif generation is None and _is_hold_released(state):
        state.commit(StateTransaction(notes={_HELD_OF: "0", _HELD_GONE: "0"}))
    return swept


def _is_hold_released(state: MirrorStateStore) -> bool:
    """Whether nothing waits any more; what a policy keeps in this run does."""
    has_notes = state.note(_HELD_OF) or state.note(_HELD_GONE)
    return bool(has_notes) and not any(True for _ in gone_rows(state))


def _delete_all(equipment: Dependencies, rows: Iterator[Pending], swept: DeletionResult) -> None:
    equipment.check_folder()
    now = to_microseconds(equipment.clock.now())
    while group := list(islice(rows, _GROUP)):
        _delete_group(equipment, group, now, swept)


def _delete_group(
    equipment: Dependencies, group: list[Pending], now: int, swept: DeletionResult
) -> None:
    state = equipment.state
    known = [(row, state.copy(row.uri)) for row in group]
    gone = [row.uri for row, copy in known if copy is None]
    there = [(row, copy) for row, copy in known if copy is not None]
    removals = [_removal(equipment, copy) for _, copy in there]
    if there:
        # Killed in the middle, nobody could tell which of the files are still in place.
        doubted = [as_unknown(copy) for _, copy in there]
        state.commit(StateTransaction(suspect=doubted, notes={_TRASHING: "1"}))
    results = equipment.copies.remove(removals, "deleted")
    for path, place in equipment.copies.newly_quarantined():
        equipment.report("warning", quarantine_warning(path, place))
    removed: list[str] = []
    trashed: list[TrashRow] = []
    kept: list[Copy] = []
    failed: list[Pending] = []
    for (row, copy), result in zip(there, results, strict=True):
        if isinstance(result, StorageError):
            swept.failures.append(_report_failure(equipment, row, result))
            kept.append(copy)
            is_edited = result.code == LOCAL_CHANGE
            failed.append(row._replace(code=EDITED if is_edited else result.code))
            continue
        removed.append(row.uri)
        if result:
            trashed.append(
                TrashRow(result, row.uri, copy.path, now, row.reason, digests=copy.digests)
            )
    settled = StateTransaction(
        removed=removed, completed=gone, trashed=trashed, notes={_TRASHING: "0"}, now=now
    )
    state.commit(replace(settled, suspect=kept, pending=failed))
    swept.deleted += len(removed)
    left = {row.uri for row in failed}
    for row, copy in there:
        if row.uri not in left:
            equipment.report("item", _deletion_event(row, copy))


def _report_failure(equipment: Dependencies, row: Pending, error: StorageError) -> Failing:
    """Report a copy that could not be deleted; its file is as it was."""
    reason = EDITED_REASON if error.code == LOCAL_CHANGE else error.message
    equipment.report(
        "item",
        {
            "status": "error",
            "action": "delete",
            "uri": row.loc,
            "path": row.path,
            "code": error.code,
            "reason": reason,
            "tries": 1,
            "kept": True,
        },
    )
    return Failing(uri=row.uri, code=error.code, reason=reason)


def _deletion_event(row: Pending, copy: Copy) -> dict[str, object]:
    return {
        "status": "ok",
        "action": "delete",
        "uri": row.loc,
        "path": copy.path,
        "was_bytes": copy.length,
        "reason": row.reason,
    }


def _removal(equipment: Dependencies, copy: Copy) -> CopyRemoval:
    """Name the file to take away: the one we know, or any if we were killed while it changed.

    Of a copy that an audit found altered, what is there is somebody's: it is set aside.
    """
    known = copy.signature
    if is_unknown(copy):
        known = equipment.copies.signature(copy.path) or known
    return CopyRemoval(path=copy.path, signature=known, is_altered=is_suspect(copy))


def register_lost_trash(state: MirrorStateStore, copies: Copies, clock: Clock) -> None:
    """Take note of what a run moved to the trash that was killed before it could write so.

    Nobody would ever purge it. What it was the copy of is told by its name only.

    Raises:
        StorageError: The trash cannot be looked into.
    """
    if state.note(_TRASHING) != "1":
        return
    now = to_microseconds(clock.now())
    lost = (place for place in copies.trashed() if state.trash_at(place) is None)
    reason = "moved there by a run that was killed"
    while group := list(islice(lost, _GROUP)):
        rows = [TrashRow(place=name, uri="", path="", removed=now, reason=reason) for name in group]
        state.commit(StateTransaction(trashed=rows))
    state.commit(StateTransaction(notes={_TRASHING: "0"}))


def purge_old_trash(equipment: Dependencies, days: float) -> int:
    """Remove for good what has waited in the trash for longer than ``days``; return how many."""
    now = to_microseconds(equipment.clock.now())
    old: Iterator[TrashRow] = equipment.state.trash(removed_before=now - int(days * _DAY) + 1)
    count = 0
    while group := list(islice(old, _GROUP)):
        for row in group:
            equipment.purge(row.place)
        equipment.state.commit(StateTransaction(purged=[row.place for row in group]))
        count += len(group)
    return count


_MAX_PROBES: Final = 300
"""Resources that one run asks for."""
_MAX_ALIVE: Final = 10
"""Resources that are still there after which a run asks no more: the list was wrong."""
_MAX_CONTROL_PROBES: Final = 3
_LAST_PROBED: Final = "asked-whether-gone"
"""The note of the URI that was asked for last: the next run goes on after it."""


def find_proven_gone(
    equipment: Dependencies, now: int, address: Callable[[str], str]
) -> list[Pending]:
    """Return held deletions of which the Source says that the resource is gone.

    Args:
        equipment: What to work with.
        now: Microseconds.
        address: Returns where the Source has a resource now.
    """
    state = equipment.state
    if int(state.note("refused") or 0):
        return []  # what goes under one address may come under another, which is not understood
    chosen = list(islice(_due_deletions(state, now - _DAY), _MAX_PROBES))
    witnesses = _ControlProbes(equipment, address)
    found: list[Pending] = []
    alive, last = 0, ""
    for row in chosen:
        uri, last = address(row.uri), row.uri
        if not witnesses.check_origin(uri):
            continue
        outcome = _probe(equipment, uri)
        if _is_gone(outcome, uri):
            found.append(row)
            continue
        alive += 1  # or it cannot be said
        if alive >= _MAX_ALIVE:
            break
    state.commit(StateTransaction(notes={_LAST_PROBED: last}))
    return found


def _due_deletions(state: MirrorStateStore, held_before: int) -> Iterator[Pending]:
    """Yield what has been held for long enough, beginning after what was asked for last."""
    last = state.note(_LAST_PROBED) or ""
    rows = (row for row in state.pending(PendingTask.DELETE) if row.first <= held_before)
    again = (row for row in state.pending(PendingTask.DELETE) if row.first <= held_before)
    return chain(
        (row for row in rows if row.uri > last), takewhile(lambda row: row.uri <= last, again)
    )


class _ControlProbes:
    """Says of each origin whether its server gives something that is listed.

    Args:
        equipment: What to work with.
        address: Returns where the Source has a resource now.
    """

    def __init__(self, equipment: Dependencies, address: Callable[[str], str]) -> None:
        self._dependencies, self._address = equipment, address
        self._results: dict[str, bool] = {}

    def check_origin(self, uri: str) -> bool:
        """Return whether the server of ``uri`` gives what is listed: only then its 404 counts."""
        of = origin(uri)
        if of not in self._results:
            listed = map(self._address, _listed_uris(self._dependencies.state))
            few = islice((name for name in listed if origin(name) == of), _MAX_CONTROL_PROBES)
            self._results[of] = any(_exists(_probe(self._dependencies, name)) for name in few)
        return self._results[of]


def _listed_uris(state: MirrorStateStore) -> Iterator[str]:
    """Yield the URIs of copies that nothing waits for: they are listed, and so are there."""
    waiting = chain((row.uri for row in state.pending(PendingTask.DELETE)), [""])
    kept = chain((row.uri for row in state.pending(PendingTask.RETAIN)), [""])
    return _exclude(_exclude((copy.uri for copy in state.copies()), waiting), kept)


def _exclude(uris: Iterator[str], others: Iterator[str]) -> Iterator[str]:
    """Yield what is not in the other; both are in order, the other ends in an empty text."""
    other = next(others)
    for uri in uris:
        while other and other < uri:
            other = next(others)
        if uri != other:
            yield uri


def _probe(equipment: Dependencies, uri: str) -> FetchResponse | FetchFailure:
    request = FetchRequest(uri=uri, sink=_DiscardingSink(), limit=0, uncached=True)
    (outcome,) = equipment.fetcher.fetch([request])
    return outcome


def _is_gone(outcome: FetchResponse | FetchFailure, uri: str) -> bool:
    """Return whether there is nothing at an address; where it leads elsewhere proves nothing."""
    if not isinstance(outcome, FetchFailure) or not isinstance(outcome.error, ResourceMissingError):
        return False
    with suppress(OutOfScopeError):  # it leads to what is no address
        return normalise(outcome.error.uri or uri) == normalise(uri)
    return False


def _exists(outcome: FetchResponse | FetchFailure) -> bool:
    return isinstance(outcome, FetchResponse) or outcome.error.code == "too-big"


class _DiscardingSink:
    """Takes no bytes: whether something is there is told before the first one."""

    def write(self, chunk: bytes) -> None:
        """Let them go."""

    def restart(self) -> None:
        """Do nothing: nothing was kept."""
