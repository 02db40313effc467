"""Repair: findings of an audit, resolved as by a baseline, for these resources only."""

from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from itertools import islice
from typing import Final

from resourcesync.compare import Created, Deleted, Updated, compare
from resourcesync.destination.baseline import Baseline
from resourcesync.destination.commit import combine_tallies
from resourcesync.destination.decisions import show_decisions
from resourcesync.destination.dumps import DumpTransfer
from resourcesync.destination.listed_rows import ListedRows
from resourcesync.destination.planner import (
    FILTERED,
    Decision,
    Delete,
    Fetch,
    ListedEntry,
    ListingStatus,
    Match,
    as_suspect,
    as_unknown,
    is_unknown,
    listing_status,
    match_copy,
)
from resourcesync.destination.reports import AuditFinding, FindingKind, Mode, PlanSummary
from resourcesync.destination.session import SyncOutcome, SyncSession
from resourcesync.model.digests import disagree, parse_digests
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import CopyInspector
from resourcesync.ports.mirror import Copy, Pending, PendingTask, StateTransaction

_CHUNK: Final = 256
_UNLISTED: Final = "no longer listed"
_FETCHED_KINDS: Final = frozenset({FindingKind.MISSING, FindingKind.DIFFERENT})


class Repair:
    """Repair of one session.

    Args:
        pull: The session.
        deleting: Delete copies that the Source does not list.
    """

    def __init__(self, pull: SyncSession, *, deleting: bool) -> None:
        self._pull = pull
        self._deleting = deleting

    def run(
        self, findings: Iterable[AuditFinding], *, was_in_sync: bool | None = None
    ) -> SyncOutcome:
        """Fetch what is missing or different; locally changed files go to quarantine.

        Args:
            findings: Findings of an audit; those resolved meanwhile are skipped.
            was_in_sync: Result of that audit, if it was just now; ``None``: the lists are read to
                see whether there is more to do than was found.

        Raises:
            SourceError: The lists cannot be fetched.
            DocumentError: A list cannot be used.
            RollbackError: The Source offers an older state than the one already processed.
            StorageError: The mirror cannot be written; complete copies are kept.
        """
        wanted: set[str] = set()
        extra: set[str] = set()
        for finding in findings:
            if finding.kind in _FETCHED_KINDS:
                wanted.add(finding.uri)
            elif finding.kind is FindingKind.EXTRA and self._deleting:
                extra.add(finding.uri)
        if not wanted and not extra and was_in_sync is not None:
            plan = PlanSummary(mode=Mode.UNCHANGED)
            return SyncOutcome(mode=plan.mode, plan=plan, is_complete=was_in_sync)
        with ExitStack() as held:
            listed = Baseline(self._pull).read_listed_rows(held)
            inspector = held.enter_context(self._pull.dependencies.copies.inspect())
            return self._repair(listed, wanted, extra, inspector)

    def _repair(
        self, listed: ListedRows, wanted: set[str], extra: set[str], inspector: CopyInspector
    ) -> SyncOutcome:
        rows = (row for row in self._rows(listed) if row.uri in wanted)
        self._pull.path_assignment.assign_new(rows)
        plan = self._plan(listed, wanted, extra, inspector)
        foreseen = self._pull.report_plan(plan)
        decide = partial(self._decisions, listed, wanted, extra, inspector)
        show_decisions(self._pull, Mode.BASELINE, decide)
        pulled = SyncOutcome(mode=Mode.BASELINE, plan=plan)
        if self._pull.options.dry_run:
            pulled.deletions = foreseen
            return pulled
        self._pull.begin_repair(listed.history)
        transfer, found = self._pull.transfer(listed.checkpoint), self._pull.found
        dumps = DumpTransfer(
            self._pull,
            plan,
            lambda: self._mark_suspects(self._fetches(listed, wanted, inspector)),
            listed.checkpoint,
        )
        dump_tally = dumps.fetch_from_dumps((found.resource_dump, found.change_dump))
        fetches = self._mark_suspects(self._fetches(listed, wanted, inspector))
        with closing(fetches):
            total, size = plan.create + plan.update - dump_tally.done, plan.size - dump_tally.useful
            fetched = transfer.execute(fetches, total=total, size=max(0, size))
        pulled.tally = combine_tallies(dump_tally, fetched)
        pulled.is_complete = not transfer.stopped
        if pulled.tally.undecided:
            self._pull.move(self._pull.cursor.with_baseline_due())
        pulled.spent = self._pull.budget.spent
        if plan.delete:
            self._pull.state.commit(
                StateTransaction(pending=list(self._deletions(extra, listed.checkpoint)))
            )
            # Tasks of earlier pulls are not of this reading: the Source may have withdrawn them.
            self._pull.delete_pending(pulled, generation=self._pull.generation)
        else:
            pulled.are_deletions_done = not pulled.tally.gone  # the next pull deletes those
        pulled.is_complete = pulled.is_complete and self._is_in_sync(listed)
        return pulled

    def _is_in_sync(self, listed: ListedRows) -> bool:
        """True if the mirror's state has all that is listed now, and nothing else."""
        if self._pull.selection.refusals.count:
            return False
        state = self._pull.state
        for difference in compare(state.copies(), self._rows(listed), same=_agrees):
            match difference:
                case Deleted(copy) if not _is_task(state.pending_of(copy.uri), PendingTask.RETAIN):
                    return False
                case Created(row) if self._is_wrong(None, row, is_read=listed.was_read):
                    return False
                case Updated(copy, row) if self._is_wrong(copy, row, is_read=listed.was_read):
                    return False
        return True

    def _is_wrong(self, copy: Copy | None, row: ListedEntry, *, is_read: bool) -> bool:
        """True if a resource is not as listed, or its status is open."""
        if row.change == FILTERED:
            return False
        known = listing_status(row, copy, self._pull.state.pending_of(row.uri), is_read=is_read)
        if known is ListingStatus.LISTED:
            return copy is None or match_copy(copy, row) is Match.DIFFERENT
        return known is ListingStatus.OPEN

    def _plan(
        self, listed: ListedRows, wanted: set[str], extra: set[str], inspector: CopyInspector
    ) -> PlanSummary:
        """Count what is to be done; what is listed again is no longer extra."""
        create = update = size = unsized = 0
        twice: list[ListedEntry] = []
        for row in listed.rows(lambda _, other: twice.append(other)):
            if row.change != ChangeKind.DELETED:
                extra.discard(row.uri)
        if not listed.proves_absence or twice:
            extra.clear()  # unlisted may mean not listed yet, or not parsed
        for fetch in self._fetches(listed, wanted, inspector):
            create += fetch.creates
            update += not fetch.creates
            size += fetch.listed.length or 0
            unsized += fetch.listed.length is None
        gone = sum(1 for _ in self._copies(extra))
        return PlanSummary(
            mode=Mode.BASELINE,
            create=create,
            update=update,
            delete=gone,
            unsignalled=gone,
            size=size,
            unsized=unsized,
        )

    def _rows(self, listed: ListedRows) -> Iterator[ListedEntry]:
        for row in self._pull.selection.with_current_paths(listed.rows()):
            if row.change != ChangeKind.DELETED:
                yield row

    def _fetches(
        self, listed: ListedRows, wanted: set[str], inspector: CopyInspector
    ) -> Iterator[Fetch]:
        for row in self._rows(listed):
            if row.uri in wanted and row.change != FILTERED:
                fetch = self._fetch(row, inspector)
                if fetch is not None:
                    yield fetch

    def _fetch(self, row: ListedEntry, inspector: CopyInspector) -> Fetch | None:
        """Return the fetch of a resource; ``None`` if its copy is good."""
        copy = self._pull.state.copy(row.uri)
        if copy is None:
            return Fetch(row, None)
        row = row._replace(path=copy.path)
        if not _is_sound(copy, inspector):
            is_missing = inspector.signature(copy.path) is None
            altered = as_suspect(as_unknown(copy))
            return Fetch(row, altered, is_missing=is_missing)
        if match_copy(copy, row) is Match.DIFFERENT:
            return Fetch(row, copy)
        return None

    def _mark_suspects(self, fetches: Iterator[Fetch]) -> Generator[Fetch, None, None]:
        """Mark bad copies first, so that a failure does not leave them marked good."""
        while group := list(islice(fetches, _CHUNK)):
            bad = [
                fetch.before
                for fetch in group
                if fetch.before is not None and is_unknown(fetch.before)
            ]
            if bad:
                self._pull.state.commit(StateTransaction(suspect=bad))
            yield from group

    def _decisions(
        self, listed: ListedRows, wanted: set[str], extra: set[str], inspector: CopyInspector
    ) -> Iterator[Decision]:
        yield from self._fetches(listed, wanted, inspector)
        for copy in self._copies(extra):
            yield Delete(copy, _UNLISTED)

    def _deletions(self, extra: set[str], at: int) -> Iterator[Pending]:
        for copy in self._copies(extra):
            yield self._pull.deletion_task(copy, _UNLISTED, at)

    def _copies(self, extra: set[str]) -> Iterator[Copy]:
        for uri in sorted(extra):
            copy = self._pull.state.copy(uri)
            if copy is not None:  # foreign files are never deleted
                yield copy


def _agrees(copy: Copy, row: ListedEntry) -> bool:
    return not row.undated and match_copy(copy, row) is not Match.DIFFERENT


def _is_task(waiting: Pending | None, task: PendingTask) -> bool:
    return waiting is not None and waiting.task == task


def _is_sound(copy: Copy, inspector: CopyInspector) -> bool:
    """True if a copy's file is still as installed, to the last byte."""
    if is_unknown(copy) or inspector.signature(copy.path) != copy.signature:
        return False
    known = parse_digests(copy.digests)
    found = inspector.digest(copy.path, [digest.algorithm for digest in known])
    return found is not None and found[0] == copy.length and not disagree(found[1], known)
