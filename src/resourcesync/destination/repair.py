"""Repair: findings of an audit, resolved as by a baseline, for these resources only."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from typing import Final

from msgspec import structs

from resourcesync.destination import planner
from resourcesync.destination.audits.reports import AuditFinding, FindingKind
from resourcesync.destination.baseline import Baseline
from resourcesync.destination.listed_rows import ListedRows, ListingStatus, listing_status
from resourcesync.destination.pending_tasks import (
    EDITED,
    EDITED_REASON,
    LOCAL_CHANGE,
    UNAVAILABLE_CODES,
    failed_item,
)
from resourcesync.destination.pull_session import SyncOutcome, SyncSession
from resourcesync.destination.reports import Failing, Mode
from resourcesync.destination.runs import RecordedPlan, delete_pending, fetch_planned, uri_of
from resourcesync.destination.transfers.verification import inspected_copy
from resourcesync.merge_join import Created, Deleted, Updated, compare
from resourcesync.mirror_state.rows import Copy, PendingTask, StateTransaction
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import CopyInspector

_MAX_REPORTED: Final = 1_000
"""Failures that a repair reports which are no part of it."""
_FETCHED_KINDS: Final = frozenset({FindingKind.MISSING, FindingKind.DIFFERENT})


class Repair:
    """Repair of one session."""

    def __init__(self, pull: SyncSession, *, deleting: bool) -> None:
        self._pull = pull
        self._deleting = deleting
        # The operator deletes what is not listed, also what was restored by hand.
        policy = pull.decision_policy(planner.Absence.DELETED, deletes_restored=True)
        self._policy = structs.replace(policy, delete="absent") if deleting else policy

    def run(
        self, findings: Iterable[AuditFinding], *, was_in_sync: bool | None = None
    ) -> SyncOutcome:
        """Fetch what is missing or different; locally changed files go to quarantine."""
        wanted: set[str] = set()
        extra: set[str] = set()
        is_all_read = True
        for finding in findings:
            is_all_read &= was_in_sync is None or finding.kind is not FindingKind.FAILED
            uri = self._pull.selection.addresses.mirror_uri(finding.uri)
            copy = self._pull.state.copy(uri)
            is_unreadable = finding.kind is FindingKind.FAILED and copy and copy.is_damaged
            if finding.kind in _FETCHED_KINDS or is_unreadable:
                wanted.add(uri)
            elif finding.kind is FindingKind.EXTRA and self._deleting:
                extra.add(uri)
        if was_in_sync is not None:
            tasks = self._pull.state.pending(PendingTask.FETCH)
            wanted.update(task.uri for task in tasks if task.code in UNAVAILABLE_CODES)
        if was_in_sync and not wanted and not extra:
            return self._unchanged()
        with ExitStack() as held:
            listed = Baseline(self._pull).read_listed_rows(held, deleting=bool(extra))
            self._policy = structs.replace(self._policy, absent_at=listed.absent_at)
            inspector = held.enter_context(self._pull.dependencies.copies.inspect())
            pulled = self._repair(listed, wanted, extra, inspector)
        is_all_read &= was_in_sync is not False or bool(wanted or extra)  # else as audited
        pulled.is_complete = pulled.is_complete and is_all_read
        return pulled

    def _unchanged(self) -> SyncOutcome:
        with RecordedPlan(self._pull) as planned:
            counts = planned.count((), Mode.UNCHANGED)
            foreseen, plan = planned.report(counts), counts.plan
        pulled = SyncOutcome(mode=plan.mode, plan=plan, deletions=foreseen)
        if self._pull.options.dry_run:
            self._foresee_others(pulled)
        return pulled

    def _repair(
        self, listed: ListedRows, wanted: set[str], extra: set[str], inspector: CopyInspector
    ) -> SyncOutcome:
        rows = (row for row in self._rows(listed) if row.uri in wanted)
        self._pull.path_assignment.assign_new(rows)
        self._discard_listed(extra, listed)
        with RecordedPlan(self._pull, is_audited=True) as planned:
            fetches = self._fetches(listed, wanted, inspector)
            counts = planned.count(chain(fetches, self._deletions(extra)), Mode.BASELINE)
            foreseen, plan = planned.report(counts), counts.plan
        pulled = SyncOutcome(
            mode=Mode.BASELINE,
            plan=plan,
            deletions=foreseen,
            refused_count=self._pull.selection.refusals.count,
            unread_parts=len(self._pull.selection.refusals.unread),
        )
        if self._pull.options.dry_run:
            pulled.retained_count = 0  # which stay shows the repair itself
            tried = map(uri_of, self._fetches(listed, wanted, inspector))
            self._foresee_others(pulled, extra.union(tried))
            pulled.is_complete = self._is_in_sync(listed, wanted, extra)
            return pulled
        if plan.create + plan.update + plan.delete:
            self._pull.begin_repair()
        self._pull.record_new_refused()
        fetch_planned(
            self._pull,
            pulled,
            lambda: self._pull.marked(self._fetches(listed, wanted, inspector)),
            at=listed.checkpoint,
        )
        if pulled.tally.undecided:
            self._pull.move(self._pull.cursor.with_baseline_due())
        if plan.delete:
            self._delete(pulled, extra, listed.checkpoint)
        else:
            pulled.are_deletions_done = not pulled.tally.gone  # the next pull deletes those
        self._report_remaining(wanted)
        pulled.is_complete = pulled.is_complete and self._is_in_sync(listed)
        return pulled

    def _foresee_others(self, pulled: SyncOutcome, tried: Collection[str] = ()) -> None:
        foreseen, others, memory = pulled.deletions, 0, self._pull.sync_state
        for task in self._pull.state.pending(PendingTask.FETCH):
            foreseen.left += task.uri not in tried and not memory.accepts(task.code)
        for task in self._pull.state.pending(PendingTask.DELETE):
            if task.uri not in tried:
                others += not task.code
                if task.code == EDITED:
                    edited = Failing(uri=task.loc, code=LOCAL_CHANGE, reason=EDITED_REASON)
                    foreseen.failures.append(edited)
        if foreseen.held or self._pull.sync_state.held_of:
            foreseen.held += others
        else:
            foreseen.left += others

    def _report_remaining(self, wanted: set[str]) -> None:
        for task in islice(self._pull.sync_state.failing_tasks(), _MAX_REPORTED):
            if task.uri not in wanted and task.code != LOCAL_CHANGE:
                reason = f"{task.reason}; not part of this repair"
                found = ("postpone", task.loc, task.path, task.code, reason)
                fields = failed_item(*found, kept=False, tries=task.tries)
                self._pull.dependencies.report("item", fields)

    def _delete(self, pulled: SyncOutcome, extra: set[str], at: int) -> None:
        pull = self._pull
        tasks = [pull.task_of(decision, at) for decision in self._deletions(extra)]
        pull.state.commit(StateTransaction(pending=tasks))
        # Tasks of earlier pulls are not of this reading: the Source may have withdrawn them.
        delete_pending(pull, pulled, generation=pull.generation)

    def _is_in_sync(
        self, listed: ListedRows, wanted: Collection[str] = (), extra: Collection[str] = ()
    ) -> bool:
        if self._pull.selection.refusals.count:
            return False
        state = self._pull.state
        for difference in compare(state.copies(), self._rows(listed), same=_agrees):
            match difference:
                case Deleted(copy) if copy.uri not in extra:
                    waiting = state.pending_of(copy.uri)
                    is_kept = waiting is not None and waiting.task == PendingTask.RETAIN
                    if not is_kept or copy.is_damaged:
                        return False
                case Created(row) | Updated(_, row) if row.uri in wanted:
                    pass
                case Created(row) if self._is_wrong(None, row, is_read=listed.was_read):
                    return False
                case Updated(copy, row) if self._is_wrong(copy, row, is_read=listed.was_read):
                    return False
        return True

    def _is_wrong(self, copy: Copy | None, row: planner.ListedEntry, *, is_read: bool) -> bool:
        if row.change == planner.FILTERED:
            return copy is not None and copy.is_damaged
        task = self._pull.state.pending_of(row.uri)
        if task is not None and self._pull.sync_state.accepts(task.code):
            return copy is not None and copy.is_damaged
        known = listing_status(row, copy, task, is_read=is_read)
        if known is ListingStatus.LISTED:
            return copy is None or not _agrees(copy, row._replace(undated=False))
        return known is ListingStatus.OPEN

    def _discard_listed(self, extra: set[str], listed: ListedRows) -> None:
        for row in self._rows(listed):
            extra.discard(row.uri)
        if not listed.proves_absence:
            extra.clear()  # unlisted may mean not listed yet, or not parsed

    def _rows(self, listed: ListedRows) -> Iterator[planner.ListedEntry]:
        for row in self._pull.selection.with_current_paths(listed.rows()):
            if row.change != ChangeKind.DELETED:
                yield row

    def _fetches(
        self, listed: ListedRows, wanted: set[str], inspector: CopyInspector
    ) -> Iterator[planner.Fetch]:
        for row in self._rows(listed):
            if row.uri in wanted:
                known = self._pull.state.copy(row.uri)
                copy = known and inspected_copy(known, inspector, by_bytes=True)
                undated = copy and copy._replace(lastmod=None)  # a time does not refute a finding
                decision = planner.decide(undated, row, None, self._policy)
                if isinstance(decision, planner.Fetch):
                    yield decision._replace(before=copy)

    def _deletions(self, extra: set[str]) -> Iterator[planner.Delete]:
        for uri in sorted(extra):
            copy = self._pull.state.copy(uri)
            if copy is not None:  # foreign files are never deleted
                decision = planner.decide(copy, None, None, self._policy)
                if isinstance(decision, planner.Delete):
                    yield decision


def _agrees(copy: Copy, row: planner.ListedEntry) -> bool:
    agrees_with_list = not (row.undated or copy.is_stale)
    return agrees_with_list and planner.match_copy(copy, row) is not planner.Match.DIFFERENT
