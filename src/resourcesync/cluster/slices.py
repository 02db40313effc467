"""Results of workers: what the slices of a pull brought is recorded, or marked as suspect."""

from collections.abc import Mapping
from itertools import islice
from typing import Final

import msgspec

from resourcesync.cluster.rows import DoneRow, read_done, read_fetches
from resourcesync.cluster.units import SliceOutcome, SliceUnit, WorkerContext
from resourcesync.cluster.worker import (
    BEGUN_SUFFIX,
    known_report,
    owner_of,
    results_of,
    run_over_error,
)
from resourcesync.destination.planner import Fetch, as_unknown
from resourcesync.destination.sync_state import SyncState, cursor_note, encode_notes
from resourcesync.destination.tasks import next_try
from resourcesync.destination.transfers.commit import TransferTally
from resourcesync.errors import StateError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock, Reporter
from resourcesync.ports.engines import UnitOutcome
from resourcesync.ports.mirror import Copy, Fixity, Pending, PendingTask, StateTransaction

WORK_PREFIX: Final = "work/"
"""Prefix of the names of slices: as long as one exists, its workers may install copies."""
DONE_PREFIX: Final = "done/"
"""Prefix of the names of units, and of all files that their workers write."""
_CHUNK: Final = 1_000


class SliceResults:
    """The results of the slices of a mirror.

    Args:
        context: Workers and their exchange.
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
        for work in sorted(exchange.names(WORK_PREFIX)):
            unit = f"{DONE_PREFIX}{work.removeprefix(WORK_PREFIX)}"
            if not self._try_accept(work, unit):
                self.abandon(work)
        for name in list(exchange.names(DONE_PREFIX)):
            exchange.remove(name)

    def _try_accept(self, work: str, unit: str) -> bool:
        """Accept a unit's results; return whether they were readable. If not, all is suspect."""
        report = known_report(unit, self._workers.exchange)
        if report is None:
            return False
        try:
            self._accept(work, unit, msgspec.json.decode(report, type=SliceOutcome))
        except (msgspec.DecodeError, UnicodeDecodeError, StateError):
            return False
        return True

    def accept(self, unit: SliceUnit, outcome: UnitOutcome) -> TransferTally | None:
        """Record the results of a slice, and return their counts.

        If the unit failed, or another attempt owns it, the slice is abandoned; return ``None``.

        Raises:
            StateError: The results cannot be read; all are as before.
        """
        result = self._result_of(outcome)
        if result is None:
            self.abandon(unit.work)
            error = run_over_error(outcome.name)
            code, reason = outcome.failed or (error.code, error.message)
            message = f"{unit.rows} resources were not fetched: {reason}"
            self._report("warning", {"code": code, "message": message})
            return None
        self._workers.traffic.add(result.requests, result.received)
        self._accept(unit.work, unit.name, result)
        return result.tally

    def _result_of(self, outcome: UnitOutcome) -> SliceOutcome | None:
        """Return the result of the attempt that owns its unit; ``None`` for others."""
        if outcome.failed is not None:
            return None
        result = msgspec.json.decode(outcome.details, type=SliceOutcome)
        is_owner = result.attempt == owner_of(outcome.name, self._workers.exchange)
        return result if is_owner else None

    def abandon(self, work: str) -> None:
        """Mark the rows that a slice may have installed as suspect, and stop its workers.

        It may be in progress: it writes a mark that it begins, then checks its permission. So both
        are read before the permission is withdrawn, and after.

        Args:
            work: The file of the rows, without which nothing is installed.
        """
        exchange = self._workers.exchange
        mark = f"{DONE_PREFIX}{work.removeprefix(WORK_PREFIX)}{BEGUN_SUFFIX}"
        file = exchange.receive(work)
        was_begun = self._exists(mark)
        if was_begun and file is not None:
            self._mark_suspect(file)
        exchange.remove(work)
        if not was_begun and self._exists(mark) and file is not None:
            self._mark_suspect(file)

    def _exists(self, name: str) -> bool:
        return name in self._workers.exchange.names(name)

    def _mark_suspect(self, file: str) -> None:
        fetches = read_fetches(file)
        while group := list(islice(fetches, _CHUNK)):
            self._workers.state.commit(StateTransaction(suspect=list(map(_suspect_copy, group))))

    def _accept(self, work: str, unit: str, result: SliceOutcome) -> None:
        """Record the results of an attempt at a slice; then its files are not needed any more."""
        exchange = self._workers.exchange
        self._store_rows(work, results_of(unit, result.attempt), self._notes(result.tally))
        exchange.remove(work)  # first: without it, the others are abandoned
        for name in list(exchange.names(f"{unit}.")):
            exchange.remove(name)

    def _notes(self, tally: TransferTally) -> dict[str, str]:
        """Return the notes that are recorded with the results, as of a transfer by this machine."""
        notes = encode_notes(unsure=True if tally.open_dates else None)
        if tally.undecided:
            notes |= cursor_note(SyncState(self._workers.state).cursor.with_baseline_due())
        return notes

    def _store_rows(self, work: str, done: str, notes: Mapping[str, str]) -> None:
        exchange = self._workers.exchange
        slice_, outcome = exchange.receive(work), exchange.receive(done)
        if slice_ is None or outcome is None:
            raise StateError(
                f"the results of {work} cannot be read",
                evidence=(("kept", "all copies"),),
                hint="check that the store is durable, then run the command again",
            )
        rows, ended = read_fetches(slice_), read_done(outcome)
        while group := list(islice(rows, _CHUNK)):
            same = list(islice(ended, _CHUNK))
            if [fetch.listed.uri for fetch in group] != [row.uri for row in same]:
                raise StateError(f"the results of {work} do not match its rows")
            self._store(list(zip(group, same, strict=True)), notes)

    def _store(self, pairs: list[tuple[Fetch, DoneRow]], notes: Mapping[str, str]) -> None:
        now = to_microseconds(self._clock.now())
        changed = [
            (fetch, _recorded(done.copy, fetch.before, now))
            for fetch, done in pairs
            if done.copy is not None and done.copy != fetch.before
        ]
        self._workers.state.commit(
            StateTransaction(
                installed=[copy for _, copy in changed if copy.length >= 0],
                suspect=[copy for _, copy in changed if copy.length < 0],
                removed=[d.uri for f, d in pairs if d.copy is None and f.before is not None],
                completed=[d.uri for _, d in pairs if d.pending is None],
                pending=[
                    self._with_earlier_tries(d.pending) for _, d in pairs if d.pending is not None
                ],
                notes=notes,
                now=now,
            )
        )
        for fetch, copy in changed:
            if copy.length >= 0:
                self._report_item(fetch, copy)
        for fetch, done in pairs:
            if done.pending is not None and done.pending.task == PendingTask.FETCH:
                self._report_failed(fetch, done.pending)

    def _with_earlier_tries(self, row: Pending) -> Pending:
        """Return a failed task with the tries of earlier runs: a worker does not know them."""
        known = self._workers.state.pending_of(row.uri)
        if known is None or known.task != row.task or row.task != PendingTask.FETCH:
            return row
        tries = known.tries + row.tries
        return row._replace(tries=tries, due=next_try(tries, row.first))

    def _report_item(self, fetch: Fetch, copy: Copy) -> None:
        before = fetch.before
        self._report(
            "item",
            {
                "status": "ok",
                "action": "create" if fetch.creates else "update",
                "uri": fetch.listed.loc,
                "path": copy.path,
                "bytes": copy.length,
                "was_bytes": None if before is None else before.length,
                "hash": copy.digests,
                "verified": copy.fixity == Fixity.VERIFIED,
                "fixity": copy.fixity,
            },
        )

    def _report_failed(self, fetch: Fetch, row: Pending) -> None:
        self._report(
            "item",
            {
                "status": "error",
                "action": "create" if fetch.creates else "update",
                "uri": row.loc,
                "path": row.path,
                "code": row.code,
                "reason": row.reason,
                "tries": row.tries,
                "kept": not fetch.creates,
            },
        )


def _recorded(copy: Copy, before: Copy | None, now: int) -> Copy:
    """Return a copy as it is recorded: installed now, unless only its description changed.

    Whoever reads what came since a moment must not miss it.
    """
    is_same = before is not None and copy.installed == before.installed
    return copy if is_same else copy._replace(installed=now)


def _suspect_copy(fetch: Fetch) -> Copy:
    """Return the suspect copy of a fetch with an unknown result; it may not exist."""
    listed, copy = fetch.listed, fetch.before
    if copy is None:
        copy = Copy(listed.uri, listed.path, 0, "", "", None, "", "", "", Fixity.UNVERIFIED, 0)
    return as_unknown(copy)
