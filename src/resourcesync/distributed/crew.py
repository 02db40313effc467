"""What the coordinator of a pull has besides an ordinary one: workers, and tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from resourcesync.distributed.units import Reading, SliceUnit, Unpacking
from resourcesync.ports.engines import Outcome
from resourcesync.ports.exchanging import Exchange
from resourcesync.ports.mirror import MirrorState
from resourcesync.ports.tables import Part, Tables

SLICE_ROWS: Final = 50_000


class TableState(MirrorState, Protocol):
    """The memory of a mirror whose copies are a table."""

    @property
    def parts(self) -> Sequence[Part]:
        """The parts of the table, in order."""
        ...

    @property
    def files(self) -> list[str]:
        """The files of the table's parts, in order."""
        ...

    def recall(self, uris: Sequence[str]) -> None:
        """Look up what the table has of some URIs, at once; they are asked for next."""
        ...


class Traffic:
    """What the network took, all workers together.

    Attributes:
        requests: How many were sent.
        received: Bytes.
    """

    def __init__(self) -> None:
        self.requests = self.received = 0

    def add(self, requests: int, received: int) -> None:
        """Take what one unit tells."""
        self.requests += requests
        self.received += received


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """Workers and tables.

    Attributes:
        read: Has lists read; yields each outcome as it comes.
        bring: Has slices brought.
        unpack: Has packages of dumps unpacked.
        exchange: Where units and outcomes are handed over.
        tables: Reads, writes and joins files of rows.
        state: The mirror's memory.
        fold: Makes the next table of the last one and what changed since.
        folder: Makes a new, empty folder of this machine that lasts as long as the run.
        site: What a worker needs to reach Source and store.
        slice_rows: The most rows of a slice.
        traffic: What the network took of workers so far.
    """

    read: Callable[[Iterable[Reading]], Iterator[Outcome]]
    fetch: Callable[[Iterable[SliceUnit]], Iterator[Outcome]]
    unpack: Callable[[Iterable[Unpacking]], Iterator[Outcome]]
    exchange: Exchange
    tables: Tables
    state: TableState
    fold: Callable[[], None]
    folder: Callable[[], str]
    site: Any
    slice_rows: int = SLICE_ROWS
    traffic: Traffic = field(default_factory=Traffic)
