"""Incremental synchronization of a mirror whose copies are a table (§12)."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, TypeVar

from resourcesync.cluster.baseline import SharedBaseline
from resourcesync.cluster.rows import row_of
from resourcesync.cluster.slices import SliceQueue
from resourcesync.cluster.worker_context import WorkerContext, unit_options
from resourcesync.destination.changes.history import ChangeHistory
from resourcesync.destination.incremental import Incremental
from resourcesync.destination.planner import ListedEntry
from resourcesync.destination.session import SyncOutcome, SyncSession
from resourcesync.ports.mirror import Pending
from resourcesync.ports.tables import WorkRow, WorkSlice

_AT_ONCE: Final = 2_000
_Row = TypeVar("_Row", bound=ListedEntry | Pending)


class SharedIncremental(Incremental):
    """Incremental synchronization; workers fetch what is due, if it is much.

    Args:
        pull: The session of the pull.
        are_others: True if the Source offers other lists now.
        context: Workers and tables.
    """

    def __init__(
        self, pull: SyncSession, are_others: Callable[[], bool], context: WorkerContext
    ) -> None:
        super().__init__(pull, are_others)
        self._workers = context

    def _from_baseline(self, *, gap: bool = True) -> SyncOutcome:
        pulled = SharedBaseline(self._pull, self._workers).run(gap=gap)
        assert pulled is not None, "only a conditional reading finds nothing new"
        return pulled

    def _new_rows(self, history: ChangeHistory) -> Iterator[ListedEntry]:
        return self._recalled(super()._new_rows(history))

    def _recalled(self, rows: Iterator[_Row]) -> Iterator[_Row]:
        """Yield rows; the table's records of them were looked up, many at once."""
        while group := list(islice(rows, _AT_ONCE)):
            self._workers.state.recall([row.uri for row in group])
            yield from group

    def _fetch_due(self, pulled: SyncOutcome, through: int) -> None:
        """Fetch the due tasks: a few of them locally, many by workers."""
        if pulled.plan.create + pulled.plan.update <= self._workers.slice_rows:
            super()._fetch_due(pulled, through)
            return
        pull, context = self._pull, self._workers
        options = unit_options(pull, context, at=through)
        slices = SliceQueue(context, pull.dependencies.clock, pull.dependencies.report)
        ended = slices.fetch(
            self._slices(), options, pull.budget, is_decided=True, fail_fast=pull.options.fail_fast
        )
        pulled.tally = ended.tally
        if ended.tally.undecided:
            pull.move(pull.cursor.with_baseline_due())
        pull.sync_state.write(unsure=True if ended.tally.open_dates else None)
        pulled.is_complete = ended.complete
        pulled.spent = pull.budget.spent

    def _slices(self) -> Iterator[WorkSlice]:
        folder, due = self._workers.folder(), self._due_fetches()
        number = 0
        while group := list(islice(due, self._workers.slice_rows)):
            file = f"{folder}/slice-{number:06}"
            rows = [WorkRow(row_of(fetch.listed), fetch.before) for fetch in group]
            self._workers.tables.write_work(file, rows)
            yield WorkSlice(file, len(rows), sum(fetch.listed.length or 0 for fetch in group))
            number += 1
