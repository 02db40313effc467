"""Worker's part for one unit: the code of every pull, over a shared store."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from datetime import datetime
from typing import Any, BinaryIO, Final

import msgspec

from resourcesync.cluster.units import (
    ListDocumentUnit,
    ListRead,
    SliceOutcome,
    SliceUnit,
    UnitOptions,
    listed_of,
    report_error,
    row_of,
)
from resourcesync.destination.external_sort import TupleSorter
from resourcesync.destination.lists.resource_reader import ResourceListReader
from resourcesync.destination.lists.selection import Refusals, ResourceSelection
from resourcesync.destination.mapping.path_mapping import MapperFactory
from resourcesync.destination.planner import (
    Absence,
    DecisionPolicy,
    Delete,
    Fetch,
    ListedEntry,
    Retain,
    UpToDate,
    decide,
)
from resourcesync.destination.runs import new_run_id
from resourcesync.destination.tasks import task_of
from resourcesync.destination.transfers.commit import TransferPolicy, TransferTally
from resourcesync.destination.transfers.transfer import ResourceTransfer
from resourcesync.discovery.document_fetcher import DocumentFetcher
from resourcesync.errors import Remedy, ResourceSyncError, StorageError, UnexpectedDocumentError
from resourcesync.model.timestamps import from_microseconds
from resourcesync.ports import Clock, Copies, CopyInstallation, CopyRemoval, Fetcher
from resourcesync.ports.cancellation import CancelToken
from resourcesync.ports.engines import FileExchange, UnitOutcome
from resourcesync.ports.mirror import MirrorStateStore, Pending, PendingTask, StateTransaction
from resourcesync.ports.tables import DoneRow, Tables, WorkRow

BEGUN_SUFFIX: Final = ".begun"
"""Suffix of the mark that a unit was begun, with the last attempt: some of it may be installed."""
_GROUP: Final = 1_000


def results_of(name: str, attempt: str) -> str:
    """Return the name of the file with the results of an attempt at a unit."""
    return f"{name}.{attempt}.done"


def report_of(name: str, attempt: str) -> str:
    """Return the name of the file with the report of an attempt at a unit."""
    return f"{name}.{attempt}.told"


class WorkerTools(msgspec.Struct, frozen=True, kw_only=True):
    """Dependencies of a worker.

    Attributes:
        fetcher: The fetcher, limited to the unit's share.
        copies: Opens the mirror's copies; the given function is called before an object that is not
            the expected one is replaced, and raises if that is not allowed any more.
        memory: Opens an empty state, for one unit.
        cancel: The request to stop.
        tables: Reads and writes files of rows.
        exchange: The store of units and outcomes.
        scratch: Opens a nameless temporary file.
        file: Returns the path for a new file of this machine, by its name.
        mappers: Returns a plug-in that maps URIs to paths, by its name.
        traffic: Returns requests sent and bytes received so far.
        wait: Returns the delay that the host requested; ``None`` without one.
    """

    fetcher: Fetcher
    copies: Callable[[Callable[[], None]], Copies]
    memory: Callable[[], AbstractContextManager[MirrorStateStore]]
    clock: Clock
    cancel: CancelToken
    tables: Tables
    exchange: FileExchange
    scratch: Callable[[], BinaryIO]
    file: Callable[[str], str]
    mappers: Callable[[str], MapperFactory]
    traffic: Callable[[], tuple[int, int]]
    wait: Callable[[], float | None]


class PlanClock:
    """The clock of a unit: the moment is the coordinator's, only durations are measured here.

    So nothing that is recorded depends on the clock of a worker's machine.

    Args:
        options: The options of the unit, with the coordinator's time.
        clock: This machine's clock.
    """

    def __init__(self, options: UnitOptions, clock: Clock) -> None:
        self._now = from_microseconds(options.now)
        self._clock = clock

    def now(self) -> datetime:
        """Return when the pull began."""
        return self._now

    def monotonic(self) -> float:
        """Return seconds that never go back, for durations."""
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait ``seconds``."""
        self._clock.sleep(seconds)


def selection_of(
    options: UnitOptions, mappers: Callable[[str], MapperFactory]
) -> ResourceSelection:
    """Return the selection of entries, the same as the pull's own."""
    identity = options.identity
    scope, refusals = identity.scope(options.filters), Refusals(lambda _: None)
    mapping = identity.mapping(mappers, options.yielding)
    return ResourceSelection(scope, mapping, refusals, homes=identity.moved)


def read_list(unit: ListDocumentUnit, tools: WorkerTools) -> UnitOutcome:
    """Read a list into a file of rows, which has a unique name."""
    try:
        return _read_list(unit, tools)
    except ResourceSyncError as error:
        return failed_outcome(unit.name, error, tools)


def _read_list(unit: ListDocumentUnit, tools: WorkerTools) -> UnitOutcome:
    selection = selection_of(unit.options, tools.mappers)
    documents = DocumentFetcher(tools.fetcher, tools.scratch)
    sorter = TupleSorter(ListedEntry, tools.scratch)
    with closing(sorter):
        snapshot = ResourceListReader(documents, selection).read(unit.uri, sorter)
        assert snapshot is not None, "an unconditional reading always returns a snapshot"
        if not snapshot.documents:
            raise UnexpectedDocumentError(
                "an index lists another index",
                uri=unit.uri,
                hint="report it to the Source; check its lists",
                remedy=Remedy("validate"),
            )
        name = f"{unit.name}-{new_run_id()}"
        file = tools.file(name)
        rows = tools.tables.write_listed(file, map(row_of, sorter))
    tools.exchange.send(name, file)
    requests, received = tools.traffic()
    result = ListRead(
        file=name,
        at=snapshot.at,
        entries=snapshot.entries,
        complete=snapshot.proves_absence,
        dialect=snapshot.dialect,
        refused=selection.refusals.count,
        kept=selection.refusals.stored,
        has_entries=selection.has_entries,
        head=snapshot.version,
        dropped=selection.refusals.dropped,
        example=selection.refusals.example,
        encoded=selection.refusals.encoded,
        encoded_example=selection.refusals.encoded_example,
        leniencies=selection.refusals.leniencies.rows,
        requests=requests,
        received=received,
    )
    return UnitOutcome(unit.name, rows, wait=tools.wait(), details=msgspec.json.encode(result))


class UnitAttempt:
    """An attempt at a unit; the last one that began owns the unit.

    An engine gives a unit to another worker when it takes the first one for dead. That one may live
    on behind a broken link, and end late, as may a worker whose coordinator was killed. It is
    stopped: only the owner replaces objects, and only its results are used.

    Args:
        name: The unit's name.
        token: The file without which the unit is no part of a run any more.

    Attributes:
        number: A name that no other attempt has.
        is_first: True if the unit was not begun before.
        token: The token.
    """

    def __init__(self, name: str, token: str, tools: WorkerTools) -> None:
        self.number = new_run_id()
        self.token = token
        self._mark = f"{name}{BEGUN_SUFFIX}"
        self._exchange = tools.exchange
        self.is_first = owner_of(name, tools.exchange) is None
        file = tools.file(self._mark)
        write_file(file, self.number.encode())
        self._exchange.send(self._mark, file)

    def check(self) -> None:
        """Check that this attempt owns the unit, and that the unit is part of a run.

        Raises:
            StorageError: It does not, with the code ``run-over``.
        """
        is_over = next(self._exchange.names(self.token), None) is None
        if is_over or _read_name(self._mark, self._exchange) != self.number:
            raise run_over_error(self.token)


def owner_of(name: str, exchange: FileExchange) -> str | None:
    """Return the attempt that owns a unit; ``None`` if it was not begun."""
    return _read_name(f"{name}{BEGUN_SUFFIX}", exchange)


def _read_name(name: str, exchange: FileExchange) -> str | None:
    file = exchange.receive(name)
    return None if file is None else _read_file(file).decode("ascii", "replace")


def fetch_slice(unit: SliceUnit, tools: WorkerTools) -> UnitOutcome:
    """Fetch a slice into the store, and write the outcome of each row to a file.

    Repeated, it does nothing when that file exists; otherwise it reuses installed copies.
    """
    try:
        known = _known_report(unit, tools.exchange)
        if known is not None:
            return UnitOutcome(unit.name, unit.rows, details=known)
        work = tools.exchange.receive(unit.work)
        if work is None:
            raise run_over_error(unit.work)
        rows = list(tools.tables.read_work(work))
        attempt = UnitAttempt(unit.name, unit.work, tools)
        names = results_of(unit.name, attempt.number), report_of(unit.name, attempt.number)
        done, words = map(tools.file, names)
        with tools.memory() as state:
            slice_ = _SliceMirror(unit, tools, state, rows, attempt)
            result = slice_.carry_out()
            count = tools.tables.write_done(done, slice_.done())
        encoded = msgspec.json.encode(result)
        write_file(words, encoded)
        attempt.check()
        tools.exchange.send(names[1], words)
        tools.exchange.send(names[0], done)
        return UnitOutcome(unit.name, count, wait=tools.wait(), details=encoded)
    except ResourceSyncError as error:
        return failed_outcome(unit.name, error, tools)


def _known_report(unit: SliceUnit, exchange: FileExchange) -> bytes | None:
    """Return the report of the unit's owner; ``None`` if it has not finished."""
    owner = owner_of(unit.name, exchange)
    report = None if owner is None else exchange.receive(report_of(unit.name, owner))
    if owner is None or report is None or exchange.receive(results_of(unit.name, owner)) is None:
        return None
    return _read_file(report)


class _SliceMirror:
    """A slice as a small mirror of its own: its copies, its state, and its listed entries."""

    def __init__(
        self,
        unit: SliceUnit,
        tools: WorkerTools,
        state: MirrorStateStore,
        rows: list[WorkRow],
        attempt: UnitAttempt,
    ) -> None:
        self._unit = unit
        self._tools = tools
        self._rows = rows
        self._attempt = attempt
        self._state = state
        self._tally = TransferTally()
        copies = [row.copy for row in rows if row.copy is not None]
        for start in range(0, len(copies), _GROUP):
            self._state.commit(StateTransaction(suspect=copies[start : start + _GROUP]))

    def carry_out(self) -> SliceOutcome:
        options, tools, unit = self._unit.options, self._tools, self._unit
        policy = TransferPolicy(
            lenient=options.lenient,
            deletes=options.applies_deletions,
            accepts_missing=options.accepts_missing,
            own_algorithm=options.own_algorithm,
            generation=options.generation,
            at=options.at,
            began=options.now,
        )
        transfer = ResourceTransfer(
            fetcher=tools.fetcher,
            copies=FencedCopies(tools, self._attempt, is_begun=not self._attempt.is_first),
            state=self._state,
            clock=PlanClock(options, tools.clock),
            policy=policy,
            report=lambda _event, _fields: None,
        )
        tally = transfer.execute(self._fetches(), total=unit.rows, size=unit.size)
        tally.same += self._tally.same
        requests, received = tools.traffic()
        return SliceOutcome(
            tally=tally, requests=requests, received=received, attempt=self._attempt.number
        )

    def _fetches(self) -> Iterator[Fetch]:
        options, now = self._unit.options, self._unit.options.now
        policy = DecisionPolicy(
            absence=Absence.UNCHANGED if self._unit.is_decided else Absence.UNPROVEN,
            delete="auto" if options.applies_deletions else "never",
            now=now,
        )
        tasks: list[Pending] = []
        for row in self._rows:
            decision = decide(row.copy, listed_of(row.listed), None, policy)
            match decision:
                case Fetch():
                    yield decision
                case UpToDate():
                    self._tally.same += 1
                case Delete() | Retain():
                    at, generation = options.at, options.generation
                    tasks.append(task_of(decision, now=now, at=at, generation=generation))
                case _:
                    pass
        self._state.commit(StateTransaction(pending=tasks))

    def done(self) -> Iterator[DoneRow]:
        copies = {copy.uri: copy for copy in self._state.copies()}
        tasks = {row.uri: row for task in PendingTask for row in self._state.pending(task)}
        for row in self._rows:
            uri = row.listed.uri
            yield DoneRow(uri, copies.get(uri), tasks.get(uri))


class FencedCopies:
    """The copies, read-only for an attempt that does not own its unit, or whose run is over.

    The owner, or another run, may have installed newer copies, which it must not replace.

    Args:
        is_begun: True if some copies of the unit may be in place already.
    """

    def __init__(self, tools: WorkerTools, attempt: UnitAttempt, *, is_begun: bool) -> None:
        self._copies = tools.copies(attempt.check)
        self._attempt = attempt
        self._is_begun = is_begun

    def __getattr__(self, name: str) -> Any:
        return getattr(self._copies, name)

    def paths(self) -> Iterator[str]:
        """Yield a path whose copy may be reused; a store has too many to list them."""
        if self._is_begun:
            yield self._attempt.token

    def install(self, batch: Sequence[CopyInstallation]) -> list[str | StorageError]:
        """Install a batch, while the attempt owns its unit."""
        try:
            if batch:
                self._attempt.check()
        except StorageError:
            for installation in batch:
                installation.staged.discard()
            raise
        return self._copies.install(batch)

    def remove(self, batch: Sequence[CopyRemoval], reason: str) -> list[str | StorageError]:
        """Refuse to remove anything: only the coordinator does."""
        raise AssertionError(
            f"a unit of {self._attempt.token} removes copies: {reason}, {len(batch)}"
        )


def run_over_error(token: str) -> StorageError:
    """Return the error of a unit whose run is over."""
    return StorageError(
        f"the run of {token} has ended",
        evidence=(("kept", "what was in place before"),),
        code="run-over",
    )


def failed_outcome(name: str, error: ResourceSyncError, tools: WorkerTools) -> UnitOutcome:
    """Return the outcome of a unit that had an error."""
    fault = report_error(error)
    wait = fault.wait if fault.wait is not None else tools.wait()
    report = msgspec.json.encode(fault)
    return UnitOutcome(name, 0, wait=wait, failed=(error.code, error.message), details=report)


def write_file(file: str, data: bytes) -> None:
    """Write a file of this machine."""
    with open(file, "wb") as stream:  # noqa: PTH123 - paths are plain text here
        stream.write(data)


def _read_file(file: str) -> bytes:
    with open(file, "rb") as stream:  # noqa: PTH123 - paths are plain text here
        return stream.read()
