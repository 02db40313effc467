"""Units on an executor of ``concurrent.futures`` that a program has already."""

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from resourcesync.adapters.engines.performing import run_unit
from resourcesync.errors import EngineError
from resourcesync.ports.engines import HostShare, UnitFunction, UnitFuture, UnitOutcome, WorkUnit

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
