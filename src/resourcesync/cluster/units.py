"""Units of a pull: a list to read, a slice of tasks to fetch, a package to unpack.

Beside them what each worker of them is given.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import msgspec

from resourcesync import errors
from resourcesync.destination.lists.list_version import ListVersion
from resourcesync.destination.lists.packages import DumpPackage
from resourcesync.destination.planner import (
    DISPUTED,
    FILTERED,
    ListedEntry,
    decode_contradiction,
)
from resourcesync.destination.runs import new_run_id
from resourcesync.destination.scope import Filters
from resourcesync.destination.session import SyncSession
from resourcesync.destination.sync_state import MirrorIdentity
from resourcesync.destination.tasks import encode_contradiction
from resourcesync.destination.transfers.commit import TransferTally
from resourcesync.discovery.sets import SourceLists
from resourcesync.errors import (
    ConfigurationError,
    DocumentError,
    EngineError,
    Remedy,
    ResourceSyncError,
    SourceError,
    SourceUnavailableError,
    StorageError,
)
from resourcesync.model.leniencies import CountedLeniency
from resourcesync.model.vocabulary import ChangeKind, Dialect
from resourcesync.ports.engines import SLICE_ROWS, FileExchange, UnitOutcome
from resourcesync.ports.mirror import MirrorStateStore, RefusedRow
from resourcesync.ports.tables import ListedRow, TablePart, Tables

_ENTRY_PREFIX = "["
"""The first character of an entry's links, as they are stored: no URI begins with it."""


def row_of(listed: ListedEntry) -> ListedRow:
    """Return the row of a listed entry; a patch, and links that are followed, are left out.

    Where lists may contradict each other it is a disputed one, so that no comparison of columns
    takes a copy for the listed one.
    """
    entry = (listed.entry,) if listed.entry else ()
    how = encode_contradiction(listed)
    row = ListedRow(*listed[:7], "\n".join((listed.memento, *listed.mirrors, *how, *entry)))
    is_open = how and listed.change not in (ChangeKind.DELETED, FILTERED)
    return row._replace(change=DISPUTED) if is_open else row


def listed_of(row: ListedRow) -> ListedEntry:
    """Return the listed entry of a row."""
    memento, *mirrors = row.elsewhere.split("\n")
    entry = mirrors.pop() if mirrors and mirrors[-1].startswith(_ENTRY_PREFIX) else ""
    listed = ListedEntry(*row[:7], mirrors=tuple(mirrors), memento=memento, entry=entry)
    return decode_contradiction(listed)


_TRANSFERABLE = (ConfigurationError, DocumentError, SourceError, StorageError)


class UnitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of all units of one pull; can be pickled.

    Attributes:
        yielding: The URIs whose names yield to others.
        filters: The filters of the pull.
        site: The configuration of Source and store for a worker; opaque to this package.
        run: A part of the names of the run's units, unique to the run: a worker that outlives its
            coordinator writes nothing that is taken for another's.
        generation: The reading of the Source.
        at: The Source's time up to which the plan is complete, microseconds.
        now: The coordinator's time when the pull began, microseconds: see `PlanClock`.
        lenient: True to store bytes that differ from the list.
        accepts_missing: True if resources that the Source does not have are no failure.
        own_algorithm: The digest computed of every copy.
        applies_deletions: True if a copy that a Change List reports as deleted is to be deleted.
    """

    identity: MirrorIdentity
    yielding: tuple[str, ...]
    filters: Filters
    site: Any
    run: str
    generation: int
    at: int
    now: int
    lenient: bool
    accepts_missing: bool
    own_algorithm: str
    applies_deletions: bool


class ListDocumentUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A list document to read.

    Attributes:
        name: Its file in the exchange.
        host: The host of the list.
        uri: The address of the list.
        options: The options of the pull's units.
    """

    name: str
    host: str
    uri: str
    options: UnitOptions


class SliceUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A slice of tasks to fetch.

    Attributes:
        name: The file of its results, in the exchange.
        host: The host; of several hosts, that of most rows.
        work: The slice's file in the exchange.
        rows: Number of rows of the slice.
        size: Bytes to fetch as far as known.
        options: The options of the pull's units.
        is_decided: True if every row must be requested, whatever the copy is: the Source reported a
            change of it. Otherwise rows with a valid copy are skipped.
    """

    name: str
    host: str
    work: str
    rows: int
    size: int
    options: UnitOptions
    is_decided: bool = False


class PackageUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A package of a dump to unpack.

    Attributes:
        name: The file of its results, in the exchange.
        host: The host of the package.
        found: The discovered Source.
        options: The options of the pull's units.
    """

    name: str
    host: str
    offered: DumpPackage
    found: SourceLists
    options: UnitOptions


class ListRead(msgspec.Struct, frozen=True, kw_only=True):
    """Result of reading a list: see ``ListSnapshot``, and the refused entries.

    Its rows are in a file of this very reading: a lost unit that ends late has another.
    """

    file: str
    at: int | None
    entries: int
    complete: bool
    dialect: Dialect
    refused: int
    kept: list[RefusedRow]
    has_entries: bool
    head: ListVersion | None = None
    dropped: int = 0
    example: str = ""
    encoded: int = 0
    encoded_example: str = ""
    leniencies: tuple[CountedLeniency, ...] = ()
    requests: int
    received: int


class SliceOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Result of an attempt at a slice, and its network traffic."""

    tally: TransferTally
    requests: int
    received: int
    attempt: str


class ErrorReport(msgspec.Struct, frozen=True, kw_only=True):
    """An error of a worker in a form that can be sent to another machine."""

    kind: str
    message: str
    code: str
    hint: str
    evidence: list[tuple[str, str]]
    remedy: Remedy | None = None
    uri: str = ""
    wait: float | None = None


def report_error(error: ResourceSyncError) -> ErrorReport:
    """Return the report of an error."""
    return ErrorReport(
        kind=type(error).__name__,
        message=error.message,
        code=error.code,
        hint=error.hint,
        evidence=[(label, text) for label, text in error.evidence],
        remedy=error.remedy,
        uri=getattr(error, "uri", ""),
        wait=getattr(error, "retry_after", None),
    )


def restore_error(fault: ErrorReport) -> ResourceSyncError:
    """Return the error of a report."""
    kind: Any = getattr(errors, fault.kind, None)
    if not (isinstance(kind, type) and issubclass(kind, _TRANSFERABLE)):
        kind = EngineError
    made: ResourceSyncError = kind(
        fault.message,
        evidence=tuple(fault.evidence),
        hint=fault.hint,
        code=fault.code,
        remedy=fault.remedy,
    )
    if hasattr(made, "uri"):
        made.uri = fault.uri
    if isinstance(made, SourceUnavailableError):
        made.retry_after = fault.wait
    return made


class TableState(MirrorStateStore, Protocol):
    """The state of a mirror whose copies are a table."""

    @property
    def parts(self) -> Sequence[TablePart]:
        """The parts of the table, in order."""

    @property
    def files(self) -> list[str]:
        """The files of the table's parts, in order."""

    def recall(self, uris: Sequence[str]) -> None:
        """Look up the table's records of some URIs at once, for the next queries."""


class WorkerTraffic:
    """Network traffic of all workers together.

    Attributes:
        requests: Number of requests.
        received: Number of bytes.
    """

    def __init__(self) -> None:
        self.requests = self.received = 0

    def add(self, requests: int, received: int) -> None:
        """Add the traffic of one unit."""
        self.requests += requests
        self.received += received


class WorkerContext(msgspec.Struct, frozen=True, kw_only=True):
    """Workers and tables.

    Attributes:
        read: Reads lists by workers; yields each outcome as it comes.
        fetch: Fetches slices by workers.
        unpack: Unpacks packages of dumps by workers.
        exchange: The store of units and outcomes.
        tables: Reads, writes and joins files of rows.
        state: The mirror's state.
        fold: Makes the next table from the last one and the changes since.
        folder: Makes a new, empty folder of this machine that lasts as long as the run.
        site: The configuration of Source and store for a worker.
        slice_rows: The most rows of a slice.
        traffic: The network traffic of workers so far.
    """

    read: Callable[[Iterable[ListDocumentUnit]], Iterator[UnitOutcome]]
    fetch: Callable[[Iterable[SliceUnit]], Iterator[UnitOutcome]]
    unpack: Callable[[Iterable[PackageUnit]], Iterator[UnitOutcome]]
    exchange: FileExchange
    tables: Tables
    state: TableState
    fold: Callable[[], None]
    folder: Callable[[], str]
    site: Any
    slice_rows: int = SLICE_ROWS
    traffic: WorkerTraffic = msgspec.field(default_factory=WorkerTraffic)


def unit_options(pull: SyncSession, context: WorkerContext, *, at: int) -> UnitOptions:
    """Return the options of all units of a pull.

    Args:
        pull: The session of the pull.
        context: Workers and tables.
        at: The Source's time up to which the plan is complete, microseconds.
    """
    identity = pull.identity
    assert identity is not None, "a pull has found its Source"
    return UnitOptions(
        identity=identity,
        yielding=pull.sync_state.relocated_uris,
        filters=pull.options.filters or pull.sync_state.filters or Filters(),
        site=context.site,
        run=new_run_id(),
        generation=pull.generation,
        at=at,
        now=pull.now,
        lenient=pull.options.verify == "lenient",
        accepts_missing=pull.accepts_missing,
        own_algorithm=pull.options.own_algorithm,
        applies_deletions=pull.options.delete != "never",
    )
