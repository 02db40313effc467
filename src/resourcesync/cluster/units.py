"""Units of a pull: slices of what is to be fetched, and what each worker of them is given."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from resourcesync.destination.runs import new_run_id
from resourcesync.destination.transfers.commit import TransferPolicy, TransferTally
from resourcesync.ports.engines import SLICE_ROWS, FileExchange, UnitOutcome
from resourcesync.ports.mirror import MirrorStateStore


class UnitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of all units of one pull; can be pickled.

    Attributes:
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

    site: Any
    run: str
    generation: int
    at: int
    now: int
    lenient: bool
    accepts_missing: bool
    own_algorithm: str
    applies_deletions: bool


class SliceUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A slice of what is to be fetched.

    Attributes:
        name: The file of its results, in the exchange.
        host: The host; of several hosts, that of most rows.
        work: The slice's file in the exchange.
        rows: Number of rows of the slice.
        size: Bytes to fetch as far as known.
        options: The options of the pull's units.
    """

    name: str
    host: str
    work: str
    rows: int
    size: int
    options: UnitOptions


class SliceOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Result of an attempt at a slice, and its network traffic."""

    tally: TransferTally
    requests: int
    received: int
    attempt: str


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
    """Workers, and what the coordinator has for them.

    Attributes:
        fetch: Fetches slices by workers; yields each outcome as it comes.
        exchange: The store of units and outcomes.
        state: The mirror's state.
        folder: A folder of this machine for files of the run.
        site: The configuration of Source and store for a worker.
        slice_rows: The most rows of a slice.
        traffic: The network traffic of workers so far.
    """

    fetch: Callable[[Iterable[SliceUnit]], Iterator[UnitOutcome]]
    exchange: FileExchange
    state: MirrorStateStore
    folder: str
    site: Any
    slice_rows: int = SLICE_ROWS
    traffic: WorkerTraffic = msgspec.field(default_factory=WorkerTraffic)


def unit_options(policy: TransferPolicy, context: WorkerContext) -> UnitOptions:
    """Return the options of all units of a transfer."""
    return UnitOptions(
        site=context.site,
        run=new_run_id(),
        generation=policy.generation,
        at=policy.at,
        now=policy.began,
        lenient=policy.lenient,
        accepts_missing=policy.accepts_missing,
        own_algorithm=policy.own_algorithm,
        applies_deletions=policy.deletes,
    )
