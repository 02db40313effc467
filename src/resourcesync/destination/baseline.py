"""Baseline synchronization: the mirror against the Resource List and the changes since (§5.2)."""

from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from typing import Final, NamedTuple

from msgspec import structs

from resourcesync.destination import planner, pull_session
from resourcesync.destination.changes.intervals import ChangeHistory
from resourcesync.destination.cursor import (
    Cursor,
    Phase,
    after_list,
    is_old_reading,
    reported_beside,
)
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.listed_rows import (
    ENTRY_LINKS_COMPLETE,
    ListedRows,
    collect_linked,
    deduplicated_rows,
    has_known_change,
    link_rows,
    merge_linked,
    store_entry_links,
    store_links,
)
from resourcesync.destination.lists import absence_proof
from resourcesync.destination.lists.resource_reader import ListSnapshot
from resourcesync.destination.reports import Mode
from resourcesync.destination.runs import RecordedPlan, delete_pending, fetch_planned
from resourcesync.destination.sync_state import cursor_note, encode_notes, undone_tasks
from resourcesync.destination.transfers.verification import inspected_copies
from resourcesync.errors import DiscontinuityError, SourceNotFoundError
from resourcesync.mirror_state.rows import Copy, Pending, ProcessedDocument, StateTransaction
from resourcesync.model.timestamps import format_w3c, from_microseconds
from resourcesync.model.vocabulary import ChangeKind

_CHUNK: Final = 1_000
_MAX_NEW: Final = 5_000
"""Limit of new resources whose names are looked up singly; above it all are compared."""
_MAX_KEPT: Final = 5_000
"""Limit of planned decisions that stay in memory; above it all are made again."""


class _ListsRead(NamedTuple):
    snapshot: ListSnapshot
    history: ChangeHistory | None
    sorters: list[ExternalSorter[planner.ListedEntry]]
    linked: ExternalSorter[planner.ListedEntry] | None


class Baseline:
    """Baseline synchronization of one session."""

    def __init__(self, pull: pull_session.SyncSession) -> None:
        self._pull = pull
        self._accepts_undated = pull.options.delete == "absent"
        self._policy = planner.DecisionPolicy(absence=planner.Absence.UNPROVEN)
        self._through = self._listed_at = 0
        self._complete_reading: absence_proof.CompleteReading | None = None
        self._kept: list[planner.Decision] | None = None
        self._is_cut = self._has_gap = self._is_undecided = self._has_missed = False

    def run(
        self, *, gap: bool = False, known: ProcessedDocument | None = None, newer: bool = False
    ) -> pull_session.SyncOutcome | pull_session.Next:
        """Synchronize the mirror with the Resource List and the changes since."""
        with ExitStack() as held:
            with pull_session.timed_phase(self._pull.dependencies, "lists"):
                lists = self._read(held, gap=gap, known=known, newer=newer)
            return self._pull.after_list if lists is None else self._synchronize(lists)

    def read_listed_rows(self, held: ExitStack, *, deleting: bool = False) -> ListedRows:
        """Read what the Source lists now, and whether a repair may delete what it lacks."""
        self._accepts_undated = True
        lists = self._read(held)
        assert lists is not None, "an unconditional reading always returns a snapshot"
        snapshot, history, sorters, linked = lists
        absence, absent_at = self._assess(snapshot, history)
        is_open = deleting and absence is planner.Absence.TWICE
        if is_open and self._pull.resource_lists.is_stable(snapshot):
            absence = planner.Absence.DELETED
        return ListedRows(
            sorters=sorters,
            at=None if snapshot.at is None else self._through,
            checkpoint=self._through,
            has_gap=self._has_gap or snapshot.outdated_parts > 0,
            proves_absence=absence is planner.Absence.DELETED,
            absent_at=absent_at,
            linked=linked,
            was_read=self._pull.was_read(snapshot.at, history),
        )

    def _read(
        self,
        held: ExitStack,
        *,
        gap: bool = False,
        known: ProcessedDocument | None = None,
        newer: bool = False,
    ) -> _ListsRead | None:
        uri, sorter = self._resource_list(), held.enter_context(self._pull.new_sorter())
        snapshot = self._pull.read_list(uri, sorter, known)
        if snapshot is None:
            return None
        at, last = snapshot.at, self._pull.cursor.resource_list_at
        if newer and at is not None and last is not None and at <= last:
            self._pull.record_list_reading()
            return None
        self._check_time(snapshot, gap=gap)
        history = self._read_changes(snapshot, sorter, held)
        sorters = [sorter] if history is None else [sorter, history.sorter]
        linked = collect_linked(self._pull, deduplicated_rows(sorters), held)
        return _ListsRead(snapshot, history, sorters, linked)

    @property
    def _is_forced(self) -> bool:
        return self._pull.options.mode == "baseline" or self._pull.options.moved != ""

    def _resource_list(self) -> str:
        uri = self._pull.found.resource_list
        if uri is None:
            raise SourceNotFoundError(
                "the Source has no Resource List to start from",
                uri=self._pull.found.entry,
                evidence=(("found", self._pull.found.change_list or self._pull.found.entry),),
                hint="what an audit found, the next pull fetches again: resourcesync pull MIRROR",
            )
        return uri

    def _check_time(self, snapshot: ListSnapshot, *, gap: bool) -> None:
        through = self._pull.cursor.checkpoint
        if snapshot.at is None or self._is_forced:
            return
        snapshot.moments.check_no_older(self._pull.cursor.moments)
        if gap and through is not None and snapshot.at <= through:
            raise DiscontinuityError(
                "the Change Lists no longer reach back to the mirror's last state, and the Resource"
                " List is no newer",
                evidence=(
                    ("here", f"complete to {_w3c(through)}"),
                    ("got", f"Resource List at {_w3c(snapshot.at)}"),
                    ("kept", "nothing was changed"),
                ),
                hint="wait for the Source's next Resource List and run again",
            )

    def _read_changes(
        self, snapshot: ListSnapshot, sorter: ExternalSorter[planner.ListedEntry], held: ExitStack
    ) -> ChangeHistory | None:
        if self._pull.found.change_list is None or snapshot.at is None:
            self._pull.warn_no_time()
            return None
        positions = self._pull.cursor.list_positions(snapshot.at, vouched=self._is_forced)
        history = self._pull.change_lists.read_since(
            self._pull.found.change_list, snapshot.at, positions
        )
        held.enter_context(history.sorter)
        if not history.is_continuous:
            # An empty one says nothing: the mirror is as of the Resource List.
            is_known = snapshot.moments.is_one and has_known_change(sorter, history.sorter)
            history = structs.replace(history, is_continuous=is_known or not history.change_count)
        if not self._is_forced:
            history = after_list(self._pull.cursor, history, self._pull.now)
        if self._pull.options.mode != "baseline":
            self._pull.is_old_reading = is_old_reading(
                self._pull.cursor, snapshot.at, history, self._pull.now
            )
        if not history.reaches_back:
            self._pull.warn(
                "change-gap",
                "the Change Lists do not reach back to the Resource List: resources created in"
                " between are fetched with the next Resource List",
            )
        return history

    def _coverage(self, snapshot: ListSnapshot, history: ChangeHistory | None) -> tuple[int, bool]:
        """Return the moment up to which the lists report, and whether they do so without a gap.

        Without Change Lists, a Resource List older than T does not report what changed since.
        """
        known, at = self._pull.cursor.checkpoint or 0, snapshot.at or 0
        if history is not None and history.reaches_back:
            return history.checkpoint, True
        if history is not None:
            return max(history.checkpoint, known), False
        if snapshot.at is None or at >= known or self._is_forced:
            return at, True
        cursor = self._pull.cursor
        is_alone = not (cursor.head or cursor.has_gap)  # T is that of an earlier Resource List
        if is_alone and snapshot.moments.parts:  # and a part joined with an older moment
            return known, True
        return known, False

    def _synchronize(self, lists: _ListsRead) -> pull_session.SyncOutcome:
        self._decide_policy(lists.snapshot, lists.history)
        if self._has_stable_absence(lists):
            self._policy = structs.replace(self._policy, absence=planner.Absence.DELETED)
        counts, pulled = self._plan(lists)
        self._assign_paths(lists, counts.plan.create)
        if self._pull.options.dry_run:
            is_all = self._phase_after(lists.snapshot) is Phase.FOLLOWING
            pulled.is_complete = is_all and not pulled.unread_parts
            pulled.are_deletions_done = not (self._pull.options.lists_only or pulled.unread_parts)
            return pulled
        self._pull.begin()
        self._store_links(lists)
        if self._pull.options.lists_only:
            pulled.are_deletions_done = False
            self._store_tasks(self._planned_decisions(lists))
        else:
            with pull_session.timed_phase(self._pull.dependencies, "transfer"):
                self._fetch(pulled, lists)
        if pulled.unread_parts:  # as after an interruption: all resources are due again
            pulled.is_complete = pulled.are_deletions_done = False
            self._pull.record_refused(add=True)
        if pulled.is_complete:
            self._is_undecided = pulled.tally.undecided > 0
            with pull_session.timed_phase(self._pull.dependencies, "commit"):
                self._finish(lists, unsure=counts.unsure or pulled.tally.open_dates > 0)
            is_open = self._has_missed or self._is_old_copy
            pulled.is_complete = not (lists.snapshot.outdated_parts or is_open)
        if pulled.are_deletions_done:
            delete_pending(self._pull, pulled)
        return pulled

    def _has_stable_absence(self, lists: _ListsRead) -> bool:
        if self._policy.absence is not planner.Absence.TWICE:
            return False
        reasons = (getattr(decision, "reason", "") for decision in self._decisions(lists))
        return planner.MISSED in reasons and self._pull.resource_lists.is_stable(lists.snapshot)

    def _plan(self, lists: _ListsRead) -> tuple[planner.DecisionCounts, pull_session.SyncOutcome]:
        dry_run = self._pull.options.dry_run
        with RecordedPlan(self._pull) as planned:
            groups = self._keep_few(self._decisions(lists))
            counts = planned.count(chain.from_iterable(groups), Mode.BASELINE)
            foreseen, plan = planned.report(counts), counts.plan
        self._has_missed = counts.missed > 0
        return counts, pull_session.SyncOutcome(
            mode=Mode.BASELINE,
            plan=plan,
            deletions=foreseen,
            retained_count=counts.retained,
            missed_count=counts.missed,
            filtered_count=counts.filtered if dry_run else None,
            selected_count=plan.same + plan.create + plan.update + counts.postponed,
            refused_count=self._pull.selection.refusals.count,
            unread_parts=len(self._pull.selection.refusals.unread),
            is_written=not dry_run,
        )

    def _assign_paths(self, lists: _ListsRead, created: int) -> None:
        assignment = self._pull.path_assignment
        if self._pull.sync_state.relocated_uris or created >= _MAX_NEW:
            is_changed = assignment.assign_all(self._rows_of(lists))
        else:
            planned = self._planned_decisions(lists) if created else ()
            new = [
                each.listed
                for each in planned
                if type(each) is planner.Fetch and each.before is None
            ]
            is_changed = assignment.assign_new(new)
        if is_changed:
            self._kept = None

    def _store_links(self, lists: _ListsRead) -> None:
        pull, sorters = self._pull, lists.sorters
        store_links(
            pull.state, link_rows(deduplicated_rows(sorters), lists.linked, pull.generation)
        )
        if pull.selection.has_entries:
            rows = deduplicated_rows(sorters)
            store_entry_links(pull.state, rows, generation=pull.generation, now=pull.now, anew=True)

    def _keep_few(self, decisions: Iterator[planner.Decision]) -> Iterator[list[planner.Decision]]:
        kept: list[planner.Decision] = []
        while group := list(islice(decisions, _CHUNK)):
            if len(kept) <= _MAX_KEPT:
                kept += [each for each in group if type(each) is not planner.UpToDate]
            yield group
        self._kept = kept if len(kept) <= _MAX_KEPT else None

    def _planned_decisions(self, lists: _ListsRead) -> Iterable[planner.Decision]:
        return self._decisions(lists) if self._kept is None else self._kept

    def _fetch(self, pulled: pull_session.SyncOutcome, lists: _ListsRead) -> None:
        if self._pull.found.resource_dump or self._pull.found.change_dump:
            self._kept = None  # the dumps change the copies

        def wanted() -> Iterator[planner.Fetch]:
            planned = self._planned_decisions(lists)
            return (decision for decision in planned if isinstance(decision, planner.Fetch))

        def fetches() -> Generator[planner.Fetch, None, None]:
            return self._pull.marked(self._fetches(self._planned_decisions(lists)))

        fetch_planned(self._pull, pulled, fetches, at=self._through, wanted=wanted)
        pulled.are_deletions_done = pulled.is_complete

    def _store_tasks(self, decisions: Iterable[planner.Decision]) -> None:
        state, fetches = self._pull.state, self._pull.marked(self._fetches(decisions))
        while group := list(islice(fetches, _CHUNK)):
            known = (state.pending_of(fetch.listed.uri) for fetch in group)
            state.commit(StateTransaction(pending=list(map(self._task_of, group, known))))

    def _assess(
        self, snapshot: ListSnapshot, history: ChangeHistory | None
    ) -> tuple[planner.Absence, int]:
        self._through, reaches = self._coverage(snapshot, history)
        self._has_gap = not reaches
        absence, absent_at = self._absence(snapshot, history, self._through, reaches=reaches)
        before = self._pull.cursor.complete_reading
        is_cut = absence_proof.is_cut(snapshot.moments, snapshot.entries, before)
        is_proven = absence is not planner.Absence.UNPROVEN
        self._is_cut = is_proven and is_cut and self._pull.options.delete != "absent"
        if self._is_cut:
            self._pull.warn("cut-list", pull_session.CUT_LIST)
        return planner.Absence.UNPROVEN if self._is_cut else absence, absent_at

    def _decide_policy(self, snapshot: ListSnapshot, history: ChangeHistory | None) -> None:
        absence, absent_at = self._assess(snapshot, history)
        refusals = self._pull.selection.refusals
        if refused := refusals.count - len(refusals.unread):
            self._pull.warn_not_understood(refused)
        if snapshot.outdated_parts:
            self._pull.warn("old-part", pull_session.OLD_PART)
        if self._is_old_copy:
            self._pull.warn("old-lists", pull_session.OLD_LISTS)
        if history is None and self._has_gap and not self._is_cut:
            self._pull.warn("change-gap", pull_session.NO_CHANGES)
        known_at = self._pull.cursor.complete_reading.moments.at or 0
        is_older = absent_at < 0 and (snapshot.at or 0) < known_at
        if absence is not planner.Absence.UNPROVEN and snapshot.at is not None and not is_older:
            self._complete_reading = absence_proof.CompleteReading(
                moments=snapshot.moments, absent_at=absent_at, entries=snapshot.entries
            )
        self._listed_at = self._through if snapshot.at is None else snapshot.at
        policy = self._pull.decision_policy(absence, absent_at=absent_at)
        is_vouched = self._pull.options.mode == "baseline" and not self._pull.options.moved
        is_asked = is_vouched or self._pull.cursor.is_withdrawn(snapshot.at)
        self._policy = structs.replace(policy, asks_unlisted=is_asked)

    def _absence(
        self, snapshot: ListSnapshot, history: ChangeHistory | None, through: int, *, reaches: bool
    ) -> tuple[planner.Absence, int]:
        options, cursor = self._pull.options, self._pull.cursor
        through = through if history is None else history.list_clock
        self._pull.list_clock = max(through, snapshot.moments.latest)
        if history is not None and not self._is_forced:
            through = reported_beside(cursor, snapshot.at, history)
        reading = absence_proof.ListReading(
            is_complete=snapshot.proves_absence and not self._pull.selection.refusals.count,
            is_one_moment=snapshot.is_one_moment,
            moments=snapshot.moments,
            served=self._pull.now if snapshot.served is None else snapshot.served,
            through=through if reaches else None,
            accepts_undated=self._accepts_undated,
            accepts_older=options.mode == "baseline",
            has_moved=options.moved != "",
        )
        return absence_proof.proven_absence(
            reading, cursor.complete_reading, cursor.list_clock or 0
        )

    def _rows_of(self, lists: _ListsRead) -> Iterator[planner.ListedEntry]:
        rows = merge_linked(deduplicated_rows(lists.sorters), lists.linked)
        return self._pull.selection.with_current_paths(rows)

    def _decisions(self, lists: _ListsRead) -> Iterator[planner.Decision]:
        rows, tasks = self._understood(self._rows_of(lists)), undone_tasks(self._pull.state)
        decisions = planner.decide_all(self._copies(), rows, tasks, self._policy)
        return self._pull.dependencies.cancel.checked(decisions)

    def _understood(self, rows: Iterator[planner.ListedEntry]) -> Iterator[planner.ListedEntry]:
        """Yield rows; while unusable entries may list a resource, none by which its copy goes."""
        if not self._pull.selection.refusals.count:
            return rows
        hidden = (planner.UNLISTED, False), (planner.UNLISTED, True), (ChangeKind.DELETED, True)
        return (row for row in rows if (row.change, row.undated) not in hidden)

    def _copies(self) -> Iterator[Copy]:
        options, copies = self._pull.options, self._pull.state.copies()
        if options.mode != "baseline":
            recovered = self._pull.recovered
            return (recovered.get(each.uri, each) for each in copies) if recovered else copies
        return inspected_copies(self._pull.dependencies, copies, dry_run=options.dry_run)

    def _fetches(
        self, decisions: Iterable[planner.Decision]
    ) -> Generator[planner.Fetch, None, None]:
        waiting: list[Pending] = []
        for decision in decisions:
            if type(decision) is planner.Fetch:
                yield decision
            elif not isinstance(decision, planner.UpToDate):
                waiting.append(self._task_of(decision))
                if len(waiting) >= _CHUNK:
                    self._pull.state.commit(StateTransaction(pending=waiting))
                    waiting = []
        self._pull.state.commit(StateTransaction(pending=waiting))

    def _task_of(
        self,
        decision: planner.Fetch | planner.Delete | planner.Retain | planner.Postponed,
        known: Pending | None = None,
    ) -> Pending:
        reason = decision.reason if isinstance(decision, planner.Delete | planner.Retain) else ""
        at = self._listed_at if reason in {planner.ABSENT, *planner.OPEN_REASONS} else self._through
        return self._pull.task_of(decision, at, known)

    def _finish(self, lists: _ListsRead, *, unsure: bool) -> None:
        pull, snapshot, history = self._pull, lists.snapshot, lists.history
        cursor = self._cursor_after(snapshot, history)
        notes = encode_notes(
            unsure=unsure,
            unproving=not snapshot.proves_absence,
            found=pull.discovered,
            list_head=snapshot.version or absence_proof.ListVersion(),
            changes_since=0,
        )
        pull.record_refused(add=False)
        pull.record_list_reading()
        # One transaction: a task of an older reading that outlived the cursor would run later.
        pull.state.commit(
            StateTransaction(
                documents=[*snapshot.documents, *(() if history is None else history.documents)],
                only_documents=True,
                notes=cursor_note(cursor)
                | notes
                | {pull_session.NO_TIME_NOTE: str(int(snapshot.at is None))}
                | {ENTRY_LINKS_COMPLETE: "1"},
                outdated=pull.generation,
                now=pull.now,
            )
        )
        pull.cursor = cursor

    def _cursor_after(self, snapshot: ListSnapshot, history: ChangeHistory | None) -> Cursor:
        pull, at, through = self._pull, snapshot.at, self._through
        cursor = structs.replace(
            pull.cursor,
            phase=self._phase_after(snapshot),
            generation=pull.generation,
            completed_generation=pull.generation,
        )
        if self._is_old_copy:
            return cursor
        cursor = structs.replace(
            cursor,
            checkpoint=through,
            list_clock=through,
            moments=pull.cursor.moments if at is None else snapshot.moments,
        )
        if self._complete_reading is not None and not self._has_missed:
            cursor = structs.replace(cursor, complete_reading=self._complete_reading)
        if history is None or at is None:
            return structs.replace(cursor, head="", processed=(), last_changes=(), window=None)
        positions, first_window = pull.cursor.list_positions(at).first_read(history)
        return structs.replace(
            cursor.after(history),
            checkpoint=through,
            positions_at=at,
            positions=positions,
            first_window=first_window,
        )

    @property
    def _is_old_copy(self) -> bool:
        return self._pull.is_old_reading and not self._has_gap

    def _phase_after(self, snapshot: ListSnapshot) -> Phase:
        is_open = self._is_undecided or self._has_missed or self._is_old_copy
        if is_open and self._pull.cursor.is_withdrawn(snapshot.at):
            return Phase.ROLLED_BACK
        if is_open or snapshot.outdated_parts:
            return Phase.BASELINE_DUE
        if self._is_cut:
            return Phase.CUT_LIST
        return Phase.GAP if self._has_gap else Phase.FOLLOWING


def _w3c(moment: int) -> str:
    return format_w3c(from_microseconds(moment))
