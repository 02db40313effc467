"""Baseline and incremental synchronization by workers (§5.2): read lists, join, fetch slices.

Before the slices, the packages of a Resource Dump are units, where many resources are needed (§11).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from heapq import merge
from itertools import chain, islice
from operator import attrgetter
from typing import Final, TypeVar

import msgspec
from msgspec import structs

from resourcesync.cluster.lists import DistributedLists, host_of
from resourcesync.cluster.package_worker import INDEX, PERMIT, WANTED
from resourcesync.cluster.slices import PACKAGE_PREFIX, SliceQueue, SliceResults, closable
from resourcesync.cluster.units import (
    PackageUnit,
    UnitOptions,
    WorkerContext,
    listed_of,
    row_of,
    unit_options,
)
from resourcesync.cluster.worker import write_file
from resourcesync.destination.baseline import Baseline
from resourcesync.destination.changes.history import ChangeHistory
from resourcesync.destination.dumps.dump_policy import ResourceCount, is_dump_worth_checking
from resourcesync.destination.incremental import Incremental
from resourcesync.destination.listed_rows import store_entry_links
from resourcesync.destination.lists.packages import DumpPackage
from resourcesync.destination.lists.resource_reader import ListSnapshot
from resourcesync.destination.planner import (
    Decision,
    DecisionCounts,
    ListedEntry,
    Postponed,
    Retain,
    ReviewedDecision,
    UpToDate,
    as_unknown,
    count_decisions,
    decide,
    decide_all,
    deduplicate,
    listed_from_task,
)
from resourcesync.destination.reports import Mode
from resourcesync.destination.session import SyncOutcome, SyncSession
from resourcesync.destination.tasks import gone_rows
from resourcesync.destination.transfers.commit import TransferTally, combine_tallies
from resourcesync.errors import BudgetError, ConfigurationError, DocumentError, SourceError
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.mirror import Pending, PendingTask, ProcessedDocument, StateTransaction
from resourcesync.ports.tables import DoneRow, JoinResult, WorkRow, WorkSlice


class PackageFetcher:
    """The packages of the Resource Dump of a pull.

    Args:
        context: Workers and tables.
        slices: The queue that accepts results.
    """

    def __init__(self, pull: SyncSession, context: WorkerContext, slices: SliceQueue) -> None:
        self._pull = pull
        self._workers = context
        self._slices = slices

    def fetch(self, joined: JoinResult, options: UnitOptions) -> SliceResults | None:
        """Unpack packages; return ``None`` when that is not worthwhile, or there is no dump.

        All packages are fetched or none: their manifests are not read before. So it is worthwhile
        when most of the Source's resources are needed, or the operator requests it.

        Args:
            joined: The needed resources.
            options: The options of the pull's units.
        """
        uri, policy = self._pull.found.resource_dump, self._pull.options.dumps
        wanted = joined.create + joined.update
        is_most = policy == "always" or wanted > joined.same
        if (
            uri is None
            or not is_most
            or not is_dump_worth_checking(ResourceCount(count=wanted), policy)
        ):
            return None
        try:
            packages = self._pull.packages.packages_at(uri)
        except (SourceError, DocumentError) as error:
            self._pull.warn("bad-dump", f"the dump at {uri} cannot be used: {error.message}")
            return None
        self._send_wanted(joined.slices)
        try:
            return self._unpack_all(packages, options)
        finally:
            for name in (INDEX, *self._workers.exchange.names(WANTED)):
                self._workers.exchange.remove(name)

    def _send_wanted(self, slices: Sequence[WorkSlice]) -> None:
        """Write the needed resources for the workers."""
        index: list[tuple[str, str]] = []
        for number, work_slice in enumerate(slices):
            name = f"{WANTED}{number:06}"
            first = next(iter(self._workers.tables.read_work(work_slice.file)))
            self._workers.exchange.send(name, work_slice.file)
            index.append((name, first.listed.uri))
        file = f"{self._workers.folder()}/index"
        write_file(file, msgspec.json.encode(index))
        self._workers.exchange.send(INDEX, file)

    def _unpack_all(self, packages: Iterable[DumpPackage], options: UnitOptions) -> SliceResults:
        ended, waiting = SliceResults(TransferTally()), dict[str, int | None]()
        units = self._units(packages, options, waiting)
        try:
            with closing(closable(self._workers.unpack(units))) as outcomes:
                for outcome in map(self._slices.current, outcomes):
                    self._pull.budget.release(waiting.pop(outcome.name, None))
                    if outcome.failed is None:
                        result = self._slices.decode_outcome(outcome)
                        self._slices.accept_package(outcome.name, result.attempt)
                        ended = ended.plus(result)
                    else:
                        message = f"a package cannot be used: {outcome.failed[1]}"
                        self._pull.warn("bad-package", message)
                        self._slices.discard_package(outcome.name)
        except BudgetError:
            self._pull.budget.expire()
        for name in waiting:
            self._slices.discard_package(name)
        return ended

    def _units(
        self, packages: Iterable[DumpPackage], options: UnitOptions, waiting: dict[str, int | None]
    ) -> Iterator[PackageUnit]:
        token = f"{self._workers.folder()}/token"
        write_file(token, b"wanted")
        for number, offered in enumerate(packages):
            if not self._pull.budget.reserve(offered.entry.length):
                return
            name = f"{PACKAGE_PREFIX}{options.run}-{number:06}"
            self._workers.exchange.send(f"{name}{PERMIT}", token)
            waiting[name] = offered.entry.length
            host, found = host_of(offered.uri), self._pull.discovered
            yield PackageUnit(name=name, host=host, offered=offered, found=found, options=options)


_CHUNK: Final = 1_000
_LEAST_ROWS: Final = 500
_SLICES: Final = 64
_PART_ROWS: Final = 1_000_000


class SharedBaseline(Baseline):
    """Baseline synchronization of a mirror whose copies are a table.

    Args:
        context: Workers and tables.
    """

    def __init__(self, pull: SyncSession, context: WorkerContext) -> None:
        super().__init__(pull)
        self._workers = context
        self._join_again: Callable[[], JoinResult]
        self._listed_files: tuple[list[str], list[str]] = ([], [])

    def run(
        self, *, gap: bool, known: ProcessedDocument | None = None, newer: bool = False
    ) -> SyncOutcome | None:
        """Bring the mirror in step with the Resource List and the changes since; see ``Baseline``.

        Raises:
            ResourceSyncError: It failed; the copies in place are unchanged.
        """
        pull, context = self._pull, self._workers
        if pull.selection.follows_links:
            raise ConfigurationError(
                "links are not followed where the copies are a table",
                hint="follow no links, or store this mirror in a folder",
            )
        lists = DistributedLists(pull, context, unit_options(pull, context, at=0))
        with ExitStack() as held:
            snapshot = lists.read(self._resource_list(), known)
            if snapshot is None or (newer and not self._is_newer(snapshot)):
                return None
            self._check_time(snapshot, gap=gap)
            history = self._read_changes(snapshot, held)
            joined = self._compare(snapshot, history, lists.files)
            # The new reading may be of a newer list, with clashes of its own.
            while (joined.create or pull.sync_state.relocated_uris) and self._names_change():
                lists, snapshot = self._read_again()
                joined = self._compare(snapshot, history, lists.files)
            return self._carry_out(snapshot, history, joined)

    def _names_change(self) -> bool:
        listed = self._workers.tables.read_listed
        pairs = chain.from_iterable(map(listed, chain.from_iterable(self._listed_files)))
        return self._pull.path_assignment.assign_all(map(listed_of, pairs))

    def _read_again(self) -> tuple[DistributedLists, ListSnapshot]:
        """Read the lists again with the present names of resources."""
        lists = DistributedLists(
            self._pull, self._workers, unit_options(self._pull, self._workers, at=0)
        )
        snapshot = lists.read(self._resource_list(), None)
        assert snapshot is not None, "an unconditional reading always returns a snapshot"
        return lists, snapshot

    def _compare(
        self, snapshot: ListSnapshot, history: ChangeHistory | None, listed: list[str]
    ) -> JoinResult:
        """Join; a list that has a URI twice shows only now, and counts for all."""
        refusals = self._pull.selection.refusals
        refused = refusals.count
        changed = self._write_changes(history, listed)
        self._listed_files = (listed, changed)
        self._join_again = partial(self._join, listed, changed, self._rows(snapshot))
        joined = self._join_again()
        is_news = refusals.count and not refused
        return self._compare(snapshot, history, listed) if is_news and changed else joined

    def _write_changes(self, history: ChangeHistory | None, listed: list[str]) -> list[str]:
        """Write the last change of each URI, or its contradiction to the Resource List."""
        if history is None:
            return []
        file = f"{self._workers.folder()}/changed"
        entries = merge(self._contradicted(history, listed), history.sorter, key=attrgetter("uri"))
        # Resources that the Resource List decides need no row.
        rows = (row for row in deduplicate(entries) if row.change)
        named = self._pull.selection.with_current_paths(self._without_undated_deletions(rows))
        written = self._workers.tables.write_listed(file, map(row_of, named))
        return [file] if written else []

    def _contradicted(self, history: ChangeHistory, listed: list[str]) -> Iterator[ListedEntry]:
        """Yield the Resource List's entries for resources with changes of unknown age."""
        tables, file = self._workers.tables, f"{self._workers.folder()}/undated"
        undated = (row_of(row) for row in history.sorter if row.undated)
        if tables.write_listed(file, undated):
            yield from map(listed_of, tables.find_listed(listed, [file]))

    def _rows(self, snapshot: ListSnapshot) -> int:
        """Return the most rows of a slice: few enough that all workers have some."""
        return min(self._workers.slice_rows, max(_LEAST_ROWS, snapshot.entries // _SLICES))

    def _join(self, listed: list[str], changed: list[str], rows: int) -> JoinResult:
        context = self._workers
        context.fold()
        resting = f"{context.folder()}/resting"
        is_resting = context.tables.write_listed(resting, map(row_of, self._resting()))
        joined = context.tables.join(
            listed,
            changed,
            self._table_files(),
            [resting] if is_resting else [],
            into=context.folder(),
            rows=rows,
        )
        for row in context.tables.read_listed(joined.conflicts):
            self._pull.selection.refusals.add(
                listed_of(row).loc,
                "duplicate-uri",
                "the Resource List lists it twice, with different content",
            )
        return joined

    def _table_files(self) -> list[str]:
        """Return the table; for a requested baseline, without the rows of missing copies."""
        state = self._workers.state
        if self._pull.options.mode != "baseline":
            return state.files
        folder = self._workers.folder()
        lost = f"{folder}/lost"
        if not self._workers.tables.write_done(lost, self._lost()):
            return state.files
        parts = list(zip(state.parts, state.files, strict=True))
        merged = self._workers.tables.merge(
            parts, [lost], into=folder, stem="looked", rows=_PART_ROWS
        )
        return [file for _, file in merged]

    def _lost(self) -> Iterator[DoneRow]:
        with self._pull.dependencies.copies.inspect() as look:
            for copy in self._workers.state.copies():
                if look.signature(copy.path) != copy.signature:
                    yield DoneRow(copy.uri, as_unknown(copy), None)

    def _resting(self) -> Iterator[ListedEntry]:
        """Yield the entries that failed often and are not due yet."""
        for row in self._pull.state.pending(PendingTask.FETCH):
            if row.due > self._pull.now:
                yield listed_from_task(row)

    def _carry_out(
        self, snapshot: ListSnapshot, history: ChangeHistory | None, joined: JoinResult
    ) -> SyncOutcome:
        pull = self._pull
        through = self._assess(snapshot, history)
        pulled = self._planned(joined, snapshot)
        if pull.options.dry_run:
            return pulled
        pull.begin()
        self._write_listed_entries()
        unlisted = self._fetches(self._without_row(joined), through)
        if any(True for _ in unlisted):
            raise AssertionError("what nothing lists is not fetched")
        self._carry_over_resting(joined)
        if pull.options.lists_only:
            pulled.are_deletions_done = False
            self._store_tasks(self._in_slices(joined), through)
        else:
            self._fetch_slices(pulled, joined, through)
        self._postpone_unread(pulled)
        self._is_undecided = pulled.tally.undecided > 0
        if pulled.is_complete:
            self._finish(
                snapshot,
                history,
                through,
                unsure=joined.has_unprovable or pulled.tally.open_dates > 0,
            )
            pulled.is_complete = not snapshot.outdated_parts
        if pulled.are_deletions_done:
            pull.delete_pending(pulled)
        return pulled

    def _write_listed_entries(self) -> None:
        """Store the links of entries: the lists first, then the later changes."""
        pull = self._pull
        for files, from_start in zip(self._listed_files, (True, False), strict=True):
            for file in files if pull.selection.has_entries else ():
                rows = map(listed_of, self._workers.tables.read_listed(file))
                generation = pull.generation
                store_entry_links(
                    pull.state, rows, generation=generation, now=pull.now, anew=from_start
                )

    def _planned(self, joined: JoinResult, snapshot: ListSnapshot) -> SyncOutcome:
        counts, review = self._count(joined), self._pull.options.review
        foreseen = self._pull.report_plan(counts.plan)
        if review is not None:
            review(Mode.BASELINE, partial(self._reviewed, joined), joined.same)
        return self._outcome(counts, foreseen, snapshot)

    def _count(self, joined: JoinResult) -> DecisionCounts:
        """Count the decisions; those to fetch are counted by the comparison already."""
        rows = sum(work_slice.rows for work_slice in joined.slices)
        has_deleted = rows > joined.create + joined.update
        deleted = self._in_slices(joined, {ChangeKind.DELETED}) if has_deleted else ()
        counts = count_decisions(chain(deleted, self._unlisted(joined)), Mode.BASELINE)
        plan = structs.replace(
            counts.plan,
            same=joined.same,
            create=joined.create,
            update=joined.update,
            size=joined.size,
            unsized=joined.unsized,
        )
        return counts._replace(plan=plan, postponed=joined.deferred_rows)

    def _reviewed(self, joined: JoinResult) -> Iterator[ReviewedDecision]:
        for decision in chain(self._in_slices(joined), self._without_row(joined)):
            if not isinstance(decision, UpToDate | Postponed):
                yield decision

    def _in_slices(self, joined: JoinResult, changes: Collection[str] = ()) -> Iterator[Decision]:
        """Yield the decisions about the rows of slices: all, or those with some changes."""
        for work_slice in joined.slices:
            for row in self._workers.tables.read_work(work_slice.file):
                if changes and row.listed.change not in changes:
                    continue
                decision = decide(row.copy, listed_of(row.listed), None, self._policy)
                if decision is not None:
                    yield decision

    def _without_row(self, joined: JoinResult) -> Iterator[Decision]:
        """Yield the decisions about copies that are in no slice."""
        filtered = [joined.filtered] if joined.filtered_rows else []
        for copy in self._workers.tables.read_copies(filtered):
            yield Retain(copy, listed=True)
        yield from self._unlisted(joined)

    def _unlisted(self, joined: JoinResult) -> Iterator[Decision]:
        unlisted = [joined.unlisted] if joined.unlisted_rows else []
        copies = self._workers.tables.read_copies(unlisted)
        return decide_all(copies, (), gone_rows(self._pull.state), self._policy)

    def _carry_over_resting(self, joined: JoinResult) -> None:
        """Mark the tasks that are not due as part of this reading, too."""
        if not joined.deferred_rows:
            return
        rows: list[Pending] = []
        for listed in self._workers.tables.read_listed(joined.deferred):
            known = self._pull.state.pending_of(listed.uri)
            if known is not None:
                rows.append(known._replace(generation=self._pull.generation))
            if len(rows) >= _CHUNK:
                self._pull.state.commit(StateTransaction(pending=rows))
                rows = []
        self._pull.state.commit(StateTransaction(pending=rows))

    def _fetch_slices(self, pulled: SyncOutcome, joined: JoinResult, through: int) -> None:
        pull, context = self._pull, self._workers
        options = unit_options(pull, context, at=through)
        slices = SliceQueue(context, pull.dependencies.clock, pull.dependencies.report)
        packed = PackageFetcher(pull, context, slices).fetch(joined, options)
        if packed is not None:
            joined = self._join_again()
        ended = slices.fetch(joined.slices, options, pull.budget, fail_fast=pull.options.fail_fast)
        tally = ended.tally if packed is None else combine_tallies(packed.tally, ended.tally)
        pulled.tally = tally
        pulled.is_complete = pulled.are_deletions_done = ended.complete
        pulled.spent = pull.budget.spent


_AT_ONCE: Final = 2_000
_Row = TypeVar("_Row", bound=ListedEntry | Pending)


class SharedIncremental(Incremental):
    """Incremental synchronization; workers fetch what is due, if it is much.

    Args:
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
