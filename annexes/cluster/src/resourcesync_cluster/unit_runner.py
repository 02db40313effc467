"""Runner of units on an engine, robust against lost workers: each unit has exactly one outcome."""

import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, NamedTuple

from resourcesync.errors import EngineError, ResourceSyncError
from resourcesync.ports import CancelToken
from resourcesync_cluster.politeness import HostLimits, Turn, TurnQueue
from resourcesync_cluster.ports import (
    ExecutionEngine,
    UnitFunction,
    UnitFuture,
    UnitOutcome,
    WorkUnit,
)

TRIES: Final = 3
"""Number of times that a unit is given to the engine before it counts as failed."""

_POLL_SECONDS: Final = 1.0
"""Seconds between two checks for a stop request and for the number of workers."""
_MOST_FAILURES: Final = 30
_LONGEST: Final = 500

_log = logging.getLogger(__name__)


def run_units(
    engine: ExecutionEngine,
    work: UnitFunction,
    units: Iterable[WorkUnit],
    *,
    limits: HostLimits,
    cancel: CancelToken,
    tell: Callable[[str], None] = lambda _: None,
) -> Generator[UnitOutcome, None, None]:
    """Run all units, and yield the outcome of each, once, as they come.

    A unit whose worker died, or whose work raised, is given to the engine again; after three times
    its outcome is a failure, ``engine``. When workers died such that the engine accepts no work, it
    is repaired, and all units in progress start again. A unit that was in progress at two such
    failures then runs alone, to find one that kills its worker.

    When it is closed, interrupted or cancelled, units in progress are cancelled as far as possible,
    and nothing more is yielded.
    """
    return _UnitRun(engine, work, TurnQueue(units, limits), cancel, tell).outcomes()


class _RunningUnit(NamedTuple):
    turn: Turn
    promise: UnitFuture
    alone: bool


class _UnitRun:
    def __init__(
        self,
        engine: ExecutionEngine,
        work: UnitFunction,
        turns: TurnQueue,
        cancel: CancelToken,
        tell: Callable[[str], None],
    ) -> None:
        self._report = tell
        self._engine = engine
        self._work = work
        self._turns = turns
        self._cancel = cancel
        self._clock = cancel.clock
        self._finished: SimpleQueue[int] = SimpleQueue()
        self._under_way: dict[int, _RunningUnit] = {}
        self._suspects: list[WorkUnit] = []
        self._ready: list[UnitOutcome] = []
        self._losses: Counter[str] = Counter()
        self._breaks: Counter[str] = Counter()
        self._failures_in_a_row = 0

    def outcomes(self) -> Generator[UnitOutcome, None, None]:
        try:
            while True:
                while self._ready:
                    yield self._ready.pop()
                self._cancel.raise_if_cancelled()
                self._submit()
                if self._ready:
                    continue
                if not self._under_way and not self._suspects and self._turns.done:
                    return
                self._wait()
        finally:
            for task in self._under_way.values():
                task.promise.cancel()

    def _submit(self) -> None:
        """Submit units up to the engine's capacity; one only while a unit is suspect."""
        while not self._is_blocked():
            now = self._clock.monotonic()
            alone = bool(self._suspects)
            if alone:
                turn = self._turns.try_unit(self._suspects[-1], now)
            else:
                turn = self._turns.next_turn(now, self._engine.slots)
            if turn is None:
                return
            if alone:
                self._suspects.pop()
            self._begin(turn, alone=alone)
            if alone:
                return

    def _is_blocked(self) -> bool:
        """True if a suspect is to run alone while others run, or runs: nothing is begun then."""
        runs_alone = any(task.alone for task in self._under_way.values())
        return bool(self._under_way) and (runs_alone or bool(self._suspects))

    def _begin(self, turn: Turn, *, alone: bool) -> None:
        try:
            promise = self._engine.submit(self._work, turn.unit, turn.share)
        except EngineError as error:
            self._turns.finish(turn, None, self._clock.monotonic())
            if alone:
                self._suspects.append(turn.unit)
            else:
                self._turns.requeue(turn.unit)
            self._repair_engine(error)
            return
        self._under_way[turn.number] = _RunningUnit(turn, promise, alone)
        number, finished = turn.number, self._finished
        promise.add_done_callback(lambda _: finished.put(number))

    def _wait(self) -> None:
        """Wait for the end of a unit or of a host's pause, at most a second."""
        now = self._clock.monotonic()
        moment = self._next_moment(now)
        seconds = _POLL_SECONDS if moment is None else min(_POLL_SECONDS, max(0.0, moment - now))
        if not self._under_way:
            self._cancel.wait(seconds)
            return
        with suppress(Empty):
            self._handle_finished(self._finished.get(timeout=seconds))

    def _next_moment(self, now: float) -> float | None:
        if not self._suspects:
            return self._turns.ready_at(now)
        return None if self._under_way else self._turns.quiet_until(self._suspects[-1].host)

    def _handle_finished(self, number: int) -> None:
        """Record the end of a turn, if it was not lost before."""
        task = self._under_way.get(number)
        if task is None:
            return
        try:
            outcome = task.promise.result()
        except (BrokenExecutor, CancelledError) as error:  # Dask's, when its scheduler is gone
            self._repair_engine(error)
        except Exception as error:  # noqa: BLE001 - the edge of a worker: it may raise anything
            self._end_turn(task, None)
            self._handle_loss(task.turn.unit, error)
        else:
            self._complete(task, outcome)

    def _drain_finished(self) -> None:
        """Collect the results from before the engine broke, so that they are not computed again."""
        with suppress(Empty):
            while True:
                task = self._under_way.get(self._finished.get_nowait())
                with suppress(Exception):
                    if task is not None:
                        self._complete(task, task.promise.result())

    def _complete(self, task: _RunningUnit, outcome: UnitOutcome) -> None:
        self._end_turn(task, outcome)
        self._failures_in_a_row = 0
        self._forget(task.turn.unit.name)
        self._ready.append(outcome)

    def _end_turn(self, task: _RunningUnit, outcome: UnitOutcome | None) -> None:
        del self._under_way[task.turn.number]
        self._turns.finish(task.turn, outcome, self._clock.monotonic())

    def _handle_loss(self, unit: WorkUnit, error: Exception) -> None:
        self._losses[unit.name] += 1
        self._count_failure(error, _MOST_FAILURES + TRIES * self._engine.slots)
        _log.warning("unit %s was lost: %s", unit.name, _error_text(error))
        self._report(f"a worker did not finish its unit: {_error_text(error)}")
        if self._losses[unit.name] < TRIES:
            self._turns.requeue(unit)
        else:
            self._fail(unit, _error_text(error))

    def _repair_engine(self, error: Exception) -> None:
        """Repair a broken engine, and restart the units in progress."""
        self._drain_finished()
        self._count_failure(error, _MOST_FAILURES)
        for task in list(self._under_way.values()):
            task.promise.cancel()
        if not self._engine.restart_workers():
            raise EngineError(
                "the engine accepts no more work",
                evidence=(("got", _error_text(error)),),
                hint="check that it is running, then run the command again: it resumes",
            ) from error
        lost = list(self._under_way.values())
        _log.warning(
            "the engine was restarted, %d units run again: %s", len(lost), _error_text(error)
        )
        units = "1 unit was" if len(lost) == 1 else f"{len(lost)} units were"
        self._report(f"a worker died while {units} running: {_error_text(error)}")
        for task in reversed(lost):
            self._end_turn(task, None)
            self._requeue_broken(task, error)

    def _requeue_broken(self, task: _RunningUnit, error: Exception) -> None:
        unit = task.turn.unit
        self._breaks[unit.name] += 1
        if task.alone:
            self._fail(unit, f"its worker died each time: {_error_text(error)}")
        elif self._breaks[unit.name] < TRIES - 1:
            self._turns.requeue(unit)
        else:
            self._suspects.append(unit)

    def _fail(self, unit: WorkUnit, why: str) -> None:
        self._forget(unit.name)
        self._ready.append(UnitOutcome(name=unit.name, failed=("engine", why)))

    def _forget(self, name: str) -> None:
        self._losses.pop(name, None)
        self._breaks.pop(name, None)

    def _count_failure(self, error: Exception, most: int) -> None:
        self._failures_in_a_row += 1
        if self._failures_in_a_row < most:
            return
        raise EngineError(
            f"{self._failures_in_a_row} tries in a row failed: the engine cannot run this work",
            evidence=(("got", _error_text(error)),),
            hint="each worker needs this Python, this version of resourcesync, and the store",
        ) from error


def _error_text(error: Exception) -> str:
    """Return the message of an error, on one line."""
    words = error.message if isinstance(error, ResourceSyncError) else f"{error}"
    named = words if isinstance(error, ResourceSyncError) else f"{type(error).__name__}: {words}"
    return " ".join(named.split())[:_LONGEST]
