"""Engines: processes on this machine, or an existing cluster, that do units of work (ADR 0080).

A unit is a part of what is to be fetched. Its work is a function of a module, called with the unit
and its share of the requests to a host. It changes no copy and no row: it stages bytes, and what
an attempt staged counts only if its outcome arrives. So an engine may lose a unit and do it again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from resourcesync.errors import StorageError
from resourcesync.model.digests import Digest
from resourcesync.ports import StagedCopy


class WorkUnit(Protocol):
    """One piece of work; can be pickled."""

    @property
    def name(self) -> str:
        """A name that no other unit of the run has."""

    @property
    def host(self) -> str:
        """The host of its requests, with port; empty for none."""


class HostShare(NamedTuple):
    """One unit's share of the requests to its host."""

    rate: float | None = None
    jobs: int | None = None


class UnitOutcome(NamedTuple):
    """The outcome of a unit; can be pickled.

    Attributes:
        name: The unit's.
        rows: Number of its requests that ended.
        wait: Seconds without requests that the host asked for (429, 503, ``Retry-After``); ``None``
            if it did not.
        failed: Reason why it was not done: a stable code and a sentence; ``None`` when it was.
        details: What the unit returns to its coordinator.
    """

    name: str
    rows: int = 0
    wait: float | None = None
    failed: tuple[str, str] | None = None
    details: Any = None


UnitFunction = Callable[[Any, HostShare], UnitOutcome]
"""The work of a unit; a function of a module, since workers import it by its name."""


class UnitFuture(Protocol):
    """The future of an outcome, as in ``concurrent.futures``."""

    def result(self) -> UnitOutcome:
        """Wait for the outcome and return it, or raise the error of the work or the engine."""

    def cancel(self) -> object:
        """Let go of it, as far as the engine can."""

    def add_done_callback(self, fn: Callable[[Any], object], /) -> object:
        """Call a function, from any thread, as soon as the outcome is ready."""


class ExecutionEngine(Protocol):
    """An engine that does units."""

    @property
    def slots(self) -> int:
        """Number of units are done at a time, as far as known now; at least 1."""

    def submit(self, work: UnitFunction, unit: WorkUnit, share: HostShare) -> UnitFuture:
        """Begin a unit somewhere; what it raised, or the engine's own error, comes by ``result``.

        Raises:
            EngineError: The engine accepts no more work.
        """

    def restart_workers(self) -> bool:
        """Restart after workers died and the engine accepts no more work.

        Running units are lost, and the caller submits them again. Returns whether it could.
        """

    def close(self) -> None:
        """Close the engine; running units are cancelled if possible."""


class TakingCopy(StagedCopy, Protocol):
    """A staged copy that can take over bytes which a worker staged."""

    @property
    def algorithms(self) -> Sequence[str]:
        """The requested digests."""

    def take(self, place: str, length: int, digests: tuple[Digest, ...]) -> None:
        """Take over staged bytes, in place of those so far; they are sealed.

        Args:
            place: Their place, as ``StagingArea.hand_over`` returned it.
            length: Their number.
            digests: The requested digests of them.

        Raises:
            StorageError: They are not there.
        """


class StagingArea(Protocol):
    """Where workers stage bytes for the machine that alone installs copies."""

    def stage(self, algorithms: Sequence[str]) -> StagedCopy:
        """Start a staged copy; digests are computed while the bytes pass."""

    def hand_over(
        self, batch: Sequence[tuple[StagedCopy, Mapping[str, str]]]
    ) -> list[str | StorageError]:
        """Make sealed bytes durable; return the place of each, or its error.

        Args:
            batch: The staged copies, and the header fields of their answers.
        """
