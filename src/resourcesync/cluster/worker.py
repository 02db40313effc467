"""Worker's part for one unit: the code of every transfer, over a shared store."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Final

import msgspec

from resourcesync.cluster.rows import DoneRow, read_fetches, write_rows
from resourcesync.cluster.units import SliceOutcome, SliceUnit, UnitOptions
from resourcesync.destination.planner import Fetch
from resourcesync.destination.runs import new_run_id
from resourcesync.destination.transfers.commit import TransferPolicy
from resourcesync.destination.transfers.transfer import ResourceTransfer
from resourcesync.errors import ResourceSyncError, SourceUnavailableError, StorageError
from resourcesync.model.timestamps import from_microseconds
from resourcesync.ports import Clock, Copies, CopyInstallation, CopyRemoval, Fetcher
from resourcesync.ports.engines import FileExchange, UnitOutcome
from resourcesync.ports.mirror import MirrorStateStore, PendingTask, StateTransaction

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
        exchange: The store of units and outcomes.
        file: Returns the path for a new file of this machine, by its name.
        traffic: Returns requests sent and bytes received so far.
        wait: Returns the delay that the host requested; ``None`` without one.
    """

    fetcher: Fetcher
    copies: Callable[[Callable[[], None]], Copies]
    memory: Callable[[], AbstractContextManager[MirrorStateStore]]
    clock: Clock
    exchange: FileExchange
    file: Callable[[str], str]
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
        _write_file(file, self.number.encode())
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
        known = known_report(unit.name, tools.exchange)
        if known is not None:
            return UnitOutcome(unit.name, unit.rows, details=known)
        work = tools.exchange.receive(unit.work)
        if work is None:
            raise run_over_error(unit.work)
        fetches = list(read_fetches(work))
        attempt = UnitAttempt(unit.name, unit.work, tools)
        names = results_of(unit.name, attempt.number), report_of(unit.name, attempt.number)
        done, words = map(tools.file, names)
        with tools.memory() as state:
            slice_ = _SliceMirror(unit, tools, state, fetches, attempt)
            result = slice_.carry_out()
            count = write_rows(done, slice_.done())
        encoded = msgspec.json.encode(result)
        _write_file(words, encoded)
        attempt.check()
        tools.exchange.send(names[1], words)
        tools.exchange.send(names[0], done)
        return UnitOutcome(unit.name, count, wait=tools.wait(), details=encoded)
    except ResourceSyncError as error:
        requested = error.retry_after if isinstance(error, SourceUnavailableError) else None
        wait = tools.wait() if requested is None else requested
        return UnitOutcome(unit.name, 0, wait=wait, failed=(error.code, error.message))


def known_report(name: str, exchange: FileExchange) -> bytes | None:
    """Return the report of the owner of a unit; ``None`` if it has not finished."""
    owner = owner_of(name, exchange)
    report = None if owner is None else exchange.receive(report_of(name, owner))
    if owner is None or report is None or exchange.receive(results_of(name, owner)) is None:
        return None
    return _read_file(report)


class _SliceMirror:
    """A slice as a small mirror of its own: its copies, its state, and what it is to fetch."""

    def __init__(
        self,
        unit: SliceUnit,
        tools: WorkerTools,
        state: MirrorStateStore,
        fetches: list[Fetch],
        attempt: UnitAttempt,
    ) -> None:
        self._unit = unit
        self._tools = tools
        self._fetches = fetches
        self._attempt = attempt
        self._state = state
        copies = [fetch.before for fetch in fetches if fetch.before is not None]
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
        tally = transfer.execute(self._fetches, total=unit.rows, size=unit.size)
        requests, received = tools.traffic()
        return SliceOutcome(
            tally=tally, requests=requests, received=received, attempt=self._attempt.number
        )

    def done(self) -> Iterator[DoneRow]:
        copies = {copy.uri: copy for copy in self._state.copies()}
        tasks = {row.uri: row for task in PendingTask for row in self._state.pending(task)}
        for fetch in self._fetches:
            uri = fetch.listed.uri
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


def _write_file(file: str, data: bytes) -> None:
    with open(file, "wb") as stream:  # noqa: PTH123 - paths are plain text here
        stream.write(data)


def _read_file(file: str) -> bytes:
    with open(file, "rb") as stream:  # noqa: PTH123 - paths are plain text here
        return stream.read()
