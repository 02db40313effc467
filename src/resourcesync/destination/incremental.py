"""Incremental synchronization: new changes become stored tasks, which are then executed (§12)."""

import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from resourcesync.destination.change_history import ChangeHistory
from resourcesync.destination.commit import TransferTally, combine_tallies
from resourcesync.destination.cursor import DAY, is_plausible
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
from resourcesync.destination.session import SyncOutcome, SyncSession, with_dumps
from resourcesync.destination.sync_state import encode_notes
from resourcesync.destination.tasks import gone_rows, listed_from_task, pending_fetch
from resourcesync.errors import DocumentError, SourceError, SourceUnavailableError
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.mirror import Copy, Pending, PendingTask, StateTransaction

if TYPE_CHECKING:
    pass


_log = logging.getLogger(__name__)
_CHUNK: Final = 1_000


def _find_rewritten(history: ChangeHistory) -> str:
    """Return a list that does not continue the processed changes; empty if there is none.

    A new list that begins among processed changes does, as long as these are still listed.
    """
    is_doubted = history.suspect and history.last_changes.are_withdrawn
    return history.superseded or history.rewritten or (history.suspect if is_doubted else "")


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

    def run(self, uri: str, through: int) -> SyncOutcome | None:
        """Apply what is new since T; run a baseline if the lists do not reach back.

        Args:
            uri: The Change List or its index.
            through: T, microseconds.

        Returns:
            The outcome; ``None`` if the Source offers other lists now, which must be read instead.

        Raises:
            ResourceSyncError: The lists cannot be used now; the mirror is unchanged.
        """
        try:
            history = self._pull.change_lists.read(uri, since=through, state=self._pull.state)
        except SourceUnavailableError as error:
            if error.code != "stale-copy":
                raise
            return self._from_newer_list(error)
        with ExitStack() as held:
            held.enter_context(history.sorter)
            if self._offers_moved_lists():  # even with news: a moved list may still grow
                return None
            if self._is_unproven(uri, history):
                self._pull.warn(
                    "lists-moved",
                    "the Source moved its Change List; changes may be missing: running a baseline",
                )
                return self._from_baseline(gap=False)
            if not history.reaches_back:
                self._pull.warn(
                    "change-gap",
                    "the Change Lists no longer reach back to the mirror's last state: running a"
                    " baseline",
                )
                return self._from_baseline()
            if self._check_rewritten(history) or self._check_for_newer_list():
                return self._from_baseline(gap=False)
            return self._apply(history, held)

    def _from_newer_list(self, error: SourceUnavailableError) -> SyncOutcome:
        """Start again from a Resource List, since the Change Lists have less than was processed.

        Args:
            error: Their fault. It is raised if no Resource List is newer: then they may be stale
                copies, or the Source was restored from an older state. After a day the latter is
                assumed.
        """
        is_newer = self._check_for_newer_list()
        if not is_newer and not self._check_stale():
            raise error
        self._pull.warn("rewritten", "the Source rewrote its Change List: running a baseline")
        if not self._pull.options.dry_run:
            self._pull.sync_state.write(taken_back=True)
        return self._from_baseline(gap=not is_newer)

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
            read_at=pull.sync_state.resource_list_at,
            now=pull.now,
            believes=partial(is_plausible, through=pull.sync_state.checkpoint or 0, now=pull.now),
        )
        try:
            if newer.check():
                return True
        except (SourceError, DocumentError) as error:
            _log.info("cannot check for a newer Resource List: %s", error)
        if newer.known != known and not pull.options.dry_run:
            pull.sync_state.write(list_head=newer.known)
        return False

    def _check_rewritten(self, history: ChangeHistory) -> bool:
        """True if processed changes are no longer listed; then a baseline is due.

        They may have been withdrawn: by a Source that was restored from an older state, which no
        later change shows.
        """
        if self._pull.options.dry_run:
            return False
        pull, sync_state = self._pull, self._pull.sync_state
        changed, checked_at = find_changed_closed_list(pull), None
        if changed:
            checked_at = pull.now
            message = f"the Source changed a closed Change List, {changed}: running a baseline"
        elif changed := _find_rewritten(history):
            message = f"the Source rewrote a Change List, {changed}: running a baseline"
        elif history.interrupted.is_lost:
            # They added and removed tasks: only a whole baseline corrects that.
            changed = history.head
            message = "changes already applied are no longer listed: running a baseline"
        else:
            return False
        pull.warn("rewritten", message)
        # At once, even if the baseline cannot run now: the rewriting is seen only once.
        sync_state.write(closed_asked_at=checked_at, baseline_due=True, taken_back=True)
        return True

    def _is_unproven(self, uri: str, history: ChangeHistory) -> bool:
        """True if the mirror did not follow these lists before, and they give no times."""
        followed = self._pull.sync_state.discovered
        is_new = followed is not None and with_dumps(followed).change_list != uri
        is_timed = all(
            document.from_ for document in history.documents if document.prefix
        )  # an index has no prefix
        return is_new and history.reaches_back and not is_timed

    def _from_baseline(self, *, gap: bool = True) -> SyncOutcome:
        from resourcesync.destination.baseline import Baseline  # noqa: PLC0415 - lazy

        pulled = Baseline(self._pull).run(gap=gap)
        assert pulled is not None, "only a conditional reading finds nothing new"
        return pulled

    def _check_stale(self) -> bool:
        since = self._pull.sync_state.stale_since
        if since is None or not since:
            if not self._pull.options.dry_run:
                self._pull.sync_state.write(stale_since=self._pull.now)
            return False
        return self._pull.now - since >= DAY

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
        if history.change_count:
            self._pull.begin(baseline=False, read=history)
            # New changes without a time are later all the same: T must advance.
            history.checkpoint = max(history.checkpoint, history.old_checkpoint + 1)
        self._store_tasks(history)
        notes = encode_notes(
            through=history.checkpoint,
            listed=history.list_clock_checkpoint,
            generation=self._pull.generation,
            settled=self._pull.generation,
            stale_since=0,
            found=self._pull.discovered,
        )
        if not history.is_unchanged:
            notes |= self._pull.reading_notes(history)
        self._pull.record_refused(add=True)
        self._pull.state.commit(StateTransaction(documents=history.documents, notes=notes))
        return self._run_tasks(Mode.INCREMENTAL if history.change_count else Mode.UNCHANGED)

    def _new_rows(self, history: ChangeHistory) -> Iterator[ListedEntry]:
        """Yield the last change of each URI, and the targets of links of changed entries."""
        rows = merge_linked(deduplicate(history.sorter, ignore_conflict), self._linked)
        rows = self._pull.selection.with_current_paths(rows)
        return unlisted_changes(self._pull.state, rows) if self._linked is not None else rows

    def _store_tasks(self, history: ChangeHistory) -> None:
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
                pending.append(self._deletion_task(copy, DELETED_BY_SOURCE, history.checkpoint))
            elif row.change == FILTERED and copy is not None:
                pending.append(self._pull.retention_task(copy, history.checkpoint, code=FILTERED))
            elif row.change in (ChangeKind.DELETED, FILTERED) or is_proven(copy, row):
                completed.append(row.uri)
            else:
                known = not history.has_undated and self._is_version_before(row, copy)
                task = self._fetch_task(row if known else without_patch(row), history.checkpoint)
                # A copy keeps its path.
                pending.append(task if copy is None else task._replace(path=copy.path))
            if len(pending) + len(completed) >= _CHUNK:
                self._pull.state.commit(StateTransaction(pending=pending, completed=completed))
                pending, completed = [], []
        self._pull.state.commit(StateTransaction(pending=pending, completed=completed))
        self._store_orphans(history.checkpoint)

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
        if row.patch is None or self._pull.sync_state.has_gap:
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
        through = self._pull.sync_state.checkpoint or 0
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
        at = self._pull.sync_state.resource_list_at or 0
        for failure in pulled.tally.failures:
            row = (
                self._pull.state.pending_of(failure.uri) if failure.code in MISMATCH_CODES else None
            )
            if row is not None and row.tries == 1 and (row.lastmod or 0) <= at:
                self._pull.sync_state.write(baseline_due=True)
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
