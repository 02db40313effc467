"""Incremental synchronization: new changes become stored tasks, which are then executed (§12)."""

import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from resourcesync.destination.changes.history import ChangeHistory
from resourcesync.destination.changes.times import DAY, is_plausible
from resourcesync.destination.commit import TransferTally, combine_tallies
from resourcesync.destination.cursor import (
    Following,
    Gap,
    Phase,
    Rewritten,
    Stale,
    is_followed,
    judge,
    stale_lists,
)
from resourcesync.destination.decisions import decide_changes, show_decisions
from resourcesync.destination.entry_links import store_entry_links
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.links import is_version_before
from resourcesync.destination.list_freshness import NewerListCheck, find_changed_closed_list
from resourcesync.destination.listed_rows import (
    UNLINKED_REASON,
    collect_linked,
    ignore_conflict,
    is_listed,
    link_rows,
    merge_linked,
    remove_links,
    store_links,
    unlisted_changes,
)
from resourcesync.destination.planner import (
    ABSENT,
    DELETED_BY_SOURCE,
    FILTERED,
    MISMATCH_CODES,
    OUT_OF_SCOPE,
    Fetch,
    ListedEntry,
    Match,
    count_decisions,
    deduplicate,
    is_proven,
    is_restored,
    match_copy,
    without_patch,
)
from resourcesync.destination.reports import Mode, PlanSummary
from resourcesync.destination.resource_reader import ListVersion
from resourcesync.destination.session import SyncOutcome, SyncSession
from resourcesync.destination.sync_state import cursor_note, encode_notes
from resourcesync.destination.tasks import gone_rows, listed_from_task, pending_fetch
from resourcesync.errors import DocumentError, SourceError
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.mirror import Copy, Pending, PendingTask, StateTransaction

if TYPE_CHECKING:
    pass


_log = logging.getLogger(__name__)
_CHUNK: Final = 1_000
_GAP: Final = "the Change Lists no longer reach back to the mirror's last state: running a baseline"


class Incremental:
    """Incremental synchronization of one session.

    Args:
        pull: The session.
        are_others: Returns whether the Source offers other lists now.
    """

    def __init__(self, pull: SyncSession, are_others: Callable[[], bool] = lambda: False) -> None:
        self._pull = pull
        self._offers_moved_lists = are_others
        self._linked: ExternalSorter[ListedEntry] | None = None
        self._has_gap = pull.cursor.has_gap

    def run(self, uri: str) -> SyncOutcome | None:
        """Apply what is new since T; run a baseline if the lists do not reach back.

        Args:
            uri: The Change List or its index.

        Returns:
            The outcome; ``None`` if the Source offers other lists now, which must be read instead.

        Raises:
            ResourceSyncError: The lists cannot be used now; the mirror is unchanged.
        """
        pull = self._pull
        history = pull.change_lists.read(
            uri, pull.cursor.start(), pull.state, partial(is_followed, pull.cursor)
        )
        with ExitStack() as held:
            held.enter_context(history.sorter)
            if self._offers_moved_lists():  # even with news: a moved list may still grow
                return None
            match judge(pull.cursor, history):
                case Gap():
                    pull.warn("change-gap", _GAP)
                    return self._from_baseline()
                case Stale(reported):
                    return self._from_newer_list(reported)
                case Rewritten(changed):
                    return self._from_rewritten(changed)
                case Following():
                    pass
            if changed := self._find_changed_list():
                return self._from_rewritten(changed)
            if self._check_for_newer_list():
                return self._from_baseline(gap=False)
            return self._apply(history, held)

    def _from_rewritten(self, changed: str) -> SyncOutcome:
        """Run a baseline, since processed changes may be withdrawn.

        They are: by a Source that was restored from an older state, which no later change shows.
        """
        pull = self._pull
        pull.warn("rewritten", f"the Source rewrote a Change List, {changed}: running a baseline")
        if not pull.options.dry_run:
            # At once, even if the baseline cannot run now: the rewriting may be seen only once.
            pull.move(replace(pull.cursor, phase=Phase.ROLLED_BACK))
        return self._from_baseline(gap=False)

    def _from_newer_list(self, reported: int) -> SyncOutcome:
        """Start again from a Resource List, since the Change Lists have less than was processed.

        Without a newer Resource List they may be stale copies, or the Source was restored from an
        older state. After a day the latter is assumed.

        Raises:
            SourceUnavailableError: Nothing shows which of the two.
        """
        pull = self._pull
        is_newer = self._check_for_newer_list()
        if not is_newer and not self._check_stale():
            raise stale_lists(pull.found.change_list or "", pull.cursor, reported)
        pull.warn("rewritten", "the Source rewrote its Change List: running a baseline")
        if not pull.options.dry_run:
            pull.move(replace(pull.cursor, phase=Phase.ROLLED_BACK))
        return self._from_baseline(gap=not is_newer)

    def _find_changed_list(self) -> str:
        """Return a closed Change List that changed since; empty if there is none."""
        if self._pull.options.dry_run:
            return ""
        return find_changed_closed_list(self._pull)

    def _check_for_newer_list(self) -> bool:
        """Return whether there is a newer Resource List than the one read last.

        It may have something that the Change Lists do not, also where they continue after it. One
        that cannot be fetched or used now proves nothing.
        """
        pull = self._pull
        uri, known = pull.found.resource_list, pull.sync_state.list_head
        if uri is None:
            return False
        if known is None or known.uri != uri:
            known = ListVersion(uri=uri)
        newer = NewerListCheck(
            pull.documents,
            known,
            read_at=pull.cursor.resource_list_at,
            now=pull.now,
            believes=partial(is_plausible, through=pull.cursor.checkpoint or 0, now=pull.now),
        )
        try:
            if newer.check():
                return True
        except (SourceError, DocumentError) as error:
            _log.info("cannot check for a newer Resource List: %s", error)
        if newer.known != known and not pull.options.dry_run:
            pull.sync_state.write(list_head=newer.known)
        return False

    def _from_baseline(self, *, gap: bool = True) -> SyncOutcome:
        from resourcesync.destination.baseline import Baseline  # noqa: PLC0415 - lazy

        pulled = Baseline(self._pull).run(gap=gap)
        assert pulled is not None, "only a conditional reading finds nothing new"
        return pulled

    def _check_stale(self) -> bool:
        """Return whether the lists have been stale for a day; record since when they are."""
        pull = self._pull
        if not pull.cursor.stale_since:
            if not pull.options.dry_run:
                pull.move(replace(pull.cursor, stale_since=pull.now))
            return False
        return pull.now - pull.cursor.stale_since >= DAY

    def _apply(self, history: ChangeHistory, held: ExitStack) -> SyncOutcome:
        self._linked = collect_linked(
            self._pull, deduplicate(history.sorter, ignore_conflict), held
        )
        self._pull.path_assignment.assign_new(self._new_rows(history))
        self._show_for_review(partial(self._new_rows, history))
        if self._pull.options.dry_run:
            mode = Mode.INCREMENTAL if history.change_count else Mode.UNCHANGED
            plan, _, _ = count_decisions(decide_changes(self._pull, self._new_rows(history)), mode)
            foreseen = self._pull.report_plan(plan)
            return SyncOutcome(mode=plan.mode, plan=plan, deletions=foreseen, is_written=False)
        pull = self._pull
        cursor = replace(
            pull.cursor.after(history),
            generation=pull.generation,
            completed_generation=pull.generation,
        )
        if history.change_count:
            pull.begin()
            # New changes without a time are later all the same: T must advance.
            least = (pull.cursor.checkpoint or 0) + 1
            cursor = replace(cursor, checkpoint=max(history.checkpoint, least))
        self._store_tasks(history, cursor.checkpoint or 0)
        pull.record_refused(add=True)
        notes = cursor_note(cursor) | encode_notes(found=pull.discovered)
        pull.state.commit(StateTransaction(documents=history.documents, notes=notes))
        pull.cursor = cursor
        return self._run_tasks(Mode.INCREMENTAL if history.change_count else Mode.UNCHANGED)

    def _new_rows(self, history: ChangeHistory) -> Iterator[ListedEntry]:
        """Yield the last change of each URI, and the targets of links of changed entries."""
        rows = merge_linked(deduplicate(history.sorter, ignore_conflict), self._linked)
        rows = self._pull.selection.with_current_paths(rows)
        return unlisted_changes(self._pull.state, rows) if self._linked is not None else rows

    def _store_tasks(self, history: ChangeHistory, at: int) -> None:
        """Store the changes as tasks; the cursor moves only after all are stored."""
        if self._linked is not None:
            self._store_links(history, self._linked)
        pull = self._pull
        if pull.selection.has_entries or pull.state.has_entries():
            rows = deduplicate(history.sorter, ignore_conflict)
            store_entry_links(
                pull.state, rows, generation=pull.generation, now=pull.now, anew=False
            )
        pending: list[Pending] = []
        completed: list[str] = []
        for row in self._new_rows(history):
            copy = self._pull.state.copy(row.uri)
            if row.change == ChangeKind.DELETED and copy is not None:
                pending.append(self._deletion_task(copy, DELETED_BY_SOURCE, at))
            elif row.change == FILTERED and copy is not None:
                pending.append(self._pull.retention_task(copy, at, code=FILTERED))
            elif row.change in (ChangeKind.DELETED, FILTERED) or is_proven(copy, row):
                completed.append(row.uri)
            else:
                known = not history.has_undated and self._is_version_before(row, copy)
                task = self._fetch_task(row if known else without_patch(row), at)
                # A copy keeps its path.
                pending.append(task if copy is None else task._replace(path=copy.path))
            if len(pending) + len(completed) >= _CHUNK:
                self._pull.state.commit(StateTransaction(pending=pending, completed=completed))
                pending, completed = [], []
        self._pull.state.commit(StateTransaction(pending=pending, completed=completed))
        self._store_orphans(at)

    def _deletion_task(self, copy: Copy, reason: str, at: int) -> Pending:
        """Return the task of a copy whose resource was deleted at the Source."""
        if is_restored(copy):
            return self._pull.retention_task(copy, at)
        return self._pull.deletion_task(copy, reason, at)

    def _store_links(self, history: ChangeHistory, linked: ExternalSorter[ListedEntry]) -> None:
        """Store the links of changed entries, in place of their earlier ones."""
        state = self._pull.state
        remove_links(state, deduplicate(history.sorter, ignore_conflict))
        found = link_rows(
            deduplicate(history.sorter, ignore_conflict), linked, self._pull.generation
        )
        store_links(state, (row for row in found if not is_listed(state, row.uri)))

    def _store_orphans(self, at: int) -> None:
        """Store the deletion of copies that no entry links to any more.

        An unusable entry may be the one that links to them: then all stay.
        """
        pull = self._pull
        if pull.selection.refusals.count or pull.sync_state.refused_count:
            return
        orphans = pull.state.orphans()
        while group := list(islice(orphans, _CHUNK)):
            copies = [copy for uri in group if (copy := pull.state.copy(uri)) is not None]
            gone = sorted({*group} - {copy.uri for copy in copies})
            tasks = [self._deletion_task(copy, UNLINKED_REASON, at) for copy in copies]
            pull.state.commit(StateTransaction(pending=tasks, completed=gone, listed=gone))

    def _is_version_before(self, row: ListedEntry, copy: Copy | None) -> bool:
        """True if a patch of the new change applies to the copy: no change is missing between."""
        if row.patch is None or self._has_gap:
            return False
        return is_version_before(copy, self._pull.state.pending_of(row.uri))

    def _fetch_task(self, row: ListedEntry, at: int) -> Pending:
        return pending_fetch(
            row,
            known=None,
            now=self._pull.now,
            at=at,
            generation=self._pull.generation,
            failed=False,
        )

    def work_off(self, mode: Mode) -> SyncOutcome:
        """Execute the tasks of earlier runs; the Source has nothing new."""
        self._show_for_review(lambda: iter(()))
        return self._run_tasks(mode)

    def _show_for_review(self, rows: Callable[[], Iterator[ListedEntry]]) -> None:
        """Pass new changes and pending tasks to the review."""
        show_decisions(self._pull, Mode.INCREMENTAL, lambda: decide_changes(self._pull, rows()))

    def _run_tasks(self, mode: Mode) -> SyncOutcome:
        """Execute the stored tasks, of this run and of earlier ones."""
        through = self._pull.cursor.checkpoint or 0
        plan, kept = self._plan_tasks(mode)
        foreseen = self._pull.report_plan(plan)
        pulled = SyncOutcome(mode=mode, plan=plan, retained_count=kept)
        if self._pull.options.dry_run:
            pulled.deletions = foreseen
            return pulled
        if self._pull.options.lists_only:
            pulled.are_deletions_done = False
            return pulled
        if plan.create + plan.update:
            pulled.mode = Mode.INCREMENTAL
            self._fetch_due(pulled, through)
            self._suspect_changes(pulled)
        self._pull.delete_pending(pulled)
        return pulled

    def _suspect_changes(self, pulled: SyncOutcome) -> None:
        """Schedule a baseline for a change to content that the Source does not serve.

        The change may be no later than the Resource List, which then may list what is served. It is
        scheduled once: for the next pulls the entry differs, or the failure is the same.
        """
        at = self._pull.cursor.resource_list_at or 0
        for failure in pulled.tally.failures:
            row = (
                self._pull.state.pending_of(failure.uri) if failure.code in MISMATCH_CODES else None
            )
            if row is not None and row.tries == 1 and (row.lastmod or 0) <= at:
                self._pull.move(self._pull.cursor.with_baseline_due())
                return

    def _fetch_due(self, pulled: SyncOutcome, through: int) -> None:
        """Fetch what is due, from dumps and singly."""
        plan, found = pulled.plan, self._pull.found
        transfer = self._pull.transfer(through)
        dump_tally = TransferTally()
        if found.change_dump or found.resource_dump:
            from resourcesync.destination.dumps import DumpTransfer  # noqa: PLC0415 - lazy

            dumps = DumpTransfer(self._pull, plan, self._due_fetches, through)
            dump_tally = dumps.fetch_from_dumps((found.change_dump, found.resource_dump))
        total, size = plan.create + plan.update - dump_tally.done, plan.size - dump_tally.useful
        with closing(self._due_fetches()) as fetches:
            fetched = transfer.execute(fetches, total=total, size=max(0, size))
        pulled.tally = combine_tallies(dump_tally, fetched)
        pulled.is_complete = not transfer.stopped
        if pulled.tally.undecided:
            self._pull.move(self._pull.cursor.with_baseline_due())
        pulled.spent = self._pull.budget.spent

    def _plan_tasks(self, mode: Mode) -> tuple[PlanSummary, int]:
        """Return the plan, and how many copies of resources deleted at the Source are retained."""
        create = update = size = unsized = 0
        for fetch in self._due_fetches():
            create += fetch.before is None
            update += fetch.before is not None
            size += fetch.listed.length or 0
            unsized += fetch.listed.length is None
        reasons = Counter(row.reason for row in gone_rows(self._pull.state))
        reasons.pop(OUT_OF_SCOPE, None)
        spared = [reason for reason in reasons if self._pull.retains(reason)]
        kept = sum(reasons.pop(reason) for reason in spared)
        plan = PlanSummary(
            mode=mode,
            create=create,
            update=update,
            delete=reasons.total(),
            unsignalled=reasons[ABSENT],
            size=size,
            unsized=unsized,
        )
        return plan, kept

    def _due_fetches(self) -> Generator[Fetch, None, None]:
        for row in self._pull.state.pending(PendingTask.FETCH):
            if row.due <= self._pull.now:
                yield self._fetch_of(row)

    def _fetch_of(self, row: Pending) -> Fetch:
        listed, copy = listed_from_task(row), self._pull.state.copy(row.uri)
        is_conditional = copy is not None and match_copy(copy, listed) is not Match.DIFFERENT
        return Fetch(listed, copy, is_conditional=is_conditional)
