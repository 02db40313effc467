"""Runs: their plan, report and record in the mirror's state; what a review sees.

In a report nothing that a Source lists is left out, and nothing is counted as done that is not.
"""

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import Final, Self

import msgspec
from msgspec.structs import replace

from resourcesync import ports
from resourcesync.destination import planner, reports, sync_state
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.options import Dependencies
from resourcesync.destination.pending_tasks import (
    DAMAGED,
    EDITED,
    EDITED_REASON,
    LOCAL_CHANGE,
    UNAVAILABLE_CODES,
    failed_item,
)
from resourcesync.destination.pull_session import SyncOutcome, SyncSession
from resourcesync.destination.reports import MirrorState as Word
from resourcesync.destination.sync_state import SyncState
from resourcesync.destination.transfers.verification import inspected_copy
from resourcesync.discovery.known_addresses import present_uri
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Copy, Fixity, PendingCounts, PendingTask, RunRow
from resourcesync.model.timestamps import to_microseconds


class MirrorRun:
    """Run that may write to the mirror; it begins with this object."""

    def __init__(self, equipment: Dependencies) -> None:
        self._dependencies = equipment
        self._began_at = to_microseconds(equipment.clock.now())
        self._started_monotonic = equipment.clock.monotonic()
        self.id = new_run_id()

    @property
    def seconds(self) -> float:
        """Duration of the run so far."""
        return self._dependencies.clock.monotonic() - self._started_monotonic

    def record(self, report: reports.RunReport, mode: str) -> None:
        """Record the outcome of the run.

        A mirror that is in sync is so up to the start of the run: what the Source published later
        is unknown.
        """
        counts = msgspec.json.encode(replace(report, failures=())).decode()
        word, state = report.state, self._dependencies.state
        notes = SyncState(state)
        outcome = "ok" if word is Word.IN_SYNC else report.spent or word.value
        certificate = self._certificate_note(is_complete=bool(mode))
        now = to_microseconds(self._dependencies.clock.now())
        row = RunRow(self.id, self._began_at, now, mode, outcome, counts)
        if word is not Word.IN_SYNC:  # after a kill between the two it must not count as in sync
            refuted = mode == "repair" or None  # it compares all, as an audit does
            notes.write(word=word, certificate_until=certificate, refuted=refuted)
            state.add_run(row)
            return
        state.add_run(row)
        notes.write(
            word=word,
            in_sync_at=None if report.spent else self._began_at,
            moved_from="" if notes.moved_from else None,  # the move is complete
            certificate_until=certificate,
            refuted=False,
        )

    def record_failure(self, error: BaseException) -> None:
        """Record the error that ended the run."""
        certificate = self._certificate_note(is_complete=False)
        state, clock = self._dependencies.state, self._dependencies.clock
        failed, began = reports.FailedRun.of(error), (self.id, self._began_at)
        record_failed_run(failed, state, clock, began, certificate_until=certificate)

    def _certificate_note(self, *, is_complete: bool) -> int | None:
        until = self._dependencies.certificate_until()
        known = SyncState(self._dependencies.state).certificate_until
        if until == known or (until is None and not is_complete):
            return None
        return 0 if until is None else to_microseconds(until)


def record_failed_run(
    failed: reports.FailedRun,
    state: SqliteMirrorState,
    clock: ports.Clock,
    began: tuple[str, int] | None = None,
    *,
    certificate_until: int | None = None,
) -> None:
    """Record the error that ended a pull, of this id and start; else before it began."""
    now = to_microseconds(clock.now())
    run, started = began or (new_run_id(), now)
    notes, counts = SyncState(state), msgspec.json.encode(failed).decode()
    notes.write(word=failed.state, failed=(now, failed), certificate_until=certificate_until)
    state.add_run(RunRow(run, started, now, "", failed.code, counts))


def new_run_id() -> str:
    """Return the id of a run."""
    return os.urandom(6).hex()


_MAX_REPORTED_FAILURES: Final = 100


def count_listed(
    pulled: SyncOutcome, state: SqliteMirrorState, memory: SyncState
) -> reports.ListedCounts:
    """Count all selected resources that the Source is known to list, by result.

    A baseline counts the list itself. Other runs read only changes: they count the copies and
    pending tasks.
    """
    tally, plan, counts = pulled.tally, pulled.plan, state.pending_counts()
    applied = tally.created + tally.updated - tally.contradicting
    pending = counts.of_task(PendingTask.FETCH)
    absent, skipped = sync_state.count_unavailable(counts, memory)
    if pulled.selected_count is not None:
        unchanged, refused = plan.same + tally.same, pulled.refused_count
        if not (pulled.is_complete and pulled.is_written):  # by addition, not as stored
            pending = pulled.selected_count - tally.gone - unchanged - applied
            absent, skipped = tally.absent, tally.skipped
    else:
        outdated = state.pending_with_copy(PendingTask.FETCH) if pending else 0
        if not pulled.is_written:
            pending, outdated = pulled.postponed
            pending, outdated = pending + plan.create + plan.update, outdated + plan.update
        pending, outdated = pending + pulled.untold[0], outdated + pulled.untold[1]
        not_listed = counts.of_task(PendingTask.RETAIN) + counts.of_task(PendingTask.DELETE)
        unchanged = max(0, state.count() - not_listed - outdated - applied)
        refused = max(memory.refused_count, pulled.refused_count)
    pending -= absent + skipped
    right = reports.ListedCounts(unchanged=unchanged, applied=applied, refused=refused)
    return replace(right, pending=pending, absent=absent, skipped=skipped)


def build_report(
    run: str, pulled: SyncOutcome, equipment: Dependencies, *, dry_run: bool
) -> reports.RunReport:
    """Return the report of a run."""
    state, memory = equipment.state, SyncState(equipment.state)
    tally, deletions, counts = pulled.tally, pulled.deletions, state.pending_counts()
    held = deletions.held if dry_run else memory.on_hold(counts)
    held = held if pulled.are_deletions_done else 0
    edited = len(deletions.failures) if dry_run else None  # else as stored
    damaged = sum(1 for _ in memory.damaged_retained()) - deletions.mended
    reasons = Counter({DAMAGED: damaged}) + _failed_reasons(memory, counts, edited)
    resources, failed, traffic = state.count(), reasons.total(), equipment.traffic()
    waiting = tally.undecided or memory.refused_count or counts.of_task(PendingTask.DELETE)
    listed = replace(count_listed(pulled, state, memory), **sync_state.listed_since(memory))
    faults = _list_faults(pulled, listed, state, memory)
    behind = failed or waiting or memory.has_gap or not pulled.is_complete or faults.absent_below
    behind = damaged or _stays_behind(pulled, memory) if dry_run else behind
    return reports.RunReport(
        pull=run,
        mode=pulled.mode,
        state=Word.STOPPED if held else Word.BEHIND if behind else Word.IN_SYNC,
        dry_run=dry_run,
        spent=pulled.spent,
        resources=resources,
        listed=listed,
        created=tally.created,
        updated=tally.updated,
        deleted=deletions.deleted,
        failed=failed,
        reasons=dict(reasons),
        held=held,
        held_of=(deletions.held_of or memory.held_of or 0) if held else 0,
        retained=_retained_counts(pulled, state, counts, memory, edited),
        fetched=_fetched_counts(pulled),
        evidence=memory.evidence(resources, tally.by_request),
        faults=faults,
        requests=traffic[0],
        received_bytes=traffic[1],
        as_of=memory.as_of,
        failures=_first_failures(pulled, memory),
    )


def _stays_behind(pulled: SyncOutcome, memory: SyncState) -> bool:
    foreseen, is_cut = pulled.deletions, not pulled.is_complete
    is_open = bool(pulled.refused_count or foreseen.failures or foreseen.left or is_cut)
    is_whole = pulled.selected_count is not None  # a whole list mends what earlier ones left
    return is_open or (not is_whole and (memory.refused_count > 0 or memory.has_gap))


def _list_faults(
    pulled: SyncOutcome, listed: reports.ListedCounts, state: SqliteMirrorState, memory: SyncState
) -> reports.ListFaults:
    lacking, is_whole = listed.absent + listed.skipped, pulled.selected_count is not None
    is_lacking = sync_state.serves_too_little(memory, lacking, listed.right, listed.total)
    return reports.ListFaults(
        gap=memory.has_gap,
        unread=max(pulled.unread_parts, 0 if is_whole else sync_state.count_unread(state)),
        undecided=pulled.tally.undecided,
        absent_below=sync_state.absent_folder(state) if is_lacking else "",
        moved_from=memory.moved_from,
        unproving=memory.is_unproving,
    )


def _failed_reasons(memory: SyncState, counts: PendingCounts, edited: int | None) -> Counter[str]:
    reasons = Counter[str]()
    for (task, code), number in counts.rows.items():
        is_undeleted = task == PendingTask.DELETE and code != ""
        if is_undeleted or (task == PendingTask.FETCH and not memory.accepts(code)):
            reasons[LOCAL_CHANGE if code == EDITED else code] += number
    if edited is not None:
        reasons[LOCAL_CHANGE] = edited
    return reasons


def _fetched_counts(pulled: SyncOutcome) -> reports.FetchedCounts:
    tally = pulled.tally
    return reports.FetchedCounts(
        verified=tally.fixity.get(Fixity.VERIFIED, 0),
        server_verified=tally.fixity.get(Fixity.SERVER_VERIFIED, 0),
        weak=tally.fixity.get(Fixity.WEAK, 0),
        unverified=tally.fixity.get(Fixity.UNVERIFIED, 0),
        equal=tally.refetched,
        patched=tally.patched,
        unpatched=tally.unpatched,
        rechecked=pulled.rechecked,
        stale=pulled.stale_dates,
        bytes=tally.useful,
    )


def _retained_counts(
    pulled: SyncOutcome,
    state: SqliteMirrorState,
    counts: PendingCounts,
    memory: SyncState,
    edited: int | None,
) -> reports.RetainedCounts:
    planned, kept = pulled.filtered_count, pulled.retained_count
    stored = sync_state.count_retained(state, counts, memory)
    damaged = stored.damaged - pulled.deletions.mended
    return replace(
        stored,
        unlisted=stored.unlisted if pulled.unread_parts or kept is None else kept,
        open=stored.open if pulled.is_written else pulled.missed_count,
        extra=pulled.extra_count,
        filtered=stored.filtered if planned is None else planned,
        damaged=damaged,
        excluded=min(stored.excluded, damaged),
        edited=stored.edited if edited is None else edited,
    )


def _first_failures(pulled: SyncOutcome, memory: SyncState) -> tuple[reports.Failing, ...]:
    found = [*pulled.tally.failures, *pulled.deletions.failures][:_MAX_REPORTED_FAILURES]
    here = (replace(each, uri=present_uri(each.uri, memory.moved)) for each in found)
    return tuple(here) or memory.failures(_MAX_REPORTED_FAILURES)


class RecordedPlan:
    """Plan of one run.

    The decisions are recorded in a temporary file, and only if there is a review: so it is shown
    what was counted, and nothing is decided again for it. Resources for which nothing is done, most
    of a large mirror, are only counted.
    """

    def __init__(self, pull: SyncSession, *, is_audited: bool = False) -> None:
        self._pull = pull
        self._is_audited = is_audited  # a retained file that was changed is to be set aside
        self._edited: list[reports.Failing] = []
        self._mended = self._left = 0
        self._decisions: ExternalSorter[planner.ReviewedDecision] = ExternalSorter(
            key=uri_of,
            dump=lambda decision: bytes([_KINDS.index(type(decision))]) + _encode(decision),
            load=lambda data: _DECODERS[data[0]].decode(data[1:]),
            spill=pull.dependencies.scratch,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._decisions.close()

    def count(
        self, decisions: Iterable[planner.Decision], mode: reports.Mode
    ) -> planner.DecisionCounts:
        """Count the decisions, in any order, and record them."""
        if self._pull.options.dry_run:
            decisions = self._foreseen(decisions)
        if self._pull.options.review is not None:
            decisions = self._record(decisions)
        was_absent = self._was_absent if self._pull.options.dry_run else None
        return planner.count_decisions(decisions, mode, was_absent)

    def _foreseen(self, decisions: Iterable[planner.Decision]) -> Iterator[planner.Decision]:
        damaged = {row.uri for row in self._pull.sync_state.damaged_retained()}
        untried = _DEEDS if self._pull.options.lists_only else planner.Postponed
        with self._pull.dependencies.copies.inspect() as look:
            for decision in decisions:
                is_fetch = isinstance(decision, planner.Fetch | planner.Postponed)
                if isinstance(decision, untried):
                    self._left += not (is_fetch and self._was_absent(uri_of(decision)))
                is_bad = isinstance(decision, planner.Retain) and decision.copy.is_damaged
                self._mended += (bool(damaged) and uri_of(decision) in damaged) - is_bad
                if isinstance(decision, planner.Delete) and self._is_edited(decision.copy, look):
                    copy, reason = decision.copy, EDITED_REASON
                    found = ("delete", self._shown(copy).uri, copy.path, LOCAL_CHANGE, reason)
                    self._pull.dependencies.report("item", failed_item(*found, kept=True))
                    failing = reports.Failing(uri=copy.uri, code=LOCAL_CHANGE, reason=reason)
                    self._edited.append(failing)
                else:
                    yield decision

    def _is_edited(self, copy: Copy, look: ports.CopyInspector) -> bool:
        waiting = self._pull.state.pending_of(copy.uri)
        is_kept = waiting is not None and waiting.task == PendingTask.RETAIN
        known = self._pull.state.copy(copy.uri) or copy
        is_moved = known.is_unknown or known.is_marked_by_audit
        if is_moved or (is_kept and self._is_audited):
            return False
        return inspected_copy(known, look).signature == EDITED

    def _was_absent(self, uri: str) -> bool:
        task = self._pull.state.pending_of(uri)
        return self._pull.accepts_missing and task is not None and task.code in UNAVAILABLE_CODES

    def report(self, counts: planner.DecisionCounts) -> reports.DeletionResult:
        """Report the plan, and pass the decisions to the review; return the held deletions."""
        foreseen, review = self._report(counts), self._pull.options.review
        if review is not None:
            checked = self._pull.dependencies.cancel.checked
            shown = (
                each._replace(copy=self._shown(each.copy))
                if isinstance(each, planner.Delete)
                else each
                for each in self._decisions
            )
            review(counts.plan.mode, lambda: checked(shown), counts.plan.same)
        return foreseen

    def _shown(self, copy: Copy) -> Copy:
        return copy._replace(uri=self._pull.selection.addresses.source_uri(copy.uri))

    def _report(self, counts: planner.DecisionCounts) -> reports.DeletionResult:
        pull, limit, plan = self._pull, self._pull.options.max_delete, counts.plan
        untold = plan.delete if pull.selection.refusals.count else plan.unsignalled
        foreseen = reports.DeletionResult()
        if plan.delete:
            from resourcesync.destination.deletion import plan_deletions  # noqa: PLC0415 - lazy

            here, filtered = pull.state.count(), counts.filtered
            foreseen = plan_deletions(pull.state, limit, here, plan.delete, untold, filtered)
        foreseen.failures, foreseen.left = self._edited, self._left
        foreseen.mended = 0 if foreseen.held else self._mended
        fields = {name: getattr(plan, name) for name in _WORK}
        fields |= {"held": foreseen.held, "held_of": foreseen.held_of, "limit": str(limit)}
        pull.dependencies.report("plan", fields | {"bytes": plan.size})
        return foreseen

    def _record(self, decisions: Iterable[planner.Decision]) -> Iterator[planner.Decision]:
        for decision in decisions:
            if not isinstance(decision, planner.UpToDate | planner.Postponed):
                self._decisions.add(decision)
            yield decision


def delete_pending(
    pull: SyncSession, pulled: SyncOutcome, *, generation: int | None = None
) -> None:
    """Execute the pending deletions, or hold them: of a generation, or all."""
    tally, memory = reports.DeletionResult(), pull.sync_state
    pulled.deletions = tally
    is_due = next(pull.state.pending(PendingTask.DELETE), None) is not None
    if is_due or memory.held_of or memory.held_gone:
        from resourcesync.destination import deletion  # noqa: PLC0415 - a first pull has none

        deletion.delete_pending(pull, pulled, tally, generation=generation)


def fetch_planned(
    pull: SyncSession,
    done: SyncOutcome,
    fetches: Callable[[], Generator[planner.Fetch, None, None]],
    *,
    at: int,
    wanted: Callable[[], Iterable[planner.Fetch]] | None = None,
    changes_first: bool = False,
) -> None:
    """Fetch what is planned, from dumps and then singly."""
    from resourcesync.destination.transfers.transfer import ResourceTransfer  # noqa: PLC0415 - lazy

    plan, transfer, brought = done.plan, ResourceTransfer(pull, at), reports.TransferTally()
    dumps = (pull.found.resource_dump, pull.found.change_dump)
    if any(dumps):
        from resourcesync.destination.dumps.dump_transfer import DumpTransfer  # noqa: PLC0415 - lazy

        from_dumps = DumpTransfer(pull, plan, wanted or fetches, at)
        brought = from_dumps.fetch_from_dumps(dumps[::-1] if changes_first else dumps)
    total, size = plan.create + plan.update - brought.done, plan.size - brought.useful
    with closing(fetches()) as planned:
        fetched = transfer.execute(planned, total=total, size=max(0, size))
    # What failed from a dump was requested singly.
    done.tally = fetched.plus(replace(brought, failures=[]), without="failed")
    done.is_complete = not transfer.stopped
    done.spent = pull.budget.spent


_WORK: Final = ("mode", "same", "create", "update", "delete", "unsized", "may_be_same", "absent")
_KINDS: Final = (planner.Fetch, planner.Delete, planner.Retain)
_DEEDS: Final = planner.Fetch | planner.Delete | planner.Postponed
_DECODERS: Final[tuple[msgspec.msgpack.Decoder[planner.ReviewedDecision], ...]] = tuple(
    map(msgspec.msgpack.Decoder, _KINDS)
)
_encode: Final = msgspec.msgpack.Encoder().encode


def uri_of(decision: planner.Decision) -> str:
    """Return the normalised URI of a decision's resource."""
    return decision[0].uri
