"""Repair: findings of an audit, resolved as by a baseline, for these resources only."""

from collections import Counter
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
from resourcesync.destination.transfers.verification import inspected_copy, recover_suspects
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
            uri = self._pull.selection.addresses.mirror_uri(finding.uri)
            copy = self._pull.state.copy(uri)
            is_failed = finding.kind is FindingKind.FAILED
            is_unreadable = is_failed and copy is not None and copy.is_damaged
            is_all_read &= was_in_sync is None or not is_failed or is_unreadable
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
            self._foresee_undone(pulled)
        return pulled

    def _repair(
        self, listed: ListedRows, wanted: set[str], extra: set[str], inspector: CopyInspector
    ) -> SyncOutcome:
        pull, found = self._pull, (listed, wanted, inspector)
        pull.path_assignment.assign_new(row for row in self._rows(listed) if row.uri in wanted)
        self._discard_listed(extra, listed)
        with RecordedPlan(pull, is_audited=True) as planned:
            fetches = self._fetches(*found)
            counts = planned.count(chain(fetches, self._deletions(extra)), Mode.BASELINE)
            foreseen, plan, refusals = planned.report(counts), counts.plan, pull.selection.refusals
        pulled = SyncOutcome(mode=Mode.BASELINE, plan=plan, deletions=foreseen)
        pulled.refused_count, pulled.unread_parts = refusals.count, len(refusals.unread)
        if pull.options.dry_run:
            pulled.retained_count = 0  # which stay shows the repair itself
            self._foresee_undone(pulled, extra.union(map(uri_of, self._fetches(*found))))
            self._judge(pulled, listed, wanted, extra)
            return pulled
        if plan.create + plan.update + plan.delete:
            pull.begin_repair()
        pull.record_new_refused()
        fetch_planned(
            pull, pulled, lambda: pull.marked(self._fetches(*found)), at=listed.checkpoint
        )
        if pulled.tally.undecided:
            pull.move(pull.cursor.with_baseline_due())
        if plan.delete:
            self._delete(pulled, extra, listed.checkpoint)
        else:
            pulled.are_deletions_done = not pulled.tally.gone  # the next pull deletes those
        self._report_remaining(wanted)
        self._judge(pulled, listed)
        return pulled

    def _foresee_undone(self, pulled: SyncOutcome, tried: Collection[str] = ()) -> None:
        foreseen, others, memory = pulled.deletions, 0, self._pull.sync_state
        sound = recover_suspects(self._pull.dependencies, dry_run=True)
        for task in self._pull.state.pending(PendingTask.FETCH):
            is_left = task.uri not in tried and task.uri not in sound
            foreseen.left += is_left and not memory.accepts(task.code)
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
                found = "postpone", task.loc, task.path, task.code, reason
                fields = failed_item(*found, kept=False, tries=task.tries)
                self._pull.dependencies.report("item", fields)

    def _delete(self, pulled: SyncOutcome, extra: set[str], at: int) -> None:
        pull = self._pull
        tasks = [pull.task_of(decision, at) for decision in self._deletions(extra)]
        pull.state.commit(StateTransaction(pending=tasks))
        # Tasks of earlier pulls are not of this reading: the Source may have withdrawn them.
        delete_pending(pull, pulled, generation=pull.generation)

    def _judge(self, pulled: SyncOutcome, listed: ListedRows, *mended: Collection[str]) -> None:
        """Count what is not as listed, other than the wanted and extra that a dry run mends."""
        wanted, extra = mended or ((), ())
        found, rows = Counter[str](), self._rows(listed)
        for difference in compare(self._pull.state.copies(), rows, same=_agrees):
            match difference:
                case Deleted(copy):
                    found[self._fault_of_unlisted(copy, is_deleted=copy.uri in extra)] += 1
                case Created(row) if row.uri not in wanted:
                    found[self._fault_of(None, row, is_read=listed.was_read)] += 1
                case Updated(copy, row) if row.uri not in wanted:
                    found[self._fault_of(copy, row, is_read=listed.was_read)] += 1
        is_wrong = found.total() > found[""] + found["planned"]
        pulled.is_complete &= not (is_wrong or self._pull.selection.refusals.count)
        pulled.extra_count = found["extra"] + found["due"]
        wrong = found["outdated"] + found["extra"] + found["planned"]
        pulled.untold = found["missing"] + found["outdated"], wrong
        pulled.tally.undecided = max(pulled.tally.undecided, found["undecided"])

    def _fault_of_unlisted(self, copy: Copy, *, is_deleted: bool) -> str:
        task = self._pull.state.pending_of(copy.uri)
        if task is None or is_deleted:
            return "" if task else "planned" if is_deleted else "extra"
        if task.task == PendingTask.RETAIN and not copy.is_damaged:
            return ""
        is_due = (task.task, task.code) == (PendingTask.DELETE, "")
        return "due" if is_due and not self._pull.sync_state.holds(task) else "stored"

    def _fault_of(self, copy: Copy | None, row: planner.ListedEntry, *, is_read: bool) -> str:
        task = self._pull.state.pending_of(row.uri)
        is_accepted = task is not None and self._pull.sync_state.accepts(task.code)
        if is_accepted or row.change == planner.FILTERED:
            return "stored" if copy is not None and copy.is_damaged else ""
        known = listing_status(row, copy, task, is_read=is_read)
        if known is ListingStatus.OPEN:
            return "undecided"
        if known is ListingStatus.GONE or (copy and _agrees(copy, row._replace(undated=False))):
            return ""
        return "stored" if task is not None else "missing" if copy is None else "outdated"

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
