"""Incremental synchronization (§12): new changes become tasks, or a newer list must be read."""

import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from functools import partial
from heapq import merge
from itertools import groupby, islice
from operator import attrgetter
from typing import Final

from msgspec import structs

from resourcesync.destination import listed_rows, planner
from resourcesync.destination.changes.intervals import ChangeHistory
from resourcesync.destination.changes.last_change import last_changes
from resourcesync.destination.cursor import (
    Following,
    Gap,
    Phase,
    Rewritten,
    Stale,
    Unproven,
    is_followed,
    judge,
    stale_lists,
)
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.known_lists import NewerListCheck, find_changed_closed_list
from resourcesync.destination.lists.absence_proof import ListVersion
from resourcesync.destination.pending_tasks import MISMATCH_CODES
from resourcesync.destination.pull_session import Next, SyncOutcome, SyncSession, timed_phase
from resourcesync.destination.reports import Mode
from resourcesync.destination.runs import RecordedPlan, delete_pending, fetch_planned
from resourcesync.destination.sync_state import cursor_note, encode_notes, undone_tasks
from resourcesync.errors import DocumentError, SourceError
from resourcesync.mirror_state.rows import Copy, Fixity, Pending, PendingTask, StateTransaction
from resourcesync.model.timestamps import format_w3c, from_microseconds
from resourcesync.model.vocabulary import ChangeKind

_log = logging.getLogger(__name__)
_CHUNK: Final = 1_000
_GAP: Final = "the Change Lists no longer reach back to the mirror's last state"
UNPROVEN_LIST: Final = (
    "the Change List gives no interval and has nothing of the one before: changes may be missing"
    " until the Source's next Resource List, which proves what there is"
)
CHANGES_ONLY: Final = (
    "the Source has no Resource List: what did not change since {} is unknown,"
    " and here at most as it was before"
)
_UNLINKED: Final = Pending(
    "", "", "", PendingTask.DELETE, "", None, None, "", listed_rows.UNLINKED_REASON, 0, 0, 0, 0, 0
)
_by_uri = attrgetter("uri")


class Incremental:
    """Incremental synchronization of one session."""

    def __init__(self, pull: SyncSession) -> None:
        self._pull = pull
        self._linked: ExternalSorter[planner.ListedEntry] | None = None
        self._begin_notes: dict[str, int] = {}
        self._is_void: Callable[[Pending], bool] = lambda _: False
        self._orphans: Callable[[], Iterator[str]] = lambda: iter(())
        self._policy = pull.decision_policy(planner.Absence.UNCHANGED)
        self._retained_count = 0

    def run(self, uri: str, probe: Callable[[], bool]) -> SyncOutcome | Next:
        """Apply what is new since T, unless the probe finds other lists or a baseline is needed."""
        pull = self._pull
        lists, follows = pull.change_lists, partial(is_followed, pull.cursor)
        with timed_phase(pull.dependencies, "lists"):
            history = lists.read(uri, pull.cursor.start(), pull.state, follows)
        with ExitStack() as held:
            held.enter_context(history.sorter)
            if probe():  # even with news: a moved list may still grow
                return Next.RELOCATE
            match judge(pull.cursor, history):
                case Following():
                    return self._follow(uri, history, held)
                case Stale(reported):
                    if not self._check_for_newer_list():
                        raise stale_lists(uri, self._pull.cursor, reported)
                    return self._roll_back("the Source rewrote its Change List")
                case Rewritten(changed):
                    return self._roll_back(f"the Source rewrote a Change List, {changed}")
                case Unproven():
                    return self._follow_unproven(history, held)
                case Gap():
                    has_list = pull.found.resource_list is not None
                    pull.warn("change-gap", f"{_GAP}: running a baseline" if has_list else _GAP)
                    return Next.NEWER_BASELINE

    def begin(self, uri: str) -> SyncOutcome:
        """Apply all that the Change Lists have, since there is no Resource List to start from.

        What did not change since their start is unknown, and stays so (0.9 §2.2.1). So it is where
        changes are missing later: the lists begin anew. All of them are read: a list that was
        processed may be rewritten, or other filters apply.
        """
        pull, before, lists = self._pull, self._pull.cursor, self._pull.change_lists
        pull.cursor = structs.replace(
            before, phase=Phase.GAP, checkpoint=None, list_clock=None, processed=(), window=None
        )
        with timed_phase(pull.dependencies, "lists"):
            history = lists.bypassing_caches().read(uri, before.beginning(), None, lambda _: True)
        with ExitStack() as held:
            held.enter_context(history.sorter)
            # A copy that only a withdrawn change tells of is in no list, whatever the lists' start.
            is_known = pull.sync_state.changes_since is not None and not before.is_rolled_back
            is_lacking = not (is_known and is_followed(before, history))
            completed = before.completed_generation
            self._is_void = partial(_is_void, completed, pull.generation, is_lacking=is_lacking)
            since = history.begins_at or history.checkpoint or pull.now
            self._begin_notes = {"changes_since": since}
            if is_lacking or pull.options.changes_only:
                self._begin_notes["changes_accepted"] = since if pull.options.changes_only else 0
            pull.warn("changes-only", CHANGES_ONLY.format(format_w3c(from_microseconds(since))))
            return self._apply(history, held)

    def _follow(self, uri: str, history: ChangeHistory, held: ExitStack) -> SyncOutcome | Next:
        changed = "" if self._pull.options.dry_run else find_changed_closed_list(self._pull)
        if changed:
            return self._roll_back(f"the Source rewrote a Change List, {changed}")
        if not self._leads_to_all(uri, history) and self._check_for_newer_list():
            return Next.BASELINE
        return self._apply(history, held)

    def _follow_unproven(self, history: ChangeHistory, held: ExitStack) -> SyncOutcome | Next:
        if self._check_for_newer_list():
            return Next.BASELINE
        if self._pull.found.resource_list is None:  # nothing will prove it: a later moment is open
            self._pull.warn("change-gap", UNPROVEN_LIST)
            return Next.NEWER_BASELINE
        if not self._pull.cursor.has_gap:  # else it was reported before the list was read
            self._pull.warn("change-gap", UNPROVEN_LIST)
            self._pull.cursor = structs.replace(self._pull.cursor, phase=Phase.GAP)
        return self._apply(history, held)

    def _roll_back(self, message: str) -> Next:
        """Go on with a baseline, since processed changes may be withdrawn."""
        pull = self._pull
        pull.warn("rewritten", f"{message}: running a baseline")
        # At once, even if the baseline cannot run now: the rewriting may be seen only once.
        pull.move(structs.replace(pull.cursor, phase=Phase.ROLLED_BACK))
        return Next.BASELINE

    def _leads_to_all(self, uri: str, history: ChangeHistory) -> bool:
        """True if the Source says that these Change Lists lead to all of its Resource List.

        They do from a Resource List on that was read. Lists that continue the mirror are then
        enough. Without a change to continue from, only the Resource List proves the state; and only
        another one can supply missing changes.
        """
        pull = self._pull
        since, read_at = pull.found.monitored_since, pull.cursor.resource_list_at
        if pull.found.monitor != uri or pull.cursor.has_gap:
            return False
        if since is None or read_at is None or read_at < since:
            return False
        return history.change_count > 0 or any(done.entries for done in pull.cursor.processed)

    def _check_for_newer_list(self) -> bool:
        """Return whether there is a newer Resource List than the one read last."""
        pull = self._pull
        uri, known = pull.found.resource_list, pull.sync_state.list_head
        if uri is None:
            return False
        if known is None or known.uri != uri:
            known = ListVersion(uri=uri)
        requested = known.without_old_dates(pull.sync_state.list_read_at, pull.now)
        newer = NewerListCheck(pull, requested)
        try:
            if newer.check():
                return True
        except (SourceError, DocumentError) as error:
            _log.info("cannot check for a newer Resource List: %s", error)
        if newer.known != known and not pull.options.dry_run:
            pull.sync_state.write(list_head=newer.known)
        if requested != known:
            pull.record_list_reading()
        return False

    def _apply(self, history: ChangeHistory, held: ExitStack) -> SyncOutcome:
        changes = partial(last_changes, history.sorter)
        self._linked = listed_rows.collect_linked(self._pull, changes(), held)
        self._orphans = self._pull.state.orphans
        if self._linked is not None:
            self._orphans = partial(listed_rows.orphans_after, self._pull, changes, self._linked)
        self._pull.path_assignment.assign_new(self._new_rows(history))
        pulled = self._plan(self._new_rows(history), has_news=history.change_count > 0)
        if self._pull.options.dry_run:
            return pulled
        pull = self._pull
        cursor = structs.replace(
            pull.cursor.after(history),
            generation=pull.generation,
            completed_generation=pull.generation,
        )
        if history.change_count:
            # New changes without a time are later all the same: T must advance.
            least = (pull.cursor.checkpoint or 0) + 1
            cursor = structs.replace(cursor, checkpoint=max(history.checkpoint, least))
        with pull.state.writing():  # all or nothing: part of the tasks would be of no known reading
            self._store_tasks(history, cursor.checkpoint or 0)
            pull.record_refused(add=True)
            notes = cursor_note(cursor) | encode_notes(found=pull.discovered, **self._begin_notes)
            pull.state.commit(StateTransaction(documents=history.documents, notes=notes))
        pull.cursor, pull.list_clock = cursor, cursor.list_clock or 0
        return self._execute(pulled)

    def _new_rows(self, history: ChangeHistory) -> Iterator[planner.ListedEntry]:
        rows = listed_rows.merge_linked(last_changes(history.sorter), self._linked)
        rows = self._pull.selection.with_current_paths(rows)
        if self._linked is not None:
            rows = listed_rows.unlisted_changes(self._pull.state, rows)
        if history.may_be_old:
            rows = map(_as_undated, rows)
        if self._pull.cursor.has_gap and self._pull.found.resource_list is not None:
            # The next Resource List tells what is gone: lists of now may be old ones.
            rows = (row for row in rows if row.change != ChangeKind.DELETED)
        for row in rows:
            has_patch = row.patch is not None
            yield row if has_patch and self._is_next(row, history) else planner.without_patch(row)

    def _is_next(self, row: planner.ListedEntry, history: ChangeHistory) -> bool:
        if history.has_undated or self._pull.cursor.has_gap:
            return False
        state = self._pull.state
        return is_version_before(state.copy(row.uri), state.pending_of(row.uri))

    def _plan(self, rows: Iterator[planner.ListedEntry], *, has_news: bool) -> SyncOutcome:
        decisions = (decision for _, _, decision in self._decided(rows) if decision is not None)
        with RecordedPlan(self._pull) as planned:
            counts = planned.count(decisions, Mode.INCREMENTAL)
            plan = counts.plan
            if not (has_news or plan.create + plan.update + plan.delete):
                plan = structs.replace(plan, mode=Mode.UNCHANGED)
            foreseen = planned.report(counts._replace(plan=plan))
        has_news = has_news or plan.create + plan.update > 0
        return SyncOutcome(
            mode=Mode.INCREMENTAL if has_news else Mode.UNCHANGED,
            plan=plan,
            deletions=foreseen,
            retained_count=counts.retained + self._retained_count,
            postponed=(counts.postponed, counts.outdated),
            is_written=not self._pull.options.dry_run,
            are_deletions_done=not self._pull.options.lists_only,
        )

    def _decided(
        self, rows: Iterator[planner.ListedEntry]
    ) -> Iterator[tuple[str, Pending | None, planner.Decision | None]]:
        for row in self._undecided(rows):
            if isinstance(row, Pending):
                yield row.uri, row, self._decide_task(row)
            else:
                yield row.uri, None, planner.decide(self._copy(row.uri), row, None, self._policy)

    def _copy(self, uri: str) -> Copy | None:
        return self._pull.recovered.get(uri) or self._pull.state.copy(uri)

    def _decide_task(self, task: Pending) -> planner.Decision | None:
        if self._is_void(task):
            return None
        row = planner.listed_from_task(task) if task.task == PendingTask.FETCH else None
        return planner.decide(self._copy(task.uri), row, task, self._policy)

    def _undecided(
        self, rows: Iterator[planner.ListedEntry]
    ) -> Iterator[planner.ListedEntry | Pending]:
        """Copies that are retained, and stay so, are only counted: there may be many."""
        self._retained_count = 0
        is_reviewed = self._pull.options.review is not None
        damaged = {task.uri for task in self._pull.state.suspect_tasks()}
        orphans = (_UNLINKED._replace(uri=uri) for uri in self._found_orphans())
        tasks, kept = undone_tasks(self._pull.state), self._pull.state.pending(PendingTask.RETAIN)
        unproven = (row for row in kept if row.uri in damaged or not (row.reason or row.code))
        merged: Iterator[planner.ListedEntry | Pending] = merge(
            orphans, rows, tasks, unproven, key=_by_uri
        )
        for _, group in groupby(merged, key=_by_uri):
            first = next(group)
            if isinstance(first, Pending) and first.task == PendingTask.RETAIN:
                is_unproven, is_damaged = not (first.reason or first.code), first.uri in damaged
                is_shown = is_reviewed or is_damaged or not self._policy.retains(first.reason)
                if (is_unproven and not is_damaged) or not is_shown:
                    self._retained_count += not is_damaged
                    continue
            yield first

    def _store_tasks(self, history: ChangeHistory, at: int) -> None:
        pull = self._pull
        if self._linked is not None:
            self._store_links(history, self._linked)
            self._orphans = pull.state.orphans
        self._store_orphans(at)
        if pull.selection.has_entries or pull.state.has_entries():
            rows = last_changes(history.sorter)
            listed_rows.store_entry_links(
                pull.state, rows, generation=pull.generation, now=pull.now, anew=False
            )
        self._store_decisions(self._new_rows(history), at)

    def _store_decisions(self, rows: Iterator[planner.ListedEntry], at: int) -> None:
        pending: list[Pending] = []
        completed: list[str] = []
        for uri, known, decision in self._decided(rows):
            if decision is None or isinstance(decision, planner.UpToDate):
                completed.append(uri)
            elif known is None or isinstance(decision, planner.Delete | planner.Retain):
                pending.append(self._pull.task_of(decision, at, known))
            if len(pending) + len(completed) >= _CHUNK:
                self._pull.state.commit(StateTransaction(pending=pending, completed=completed))
                pending, completed = [], []
        if pending or completed:
            self._pull.state.commit(StateTransaction(pending=pending, completed=completed))

    def _store_links(
        self, history: ChangeHistory, linked: ExternalSorter[planner.ListedEntry]
    ) -> None:
        state = self._pull.state
        listed_rows.remove_links(state, last_changes(history.sorter))
        found = listed_rows.link_rows(last_changes(history.sorter), linked, self._pull.generation)
        listed_rows.store_links(
            state, (row for row in found if not listed_rows.is_listed(state, row.uri))
        )

    def _found_orphans(self) -> Iterator[str]:
        pull = self._pull
        has_unusable = pull.selection.refusals.count or pull.sync_state.refused_count
        return iter(()) if has_unusable else self._orphans()

    def _store_orphans(self, at: int) -> None:
        pull = self._pull
        orphans, self._orphans = self._found_orphans(), lambda: iter(())
        while group := list(islice(orphans, _CHUNK)):
            copies = [copy for uri in group if (copy := self._copy(uri)) is not None]
            gone = sorted({*group} - {copy.uri for copy in copies})
            reason = listed_rows.UNLINKED_REASON
            decisions = (planner.decide_gone(copy, reason, self._policy) for copy in copies)
            tasks = [pull.task_of(decision, at) for decision in decisions]
            pull.state.commit(StateTransaction(pending=tasks, completed=gone, listed=gone))

    def work_off(self) -> SyncOutcome:
        """Execute the tasks of earlier runs; the Source has nothing new.

        They stay those of the last reading: the next one drops what it does not confirm.
        """
        self._pull.generation = self._pull.cursor.generation
        pulled = self._plan(iter(()), has_news=False)
        if self._pull.options.dry_run:
            return pulled
        self._store_decisions(iter(()), self._pull.cursor.checkpoint or 0)
        return self._execute(pulled)

    def _execute(self, pulled: SyncOutcome) -> SyncOutcome:
        if self._pull.options.lists_only:
            return pulled
        if pulled.plan.create + pulled.plan.update:
            with timed_phase(self._pull.dependencies, "transfer"):
                through = self._pull.cursor.checkpoint or 0
                fetch_planned(self._pull, pulled, self._due_fetches, at=through, changes_first=True)
            if pulled.tally.undecided:
                self._pull.leave_open()
            self._suspect_changes(pulled)
        delete_pending(self._pull, pulled)
        return pulled

    def _suspect_changes(self, pulled: SyncOutcome) -> None:
        """Schedule a baseline for a change to content that the Source does not serve.

        The change may be no later than the Resource List, which then may list what is served. It is
        scheduled once: for the next pulls the entry differs, or the failure is the same.
        """
        if self._pull.found.resource_list is None:  # nothing else lists what is served
            return
        at = self._pull.cursor.resource_list_at or 0
        for failure in pulled.tally.failures:
            row = (
                self._pull.state.pending_of(failure.uri) if failure.code in MISMATCH_CODES else None
            )
            if row is not None and row.tries == 1 and (row.lastmod or 0) <= at:
                self._pull.leave_open()
                return

    def _due_fetches(self) -> Generator[planner.Fetch, None, None]:
        for task in self._pull.state.pending(PendingTask.FETCH):
            decision = self._decide_task(task)
            if isinstance(decision, planner.Fetch):
                yield decision


def _as_undated(row: planner.ListedEntry) -> planner.ListedEntry:
    is_unsure = row.change == ChangeKind.DELETED and row.lastmod is None
    return row._replace(undated=True) if is_unsure else row


def _is_void(completed: int, generation: int, task: Pending, *, is_lacking: bool) -> bool:
    """True if lists that were read anew do not confirm a task that they do not name.

    Its reading was killed before it was complete; or it is a deletion, and the lists lack changes,
    so that it may have been withdrawn.
    """
    if task.generation == generation:
        return False
    return task.generation > completed or (is_lacking and task.task != PendingTask.FETCH)


def is_version_before(copy: Copy | None, waiting: Pending | None) -> bool:
    """True if a copy is certainly the version before the one new change of its resource.

    Every earlier change is known and done: no task is pending. And a strong digest proved the copy
    to be the version that was listed then, not a later one.
    """
    if copy is None or waiting is not None or copy.length < 0:
        return False
    return copy.fixity == Fixity.VERIFIED and bool(copy.listed)
