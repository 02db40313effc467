"""What earlier readings of a Source left to be done, and whether it still counts.

What a pull decided, shown before anything of it is done: for plans that somebody looks at.
"""

import marshal
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import groupby, islice
from operator import attrgetter
from typing import Final, Self

from resourcesync.destination.budget import check_cancelled
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
    """Let what is known to be gone wait to be deleted, or stay, as the policy of this run says.

    That it is gone stays known: the next run may have another policy. What the filters do not want
    is deleted by a run that prunes, and by no later one: the Source has it.
    """
    state, rows = pull.state, gone_rows(pull.state)
    while group := list(islice(rows, _CHUNK)):
        chosen, settled = list[Pending](), list[str]()
        for row in group:
            now = pull.apply_policy(row)
            if now.task == PendingTask.RETAIN and row.reason == OUT_OF_SCOPE:
                now = now._replace(reason="", code=FILTERED)
            if now == row:
                continue
            if now.task == PendingTask.RETAIN and state.copy(row.uri) is None:
                settled.append(row.uri)
            else:
                chosen.append(now)
        state.commit(StateTransaction(pending=chosen, completed=settled))


def pending_deletion_of(pull: SyncSession, copy: Copy) -> Pending | None:
    """Return the task of a copy that the Source called deleted before, and that is still here.

    It says so only of a reading that came to its end, and only if nothing was taken back since:
    else this deletion may be what was. What an earlier list only did not list is not kept so: the
    list that is read now has the say, and where it proves no absence, nothing does.

    Args:
        pull: What the pull works with.
        copy: A copy that no list tells of now.
    """
    known = pull.state.pending_of(copy.uri)
    if (
        known is None
        or not is_gone(known)
        or known.generation > pull.sync_state.completed_generation
    ):
        return None
    if known.reason in (ABSENT, OUT_OF_SCOPE) or pull.sync_state.is_rolled_back:
        return None
    return pull.apply_policy(known._replace(generation=pull.generation))


def postponed_fetch(pull: SyncSession, listed: ListedEntry) -> Pending | None:
    """Return the row of a resource that failed often and rests; ``None`` when it is due.

    Args:
        pull: What the pull works with.
        listed: What the Source lists of it now.
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
    """Show what was decided to whoever reviews this pull, if anybody does.

    Args:
        pull: What the pull works with.
        mode: How it is going to be done.
        decide: Yields the decisions in URI order, as often as it is called.
    """
    review = pull.options.review
    if review is not None:
        review(mode, lambda: _with_pending_deletions(pull, decide()), 0)


class RecordedDecisions:
    """Decisions that were made, in a temporary file, so that they need not be made again.

    Of a mirror of millions most is in step: that is told by its number.

    Args:
        pull: What the pull works with.

    Attributes:
        same: How many copies are in step.
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
        """Yield the decisions, and note them as they pass."""
        for decision in decisions:
            if type(decision) is UpToDate:
                self.same += 1
            else:
                self._decisions.add(decision)
            yield decision

    def show(self, mode: Mode) -> None:
        """Show what was noted to whoever reviews this pull."""
        review = self._pull.options.review
        if review is not None:
            review(mode, self._recorded, self.same)

    def _recorded(self) -> Iterator[Decision]:
        return check_cancelled(
            _with_pending_deletions(self._pull, iter(self._decisions)),
            self._pull.dependencies.clock,
        )


_COPY_DECISIONS: Final = (Delete, Retain)


def uri_of(decision: Decision) -> str:
    """Return the normalised URI of what a decision is about."""
    return decision.listed.uri if isinstance(decision, Fetch) else decision.copy.uri


def _encode_decision(decision: Decision) -> bytes:
    """Return a decision as bytes; named tuples are plain ones there."""
    if isinstance(decision, Fetch):
        listed, before, *how = decision
        held = None if before is None else tuple(before)
        return marshal.dumps((-1, tuple(listed), held, *how))
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
    """Yield what is to be done for new changes, and what earlier runs left to be done.

    Args:
        pull: What the pull works with.
        rows: The last change of each URI that is new, in URI order.
    """
    waiting = merge(pull.state.pending(PendingTask.FETCH), gone_rows(pull.state), key=_by_uri)
    told: Iterator[ListedEntry | Pending] = merge(
        rows, waiting, key=_by_uri
    )  # what is new comes first
    for uri, group in groupby(told, key=_by_uri):
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
    """Yield decisions; a copy that is not listed and waits to be deleted is to be deleted."""
    for decision in decisions:
        if isinstance(decision, Retain) and not decision.listed:
            known = pull.state.pending_of(decision.copy.uri)
            if known is not None and is_gone(known) and not pull.retains(known.reason):
                yield Delete(decision.copy, known.reason)
                continue
        yield decision
