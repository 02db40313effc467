"""Context of a pull with workers: the workers, the tables, and the options of units."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import msgspec

from resourcesync.cluster.units import ListDocumentUnit, PackageUnit, SliceUnit, UnitOptions
from resourcesync.destination.runs import new_run_id
from resourcesync.destination.scope import Filters
from resourcesync.destination.session import SyncSession
from resourcesync.ports.engines import SLICE_ROWS, FileExchange, UnitOutcome
from resourcesync.ports.mirror import MirrorStateStore
from resourcesync.ports.tables import TablePart, Tables


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
