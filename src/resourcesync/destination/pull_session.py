"""Session of one pull: the state that baseline and incremental synchronization share."""

import logging
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from msgspec import structs

from resourcesync.destination import planner
from resourcesync.destination.changes.intervals import ChangeHistory, is_plausible
from resourcesync.destination.changes.reader import ChangeListReader
from resourcesync.destination.cursor import Cursor
from resourcesync.destination.external_sort import ExternalSorter, TupleSorter
from resourcesync.destination.lists.absence_proof import ListMoments
from resourcesync.destination.lists.list_documents import ListDocuments
from resourcesync.destination.lists.resource_reader import ListSnapshot, ResourceListReader
from resourcesync.destination.lists.selection import MAX_REFUSED, ResourceSelection
from resourcesync.destination.options import Dependencies, PullOptions
from resourcesync.destination.path_assignment import PathAssignment
from resourcesync.destination.pending_tasks import task_of
from resourcesync.destination.reports import DeletionResult, Mode, PlanSummary, TransferTally
from resourcesync.destination.sync_state import MirrorIdentity, SyncState, question_notes
from resourcesync.discovery.document_fetcher import DocumentFetcher
from resourcesync.discovery.sets import SourceLists
from resourcesync.discovery.uris import origin
from resourcesync.errors import quoted
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Copy, Pending, ProcessedDocument, StateTransaction
from resourcesync.model.timestamps import format_w3c, from_microseconds, to_microseconds
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import CancelToken

if TYPE_CHECKING:
    from resourcesync.destination.lists.dump_packages import DumpPackages

_log = logging.getLogger(__name__)
NO_TIME_NOTE: Final = "no-time told"
_CHUNK: Final = 256
_EVER: Final = (1 << 63) - 1
_AHEAD: Final = "the time of {}, {}, is more than a day in the future: it is ignored"
CUT_LIST: Final = (
    "the Resource List has fewer entries than an earlier one of the same moment: copies that it no"
    " longer lists are kept until the next one"
)
OLD_PART: Final = (
    "a part of the Resource List is older than its index says (a stale copy, or not written yet):"
    " the mirror is behind, and the next pull reads the whole list again"
)
OLD_LISTS: Final = (
    "the lists at the Source's new address report less than was processed (old copies, or another"
    " state): nothing goes, and the mirror is behind until they report more. If they are right,"
    " read the whole list: a baseline"
)
NO_CHANGES: Final = (
    "the Source no longer has Change Lists, and its Resource List is older than the mirror: later"
    " changes are fetched with the next Resource List"
)


Spent = Literal["", "time", "bytes"]
"""Limit that a run reached; empty if it completed."""


class Budget:
    """Limit of the bytes that a run may fetch, and the reason why a run ended early.

    At least one resource is always fetched, however large: the next run would get no further.
    ``spent`` is the limit that was reached.
    """

    def __init__(self, limit: int | None, received: Callable[[], int], cancel: CancelToken) -> None:
        self._limit = limit
        self.is_limited = limit is not None
        self._received = received
        self._start = received()
        self._cancel = cancel
        self._reserved = 0
        self._has_reserved = False
        self.spent: Spent = ""

    def expire(self) -> None:
        """Record that the time is over: no request is begun, and finished work may be written."""
        self.spent = "time"
        self._cancel.lift_limit()

    def fits(self, length: int | None) -> bool:
        """True if so many more bytes (``None``: unknown) may be fetched."""
        if self.spent or self._limit is None:
            return not self.spent
        # A resource of unknown length has at least one byte.
        wanted = self._received() - self._start + self._reserved + (length or 1)
        return wanted <= self._limit

    def reserve(self, length: int | None) -> bool:
        """Reserve the bytes of a request; return whether it may be sent."""
        if not self.fits(length) and (self._has_reserved or self.spent):
            self.spent = self.spent or "bytes"
            return False
        self._has_reserved = True
        self._reserved += length or 0
        return True

    def release(self, length: int | None) -> None:
        """Release a reservation at the end of its request: received bytes count from now on."""
        self._reserved -= length or 0


class SyncOutcome(msgspec.Struct, kw_only=True):
    """Outcome of a pull, before it is reported.

    ``None``: ``selected_count`` if the whole list was not read, the other two if they are as
    stored. ``is_complete``: the plan was executed to the end. ``postponed`` are resources that are
    not due yet, and those of them that have a copy. ``untold``: what a repair found that no run
    stored: resources to fetch, and copies not as listed. ``extra_count``: the unlisted copies that
    it leaves to a pull. ``is_written``: what is to be done is stored; not so in a dry run.
    """

    mode: Mode
    plan: PlanSummary
    tally: TransferTally = msgspec.field(default_factory=TransferTally)
    deletions: DeletionResult = msgspec.field(default_factory=DeletionResult)
    retained_count: int | None = None
    missed_count: int = 0
    filtered_count: int | None = None
    is_complete: bool = True
    selected_count: int | None = None
    refused_count: int = 0
    unread_parts: int = 0
    postponed: tuple[int, int] = (0, 0)
    untold: tuple[int, int] = (0, 0)
    extra_count: int = 0
    is_written: bool = True
    are_deletions_done: bool = True
    spent: Spent = ""
    rechecked: int = 0
    stale_dates: int = 0


def out_of_time() -> SyncOutcome:
    """Return the outcome of a pull whose time was over before it had a plan."""
    pulled = SyncOutcome(mode=Mode.UNCHANGED, plan=PlanSummary(mode=Mode.UNCHANGED), spent="time")
    pulled.is_complete = pulled.are_deletions_done = False
    return pulled


class Next(Enum):
    """Next step of a pull; a step that is the last one has an outcome instead."""

    RELOCATE = "read the lists that the Source offers now"
    BASELINE = "read the whole Resource List, and the changes since"
    NEWER_BASELINE = "the same, of a list that must be newer than the mirror: changes are missing"
    GAP = "read the Resource List if it is newer: changes are missing"
    LIST = "read the Resource List if it changed"
    CHANGES = "read the new changes"
    WORK_OFF = "execute the tasks of earlier runs: there is nothing new"


class SyncSession:
    """Session of one pull."""

    def __init__(
        self,
        equipment: Dependencies,
        options: PullOptions,
        found: SourceLists,
        selection: ResourceSelection,
        identity: MirrorIdentity | None = None,
    ) -> None:
        self.dependencies = equipment
        self.options = options
        self.path_assignment = PathAssignment(equipment, selection, dry_run=options.dry_run)
        self.discovered = found
        self.selection = selection
        selection.addresses.add_source_addresses(*found.documents)
        self.state: SqliteMirrorState = equipment.state
        self.sync_state = SyncState(equipment.state)
        self.identity = identity or self.sync_state.identity
        self.now = to_microseconds(equipment.clock.now())
        self.cursor: Cursor = self.sync_state.cursor
        self.generation = self.cursor.generation + 1
        self.list_clock, self.is_old_reading = self.cursor.list_clock or 0, False
        documents = self.documents = DocumentFetcher(equipment.fetcher, equipment.scratch)
        self.budget = Budget(options.max_bytes, lambda: equipment.traffic()[1], equipment.cancel)
        chosen = options.accept_missing
        self.accepts_missing = found.is_sitemap if chosen is None else chosen
        self._is_retaining = False
        self.recovered: Mapping[str, Copy] = {}  # by a dry run: suspect no more
        manifests = None if options.dumps == "never" else lambda: self.packages
        self.resource_lists = ResourceListReader(
            documents, selection, manifests, self._list_documents, lambda: self.sync_state.list_head
        )
        self.change_lists = ChangeListReader(
            documents=documents,
            selection=selection,
            cancel=equipment.cancel,
            new_sorter=self.new_sorter,
            packages=manifests,
            archive=found.change_list_archive or found.change_dump_archive or "",
        )

    def _list_documents(self, documents: DocumentFetcher) -> ListDocuments:
        return ListDocuments(
            documents,
            self.dependencies.stored_parts,
            self.now,
            is_sitemap=self.discovered.is_sitemap,
            requests_all=self.options.dry_run or self.options.mode == "baseline",
        )

    @cached_property
    def packages(self) -> "DumpPackages":
        """The packages of the Source's dumps."""
        from resourcesync.destination.lists.dump_packages import DumpPackages  # noqa: PLC0415 - some

        return DumpPackages(self.dependencies, self.documents, is_retaining=self._is_retaining)

    @contextmanager
    def retaining_packages(self) -> Iterator[None]:
        """Retain packages that were fetched for their manifests until they are opened."""
        self._is_retaining = True
        try:
            yield
        finally:
            if "packages" in vars(self):
                self.packages.suspend()

    @property
    def found(self) -> SourceLists:
        """Result of discovery, with dumps in place of missing lists, and lists that are dumps."""
        found = self.discovered
        if self.options.dumps == "never":
            return found
        uri = found.change_list
        is_dump = self.cursor.is_of_dump and self.cursor.head == uri
        is_dump = is_dump or uri in self.change_lists.packed
        if uri is not None and found.change_dump is None and is_dump:
            found = structs.replace(found, change_dump=uri)
        return with_dumps(found)

    @property
    def after_list(self) -> Next:
        """Next step where the Resource List has nothing new."""
        return Next.WORK_OFF if self.found.change_list is None else Next.CHANGES

    @property
    def listing_dumps(self) -> frozenset[Capability]:
        """Kinds of dumps whose manifests are the lists, since the Source has no others."""
        found = self.found
        pairs = (
            (Capability.RESOURCE_DUMP, found.resource_dump, found.resource_list),
            (Capability.CHANGE_DUMP, found.change_dump, found.change_list),
        )
        return frozenset(kind for kind, dump, of in pairs if dump is not None and dump == of)

    def new_sorter(self) -> ExternalSorter[planner.ListedEntry]:
        """Open an empty sorter on the mirror's disk."""
        return TupleSorter(planner.ListedEntry, self.dependencies.scratch)

    def read_list(
        self,
        uri: str,
        spool: ExternalSorter[planner.ListedEntry],
        known: ProcessedDocument | None = None,
    ) -> ListSnapshot | None:
        """Read a Resource List; an implausible time counts as none."""
        snapshot = self.resource_lists.read(uri, spool, known)
        if snapshot is None:
            return None
        if not snapshot.entries and self.discovered.is_sitemap:
            self.warn("empty-sitemap", f"the sitemap lists nothing: {uri}")
        at, through = snapshot.at, self.cursor.checkpoint or 0
        if at is None or is_plausible(at, through=through, now=self.now):
            return snapshot
        self.warn(
            "clock-skew", _AHEAD.format("the Resource List", format_w3c(from_microseconds(at)))
        )
        return structs.replace(snapshot, moments=ListMoments())

    def move(self, cursor: Cursor) -> None:
        """Set the cursor, and store it, except in a dry run."""
        if not self.options.dry_run:
            self.sync_state.save(cursor)
        self.cursor = cursor

    def begin(self) -> None:
        """Record that rows of a new reading of the Source are about to be stored.

        So what a killed run left behind can be told from what this one writes. If the run is
        killed before all is stored, only a baseline can continue.
        """
        self.move(structs.replace(self.cursor, generation=self.generation).with_baseline_due())

    def leave_open(self) -> None:
        """Record a contradiction that no answer of the Source decided."""
        self.state.commit(StateTransaction(notes=question_notes(self.cursor)))
        self.cursor = self.cursor.with_question()

    def record_list_reading(self) -> None:
        """Record that the Resource List was read whole, in whatever way it was requested."""
        if not self.options.dry_run:
            self.sync_state.write(list_read_at=self.now)

    def begin_repair(self) -> None:
        """Record that a repair is about to act on the present lists.

        No pull has processed these, and they may be withdrawn before the next one reads them: so a
        baseline is due.
        """
        self.move(structs.replace(self.cursor, generation=self.generation).repaired())

    def _has_unprocessed(self, read: ChangeHistory | None) -> bool:
        if read is None:
            return False
        for now in (done.record for done in read.lists):
            known = self.state.document(now.uri, now.from_)
            if now.entries and (known is None or known.prefix != now.prefix):
                return True
        return False

    def was_read(self, at: int | None, read: ChangeHistory | None) -> bool:
        """True if a pull read these very lists to the end, and so requested what they dispute."""
        return at == self.cursor.resource_list_at and not (
            self.cursor.is_incomplete or self._has_unprocessed(read)
        )

    def decision_policy(
        self, absence: planner.Absence, *, absent_at: int = 0, deletes_restored: bool = False
    ) -> planner.DecisionPolicy:
        """Return the policy of the decisions of this run."""
        # A baseline that is due does not judge the lists: earlier deletions may be withdrawn.
        cursor, is_proven = self.cursor, absence in {planner.Absence.DELETED, planner.Absence.TWICE}
        may_count = not cursor.is_baseline_due or (is_proven and not cursor.is_rolled_back)
        return planner.DecisionPolicy(
            absence=absence,
            absent_at=absent_at,
            delete=self.options.delete or "auto",
            prunes=self.options.prune,
            deletes_restored=deletes_restored,
            is_old_reading=self.is_old_reading,
            counts_until=cursor.completed_generation if may_count else -1,
            now=_EVER
            if self.options.mode == "baseline"
            else self.now,  # nothing waits for its turn
        )

    def task_of(
        self,
        decision: planner.Fetch | planner.Delete | planner.Retain | planner.Postponed,
        at: int,
        known: Pending | None = None,
    ) -> Pending:
        """Return the task that a decision leaves which is made from lists up to ``at``."""
        if isinstance(decision, planner.Retain) and (bad := decision.copy).is_damaged:
            marked = bad if bad.is_suspect else planner.as_suspect(bad)
            if marked != self.state.copy(bad.uri):
                self.state.commit(StateTransaction(suspect=[marked]))
        return task_of(decision, known, now=self.now, at=at, generation=self.generation)

    def marked(self, fetches: Iterator[planner.Fetch]) -> Generator[planner.Fetch, None, None]:
        """Yield fetches; first, mark their bad copies: a failure must not leave them good."""
        while group := list(islice(fetches, _CHUNK)):
            copies = (fetch.before for fetch in group)
            bad = [copy for copy in copies if copy is not None and copy.is_suspect]
            self.state.commit(StateTransaction(suspect=bad))
            yield from group

    def record_refused(self, *, add: bool) -> None:
        """Store the refused entries: those of this run only, or added to earlier ones."""
        refusals = self.selection.refusals
        if add and not refusals.count and not refusals.withdrawn:
            return
        rows = {row.uri: row for row in self.state.refused()} if add else {}
        unnamed = max(0, self.sync_state.refused_count - len(rows)) if add else 0
        before = rows.keys() - refusals.withdrawn
        count = len(before) + unnamed + refusals.new_count if add else refusals.count
        kept = [rows[uri] for uri in sorted(before)] + refusals.stored
        self.state.replace_refused(kept[:MAX_REFUSED], self.now)
        self.sync_state.write(refused=count)

    def record_new_refused(self) -> None:
        """Store the refused entries that no pull has read; a baseline, then due, may read them."""
        if self.selection.refusals.new_count:
            self.record_refused(add=True)
            self.move(self.cursor.with_baseline_due())

    def warn_no_time(self) -> None:
        """Warn once that each pull reads the whole list, though there is a Change List."""
        if self.found.change_list is not None and not self.sync_state.is_note_set(NO_TIME_NOTE):
            self.warn(
                "no-time",
                "the Resource List gives no time, so it is unknown which changes it includes: each"
                " pull compares with the whole list",
            )

    def warn_not_understood(self, refused: int) -> None:
        """Warn that unlisted copies are kept, and why."""
        entries = "an entry" if refused == 1 else f"{refused:,} entries"
        foreign = [row.uri for row in self.selection.refusals.stored if row.code == "foreign"]
        moved, hint = "", ""
        if foreign:
            moved = f"; one is {foreign[0]}: the Source may have moved there"
            folder, to = self.dependencies.folder, quoted(f"{origin(foreign[0])}/", "")
            hint = (
                "if the Source moved, follow it: "
                f"resourcesync pull {quoted(folder, 'MIRROR')} --moved {to}"
            )
        self.warn(
            "not-understood",
            f"the Source lists {entries} that cannot be used: copies that it no longer lists are"
            f" kept, since only a list without errors proves that a resource is gone{moved}",
            hint=hint,
        )

    def warn_dropped_values(self) -> None:
        """Warn of values of the lists that could not be read."""
        refusals = self.selection.refusals
        if refusals.ahead:
            ahead = _AHEAD.format("a change", format_w3c(refusals.ahead))
            self.warn("clock-skew", f"{ahead}; the change itself counts")
        if refusals.dropped:
            self.warn(
                "values-dropped",
                f"{refusals.dropped:,} values of the lists cannot be read and are ignored, such as"
                f" this: {refusals.example}",
            )

    def warn(self, code: str, message: str, *, hint: str = "") -> None:
        """Report a fault that does not stop the pull."""
        _log.info("%s: %s", code, message)
        fields: dict[str, object] = {"code": code, "message": message, "evidence": ()}
        if hint:
            fields["hint"] = hint
        self.dependencies.report("warning", fields)


@contextmanager
def timed_phase(equipment: Dependencies, name: str) -> Iterator[None]:
    """Report the end and the duration of a phase of a run, also of one that failed."""
    started = equipment.clock.monotonic()
    try:
        yield
    finally:
        seconds = round(equipment.clock.monotonic() - started, 6)
        fields = {"time": equipment.clock.now(), "name": name, "seconds": seconds}
        equipment.report("phase", fields)


def with_dumps(found: SourceLists) -> SourceLists:
    """Return the lists, with dumps in place of missing ones."""
    return structs.replace(
        found,
        resource_list=found.resource_list or found.resource_dump,
        change_list=found.change_list or found.change_dump,
    )
