"""Decisions of a pull: pending tasks of earlier readings merged in, and recorded for review."""

import marshal
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import groupby, islice
from operator import attrgetter
from typing import Final, Self

from resourcesync.destination.budget import check_cancelled
from resourcesync.destination.cursor import Phase
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.planner import (
    ABSENT,
    DELETED_BY_SOURCE,
    FILTERED,
    OUT_OF_SCOPE,
    Decision,
    Delete,
    Fetch,
    ListedEntry,
    Match,
    Retain,
    UpToDate,
    apply_deletion_policy,
    is_proven,
    is_restored,
    match_copy,
)
from resourcesync.destination.reports import Mode
from resourcesync.destination.session import SyncSession
from resourcesync.destination.tasks import gone_rows, is_gone, listed_from_task
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.mirror import Copy, Pending, PendingTask, StateTransaction

_CHUNK: Final = 1_000


def apply_policy_to_pending(pull: SyncSession) -> None:
    """Set known deletions to pending or retained, by the deletion policy of this run.

    The resource stays known as gone: the next run may have another policy. Copies out of scope are
    deleted only by a run that prunes: the Source still has the resource.
    """
    state, rows = pull.state, gone_rows(pull.state)
    while group := list(islice(rows, _CHUNK)):
        changed, completed = list[Pending](), list[str]()
        for row in group:
            now = pull.apply_policy(row)
            if now.task == PendingTask.RETAIN and row.reason == OUT_OF_SCOPE:
                now = now._replace(reason="", code=FILTERED)
            if now == row:
                continue
            if now.task == PendingTask.RETAIN and state.copy(row.uri) is None:
                completed.append(row.uri)
            else:
                changed.append(now)
        state.commit(StateTransaction(pending=changed, completed=completed))


def pending_deletion_of(pull: SyncSession, copy: Copy) -> Pending | None:
    """Return the pending deletion of a copy that the Source called deleted before.

    It counts only if that reading was completed and no changes were withdrawn since: this deletion
    may be one of them. Mere absence from an earlier list does not count: the list read now decides,
    and where it proves no absence, nothing does.

    Args:
        pull: The session.
        copy: A copy that no list has now.
    """
    known = pull.state.pending_of(copy.uri)
    if known is None or not is_gone(known) or known.generation > pull.cursor.completed_generation:
        return None
    if known.reason in (ABSENT, OUT_OF_SCOPE) or pull.cursor.phase is Phase.ROLLED_BACK:
        return None
    return pull.apply_policy(known._replace(generation=pull.generation))


def postponed_fetch(pull: SyncSession, listed: ListedEntry) -> Pending | None:
    """Return the task of a resource that failed often and is postponed; ``None`` if it is due.

    Args:
        pull: The session.
        listed: The Source's present entry.
    """
    known = pull.state.pending_of(listed.uri)
    if known is None or known.task != PendingTask.FETCH or known.due <= pull.now:
        return None
    same = (known.listed, known.length, known.lastmod) == listed[3:6]
    if not same or listed_from_task(known).rivals != listed.rivals:
        return None  # the Source lists something new: try at once
    return known._replace(generation=pull.generation)


_by_uri = attrgetter("uri")


def show_decisions(pull: SyncSession, mode: Mode, decide: Callable[[], Iterator[Decision]]) -> None:
    """Pass the decisions to the review of this pull, if there is one.

    Args:
        pull: The session.
        mode: Mode of the pull.
        decide: Yields the decisions in URI order, at each call.
    """
    review = pull.options.review
    if review is not None:
        review(mode, lambda: _with_pending_deletions(pull, decide()), 0)


class RecordedDecisions:
    """Decisions in a temporary file, so that they need not be made again.

    Copies that are up to date, most of a large mirror, are only counted.

    Args:
        pull: The session.

    Attributes:
        same: Number of copies that are up to date.
    """

    def __init__(self, pull: SyncSession) -> None:
        self._pull = pull
        self._decisions: ExternalSorter[Decision] = ExternalSorter(
            key=uri_of,
            dump=_encode_decision,
            load=_decode_decision,
            spill=pull.dependencies.scratch,
        )
        self.same = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._decisions.close()

    def record(self, decisions: Iterable[Decision]) -> Iterator[Decision]:
        """Yield the decisions, and record them as they pass."""
        for decision in decisions:
            if type(decision) is UpToDate:
                self.same += 1
            else:
                self._decisions.add(decision)
            yield decision

    def show(self, mode: Mode) -> None:
        """Pass the recorded decisions to the review of this pull."""
        review = self._pull.options.review
        if review is not None:
            review(mode, self._recorded, self.same)

    def _recorded(self) -> Iterator[Decision]:
        return check_cancelled(
            _with_pending_deletions(self._pull, iter(self._decisions)),
            self._pull.dependencies.cancel,
        )


_COPY_DECISIONS: Final = (Delete, Retain)


def uri_of(decision: Decision) -> str:
    """Return the normalised URI of a decision's resource."""
    return decision.listed.uri if isinstance(decision, Fetch) else decision.copy.uri


def _encode_decision(decision: Decision) -> bytes:
    """Return a decision as bytes; named tuples are encoded as plain ones."""
    if isinstance(decision, Fetch):
        listed, before, *how = decision
        encoded = None if before is None else tuple(before)
        return marshal.dumps((-1, tuple(listed), encoded, *how))
    return marshal.dumps(
        (_COPY_DECISIONS.index(type(decision)), tuple(decision.copy), *decision[1:])
    )


def _decode_decision(data: bytes) -> Decision:
    kind, first, *rest = marshal.loads(data)  # noqa: S302 - a temporary file of our own
    if kind < 0:
        before, *how = rest
        return Fetch(ListedEntry._make(first), None if before is None else Copy._make(before), *how)
    made: Decision = _COPY_DECISIONS[kind](Copy._make(first), *rest)
    return made


def decide_changes(pull: SyncSession, rows: Iterable[ListedEntry]) -> Iterator[Decision]:
    """Yield decisions for new changes, and for pending tasks of earlier runs.

    Args:
        pull: The session.
        rows: The last new change of each URI, in URI order.
    """
    waiting = merge(pull.state.pending(PendingTask.FETCH), gone_rows(pull.state), key=_by_uri)
    merged: Iterator[ListedEntry | Pending] = merge(
        rows, waiting, key=_by_uri
    )  # new rows come first
    for uri, group in groupby(merged, key=_by_uri):
        first, copy = next(group), pull.state.copy(uri)
        if isinstance(first, ListedEntry):
            decisions = _decide_change(first, copy)
        else:
            decisions = _decide_task(first, copy, pull.now)
        yield from apply_deletion_policy(decisions, pull.options.delete)


def _decide_change(row: ListedEntry, copy: Copy | None) -> Iterator[Decision]:
    if row.change not in (ChangeKind.DELETED, FILTERED):
        if copy is not None and is_proven(copy, row):
            yield UpToDate(copy)
        else:
            yield _fetch_of(row, copy)
    elif copy is not None:
        is_gone = row.change == ChangeKind.DELETED
        if is_gone and not is_restored(copy):
            yield Delete(copy, DELETED_BY_SOURCE)
        else:
            yield Retain(copy, listed=not is_gone)


def _decide_task(task: Pending, copy: Copy | None, now: int) -> Iterator[Decision]:
    if task.task != PendingTask.FETCH:
        if copy is not None:
            is_gone = task.reason != OUT_OF_SCOPE
            yield Delete(copy, task.reason) if is_gone else Retain(copy, listed=True)
    elif task.due <= now:
        yield _fetch_of(listed_from_task(task), copy)


def _fetch_of(row: ListedEntry, copy: Copy | None) -> Fetch:
    return Fetch(
        row, copy, is_conditional=copy is not None and match_copy(copy, row) is not Match.DIFFERENT
    )


def _with_pending_deletions(pull: SyncSession, decisions: Iterator[Decision]) -> Iterator[Decision]:
    """Yield decisions; an unlisted copy with a pending deletion is to be deleted."""
    for decision in decisions:
        if isinstance(decision, Retain) and not decision.listed:
            known = pull.state.pending_of(decision.copy.uri)
            if known is not None and is_gone(known) and not pull.retains(known.reason):
                yield Delete(decision.copy, known.reason)
                continue
        yield decision
