"""Slices of tasks to fetch: workers get them within the run's budget and return results."""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from resourcesync.cluster.lists import READ_PREFIX, host_of
from resourcesync.cluster.package_worker import MATCHED, PERMIT, WANTED, pairs_of
from resourcesync.cluster.units import SliceOutcome, SliceUnit, UnitOptions, WorkerContext
from resourcesync.cluster.worker import BEGUN_SUFFIX, owner_of, results_of, run_over_error
from resourcesync.destination.planner import as_unknown
from resourcesync.destination.tasks import next_try
from resourcesync.destination.transfers.budget import Budget
from resourcesync.destination.transfers.commit import TransferTally
from resourcesync.errors import BudgetError, StateError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock, Reporter
from resourcesync.ports.engines import UnitOutcome
from resourcesync.ports.mirror import Copy, Fixity, Pending, PendingTask, StateTransaction
from resourcesync.ports.tables import DoneRow, Tables, WorkRow, WorkSlice


def fit_to_budget(work_slice: WorkSlice, budget: Budget, tables: Tables) -> WorkSlice:
    """Return a slice, or its first rows when the budget does not allow all; at least one row.

    Args:
        work_slice: The slice.
        budget: The budget of the run.
        tables: Reads and writes slices.
    """
    if budget.fits(work_slice.size):
        return work_slice
    rows: list[WorkRow] = []
    size = 0
    for row in tables.read_work(work_slice.file):
        length = row.listed.length or 0
        if rows and not budget.fits(size + length):
            break
        rows.append(row)
        size += length
    if len(rows) == work_slice.rows:
        return work_slice
    file = f"{work_slice.file}-begin"
    tables.write_work(file, rows)
    return WorkSlice(file, len(rows), size)


_WORK_PREFIX: Final = "work/"
_DONE_PREFIX: Final = "done/"
PACKAGE_PREFIX: Final = "package/"
"""Prefix of the names of packages that are units."""
_CHUNK: Final = 1_000
_SAMPLE: Final = 100
_MOST_FAILURES: Final = 1_000


class SliceResults(NamedTuple):
    """Results of slices.

    Attributes:
        tally: The sum of all slices.
        complete: True if every slice was fetched.
    """

    tally: TransferTally
    complete: bool = True

    def plus(self, told: SliceOutcome) -> "SliceResults":
        """Return the sum with the results of one more unit."""
        return SliceResults(_sum(self.tally, told.tally), self.complete)


class _AbandonedUnit(NamedTuple):
    """Files of an abandoned unit in the exchange.

    Attributes:
        rows: The file of the rows that it may have installed.
        token: The file without which it installs nothing.
        sign: The file that it wrote when it began to.
    """

    rows: str
    token: str
    sign: str


def _abandoned_slice(work: str) -> _AbandonedUnit:
    return _AbandonedUnit(
        work, work, f"{_DONE_PREFIX}{work.removeprefix(_WORK_PREFIX)}{BEGUN_SUFFIX}"
    )


class SliceQueue:
    """The slices of one pull.

    Args:
        context: Workers and tables.
        report: Called with events.
    """

    def __init__(self, context: WorkerContext, clock: Clock, report: Reporter) -> None:
        self._workers = context
        self._clock = clock
        self._report = report

    def recover(self) -> None:
        """Accept the results of a killed run's workers; mark the rest as suspect.

        Those workers cannot install anything more: their slices are gone.
        """
        exchange = self._workers.exchange
        for name in sorted(exchange.names(_WORK_PREFIX)):
            unit = f"{_DONE_PREFIX}{name.removeprefix(_WORK_PREFIX)}"
            if not self._try_accept(partial(self.accept, name, unit, self._owner(unit))):
                self._abandon(_abandoned_slice(name))
        packages = sorted(exchange.names(PACKAGE_PREFIX))
        for base in dict.fromkeys(name.partition(".")[0] for name in packages):
            is_current = f"{base}{PERMIT}" in packages
            accept = partial(self.accept_package, base, self._owner(base))
            if not (is_current and self._try_accept(accept)):
                self.discard_package(base)
        for prefix in (_DONE_PREFIX, PACKAGE_PREFIX, WANTED, READ_PREFIX):
            for name in list(exchange.names(prefix)):
                exchange.remove(name)

    def _owner(self, unit: str) -> str:
        """Return the attempt whose results count; empty if no attempt was begun."""
        return owner_of(unit, self._workers.exchange) or ""

    @staticmethod
    def _try_accept(take: Callable[[], None]) -> bool:
        """Accept a unit's result; return whether it was readable. If not, its rows are suspect."""
        try:
            take()
        except StateError:
            return False
        return True

    def accept_package(self, base: str, attempt: str) -> None:
        """Store the results of an attempt at a package."""
        self._store_rows(pairs_of(base, attempt), results_of(base, attempt))
        self._workers.exchange.remove(f"{base}{PERMIT}")  # first: without it, it is abandoned
        self._drop(base)

    def discard_package(self, base: str) -> None:
        """Mark the rows that a package may have installed as suspect; it installs no more."""
        matched = f"{base}{MATCHED}"
        self._abandon(_AbandonedUnit(matched, f"{base}{PERMIT}", matched))
        self._drop(base)

    def _drop(self, unit: str) -> None:
        """Remove the files of a unit."""
        for name in list(self._workers.exchange.names(f"{unit}.")):
            self._workers.exchange.remove(name)

    def _abandon(self, left: "_AbandonedUnit") -> None:
        """Mark the rows that a unit may have installed as suspect, and stop it.

        It may be in progress: it writes a mark that it begins, then checks its permission. So both
        are read before the permission is withdrawn, and after.
        """
        exchange = self._workers.exchange
        file = exchange.receive(left.rows)
        was_begun = self._exists(left.sign)
        if was_begun and file is not None:
            self._mark_suspect(file)
        exchange.remove(left.token)
        if not was_begun and self._exists(left.sign):
            file = file or exchange.receive(left.rows)
            if file is not None:
                self._mark_suspect(file)

    def _exists(self, name: str) -> bool:
        return name in self._workers.exchange.names(name)

    def _mark_suspect(self, file: str) -> None:
        rows = self._workers.tables.read_work(file)
        while group := list(islice(rows, _CHUNK)):
            self._workers.state.commit(
                StateTransaction(suspect=[_suspect_copy(row) for row in group])
            )

    def current(self, outcome: UnitOutcome) -> UnitOutcome:
        """Return an outcome; that of an attempt which does not own its unit is a failure."""
        if outcome.failed is None:
            result = msgspec.json.decode(outcome.details, type=SliceOutcome)
            if result.attempt != self._owner(outcome.name):
                error = run_over_error(outcome.name)
                return outcome._replace(failed=(error.code, error.message))
        return outcome

    def decode_outcome(self, outcome: UnitOutcome) -> SliceOutcome:
        """Return the result of a unit; its network traffic is counted."""
        result = msgspec.json.decode(outcome.details, type=SliceOutcome)
        self._workers.traffic.add(result.requests, result.received)
        return result

    def fetch(
        self,
        slices: Iterable[WorkSlice],
        options: UnitOptions,
        budget: Budget,
        *,
        is_decided: bool = False,
        fail_fast: bool = False,
    ) -> SliceResults:
        """Fetch slices by workers; each result is stored as it arrives.

        Args:
            slices: Files of this machine.
            options: The options of the pull's units.
            budget: The budget of the run.
            is_decided: True if every row must be requested; see ``SliceUnit``.
            fail_fast: True to submit no more after the first failure.

        Raises:
            EngineError: The engine failed; complete results are stored.
            StorageError: The mirror cannot be written; the same holds.
        """
        waiting: dict[str, SliceUnit] = {}
        ended = SliceResults(TransferTally())
        total = _Total()
        units = self._units(slices, options, budget, waiting, total, is_decided=is_decided)
        try:
            with closing(closable(self._workers.fetch(units))) as outcomes:
                for outcome in outcomes:
                    unit = waiting.pop(outcome.name)
                    budget.release(unit.size)
                    ended = self._accept_outcome(unit, outcome, ended)
                    self._report_progress(ended, total)
                    if fail_fast and ended.tally.failed:
                        ended = ended._replace(complete=False)
                        break
        except BudgetError:
            budget.expire()
        for unit in waiting.values():
            self._abandon(_abandoned_slice(unit.work))
        return ended._replace(complete=ended.complete and not waiting and not budget.spent)

    def _units(
        self,
        slices: Iterable[WorkSlice],
        options: UnitOptions,
        budget: Budget,
        waiting: dict[str, SliceUnit],
        total: "_Total",
        *,
        is_decided: bool,
    ) -> Iterator[SliceUnit]:
        for number, whole in enumerate(slices):
            work_slice = fit_to_budget(whole, budget, self._workers.tables)
            if not budget.reserve(work_slice.size):
                return
            if work_slice is not whole:
                budget.spent = budget.spent or "bytes"
            name = f"{options.run}-{number:06}"
            self._workers.exchange.send(f"{_WORK_PREFIX}{name}", work_slice.file)
            rows = islice(self._workers.tables.read_work(work_slice.file), _SAMPLE)
            hosts = Counter(host_of(row.listed.loc) for row in rows)
            unit = SliceUnit(
                name=f"{_DONE_PREFIX}{name}",
                host=hosts.most_common(1)[0][0] if hosts else "",
                work=f"{_WORK_PREFIX}{name}",
                rows=work_slice.rows,
                size=work_slice.size,
                options=options,
                is_decided=is_decided,
            )
            total.rows += work_slice.rows
            total.size += work_slice.size
            waiting[unit.name] = unit
            yield unit

    def _accept_outcome(
        self, unit: SliceUnit, outcome: UnitOutcome, before: SliceResults
    ) -> SliceResults:
        outcome = self.current(outcome)
        if outcome.failed is not None:
            self._abandon(_abandoned_slice(unit.work))
            code, reason = outcome.failed
            message = f"{unit.rows} resources were not fetched: {reason}"
            self._report("warning", {"code": code, "message": message})
            return before._replace(complete=False)
        result = self.decode_outcome(outcome)
        self.accept(unit.work, unit.name, result.attempt)
        return before.plus(result)

    def accept(self, work: str, unit: str, attempt: str) -> None:
        """Store the results of an attempt at a slice; then its files are not needed any more.

        Args:
            work: The file of the rows.
            unit: The name of the unit.
            attempt: The attempt.

        Raises:
            StateError: They cannot be read; all are as before.
        """
        self._store_rows(work, results_of(unit, attempt))
        self._workers.exchange.remove(work)  # first: without it, the others are abandoned
        self._drop(unit)

    def _store_rows(self, work: str, done: str) -> None:
        exchange, tables = self._workers.exchange, self._workers.tables
        slice_, outcome = exchange.receive(work), exchange.receive(done)
        if slice_ is None or outcome is None:
            raise StateError(
                f"the results of {work} cannot be read",
                evidence=(("kept", "all copies"),),
                hint="check that the store is durable, then run the command again",
            )
        rows, ended = tables.read_work(slice_), tables.read_done(outcome)
        while group := list(islice(rows, _CHUNK)):
            same = list(islice(ended, _CHUNK))
            if [row.listed.uri for row in group] != [row.uri for row in same]:
                raise StateError(f"the results of {work} do not match its rows")
            self._store(list(zip(group, same, strict=True)))

    def _store(self, pairs: list[tuple[WorkRow, DoneRow]]) -> None:
        state = self._workers.state
        # Not the slice's own rows: it may be accepted again after the table was rebuilt.
        state.recall([done.uri for _, done in pairs])
        now = to_microseconds(self._clock.now())
        changed = [
            (w, _recorded(d.copy, w.copy, now))
            for w, d in pairs
            if d.copy is not None and d.copy != w.copy
        ]
        state.commit(
            StateTransaction(
                installed=[copy for _, copy in changed if copy.length >= 0],
                suspect=[copy for _, copy in changed if copy.length < 0],
                removed=[d.uri for w, d in pairs if d.copy is None and w.copy is not None],
                completed=[d.uri for _, d in pairs if d.pending is None],
                pending=[
                    self._with_earlier_tries(d.pending) for _, d in pairs if d.pending is not None
                ],
                now=now,
            )
        )
        for work, copy in changed:
            if copy.length >= 0:
                self._report_item(work, copy)
        for work, done in pairs:
            if done.pending is not None and done.pending.task == PendingTask.FETCH:
                self._report_failed(work, done.pending)

    def _with_earlier_tries(self, row: Pending) -> Pending:
        """Return a failed task with the tries of earlier runs: a worker does not know them."""
        known = self._workers.state.pending_of(row.uri)
        if known is None or known.task != row.task or row.task != PendingTask.FETCH:
            return row
        tries = known.tries + row.tries
        return row._replace(tries=tries, due=next_try(tries, row.first))

    def _report_item(self, work: WorkRow, copy: Copy) -> None:
        before = work.copy
        self._report(
            "item",
            {
                "status": "ok",
                "action": "create" if before is None else "update",
                "uri": work.listed.loc,
                "path": copy.path,
                "bytes": copy.length,
                "was_bytes": None if before is None else before.length,
                "hash": copy.digests,
                "verified": copy.fixity == "verified",
                "fixity": copy.fixity,
            },
        )

    def _report_failed(self, work: WorkRow, row: Pending) -> None:
        self._report(
            "item",
            {
                "status": "error",
                "action": "create" if work.copy is None else "update",
                "uri": row.loc,
                "path": row.path,
                "code": row.code,
                "reason": row.reason,
                "tries": row.tries,
                "kept": work.copy is not None,
            },
        )

    def _report_progress(self, ended: SliceResults, total: "_Total") -> None:
        self._report(
            "progress",
            {
                "done": ended.tally.done,
                "total": total.rows,
                "bytes_done": ended.tally.useful,
                "bytes_total": total.size,
                "failed": ended.tally.failed,
            },
        )


class _Total:
    """Sum of the submitted units."""

    def __init__(self) -> None:
        self.rows = 0
        self.size = 0


def _recorded(copy: Copy, before: Copy | None, now: int) -> Copy:
    """Return a copy as it is recorded: installed now, unless only its description changed.

    Whoever reads what came since a moment must not miss it.
    """
    is_same = before is not None and copy.installed == before.installed
    return copy if is_same else copy._replace(installed=now)


def _suspect_copy(row: WorkRow) -> Copy:
    """Return the suspect copy of a row with an unknown result; it may not exist."""
    listed, copy = row.listed, row.copy
    if copy is None:
        copy = Copy(listed.uri, listed.path, 0, "", "", None, "", "", "", Fixity.UNVERIFIED, 0)
    return as_unknown(copy)


def closable(outcomes: Iterator[UnitOutcome]) -> Generator[UnitOutcome, None, None]:
    """Return outcomes whose generator can be closed."""
    yield from outcomes


def _sum(tally: TransferTally, other: TransferTally) -> TransferTally:
    fixity = Counter(tally.fixity)
    fixity.update(other.fixity)
    return TransferTally(
        created=tally.created + other.created,
        updated=tally.updated + other.updated,
        same=tally.same + other.same,
        refetched=tally.refetched + other.refetched,
        failed=tally.failed + other.failed,
        open_dates=tally.open_dates + other.open_dates,
        absent=tally.absent + other.absent,
        skipped=tally.skipped + other.skipped,
        gone=tally.gone + other.gone,
        undecided=tally.undecided + other.undecided,
        useful=tally.useful + other.useful,
        contradicting=tally.contradicting + other.contradicting,
        fixity=dict(fixity),
        failures=[*tally.failures, *other.failures][:_MOST_FAILURES],
    )
