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


def run_unit(
    work: UnitFunction, unit: WorkUnit, share: HostShare, version: str = __version__
) -> UnitOutcome:
    """Run a unit; any error is converted to one that reaches the coordinator.

    Exceptions of other packages may fail to unpickle, and would break the engine.

    Args:
        work: The work.
        unit: The unit.
        share: Its share of the requests to its host.
        version: The coordinator's version: a worker may have joined since workers were checked.

    Raises:
        EngineError: The work raised, and its message is one line; or this worker has another
            version of the package.
    """
    if version != __version__:
        raise EngineError(
            f"resourcesync {__version__} is installed on a worker, and the pull has {version}"
        )
    try:
        return work(unit, share)
    except BaseException as error:  # noqa: BLE001 - also SystemExit would end a worker
        if isinstance(error, ResourceSyncError):
            words = error.message
        else:
            words = f"{type(error).__name__}: {error}"
        raise EngineError(
            " ".join(words.split())[:_LONGEST], evidence=(("raised in", _source_location(error)),)
        ) from None


def package_version() -> str:
    """Return the version of this package in the calling process."""
    return __version__


def _source_location(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    return f"{PurePath(last.filename).name}:{last.lineno}, {last.name}"


UnitRunner = Callable[[UnitFunction, Any, HostShare], UnitOutcome]
"""Runs the work with its unit, in a worker."""


class ExecutorEngine:
    """An ``Engine`` on any executor; the caller owns the executor and shuts it down.

    Args:
        executor: The executor; if its workers are processes, they can import this package.
        slots: Number of calls that it runs at a time.
    """

    def __init__(self, executor: Executor, slots: int) -> None:
        self._executor = executor
        self._slots = max(1, slots)

    @property
    def slots(self) -> int:
        """Number of units that run at a time."""
        return self._slots

    def submit(self, work: UnitFunction, unit: WorkUnit, share: HostShare) -> UnitFuture:
        """Submit a unit.

        Raises:
            EngineError: The executor was shut down, or its workers died.
        """
        return submit_unit(self._executor, run_unit, work, unit, share)

    def restart_workers(self) -> bool:
        """Return ``False``: only the owner can replace the executor."""
        return False

    def close(self) -> None:
        """Leave the executor as it is."""


def submit_unit(
    executor: Executor, how: UnitRunner, work: UnitFunction, unit: WorkUnit, share: HostShare
) -> UnitFuture:
    """Submit a unit to an executor, to be run by ``how``.

    Raises:
        EngineError: The executor was shut down, or its workers died.
    """
    try:
        return executor.submit(how, work, unit, share)
    except RuntimeError as error:  # BrokenExecutor is one, too
        raise EngineError(
            "the executor accepts no more work", evidence=(("got", f"{error}"),)
        ) from (error)
