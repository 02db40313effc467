"""An engine on an executor of ``concurrent.futures``, and the worker code of all engines."""

import traceback
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import PurePath
from typing import Any

from resourcesync import __version__
from resourcesync.errors import EngineError, ResourceSyncError
from resourcesync.ports.engines import HostShare, UnitFunction, UnitFuture, UnitOutcome, WorkUnit

_LONGEST = 500


def run_unit(work: UnitFunction, unit: WorkUnit, share: HostShare) -> UnitOutcome:
    """Do a unit; whatever goes wrong is told in a way that reaches the coordinator.

    Errors of others may not survive being sent, and would break the engine.

    Raises:
        EngineError: What the work raised, on one line.
    """
    try:
        return work(unit, share)
    except BaseException as error:  # noqa: BLE001 - also SystemExit would end a worker
        raise EngineError(
            _describe(error), evidence=(("raised in", _source_location(error)),)
        ) from None


def package_version() -> str:
    """Return the version of this package, where it is called."""
    return __version__


def _describe(error: BaseException) -> str:
    if isinstance(error, ResourceSyncError):
        words = error.message
    else:
        words = f"{type(error).__name__}: {error}"
    return " ".join(words.split())[:_LONGEST]


def _source_location(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    return f"{PurePath(last.filename).name}:{last.lineno}, {last.name}"


UnitRunner = Callable[[UnitFunction, Any, HostShare], UnitOutcome]
"""What a worker does with the work and its unit."""


class ExecutorEngine:
    """An ``Engine`` on any executor; it stays its owner's, who ends it.

    Args:
        executor: Whose workers can import this package, if they are other processes.
        slots: How many calls it does at a time.
    """

    def __init__(self, executor: Executor, slots: int) -> None:
        self._executor = executor
        self._slots = max(1, slots)

    @property
    def slots(self) -> int:
        """How many units are done at a time."""
        return self._slots

    def submit(self, work: UnitFunction, unit: WorkUnit, share: HostShare) -> UnitFuture:
        """Begin a unit.

        Raises:
            EngineError: The executor was ended, or its workers died.
        """
        return submit_unit(self._executor, run_unit, work, unit, share)

    def restart_workers(self) -> bool:
        """Return ``False``: only its owner can make another."""
        return False

    def close(self) -> None:
        """Leave the executor as it is."""


def submit_unit(
    executor: Executor, how: UnitRunner, work: UnitFunction, unit: WorkUnit, share: HostShare
) -> UnitFuture:
    """Begin a unit on an executor, in the way of its workers.

    Raises:
        EngineError: The executor was ended, or its workers died.
    """
    try:
        return executor.submit(how, work, unit, share)
    except RuntimeError as error:  # a broken executor is one, too
        raise EngineError("the executor takes no more work", evidence=(("got", f"{error}"),)) from (
            error
        )
