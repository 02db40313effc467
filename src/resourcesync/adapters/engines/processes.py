"""Units in processes of this machine: the engine that needs nothing."""

from resourcesync.adapters.engines.executors import submit_unit
from resourcesync.adapters.engines.performing import run_unit
from resourcesync.adapters.engines.process_pool import (
    MAX_PROCESSES,
    end_pool,
    new_pool,
    processors,
    run_in_worker,
)
from resourcesync.errors import ConfigurationError
from resourcesync.ports.engines import HostShare, UnitFunction, UnitFuture, UnitOutcome, WorkUnit


class ProcessEngine:
    """An ``Engine`` of processes, which begin as they are needed and end with it.

    Each begins as a new interpreter, so threads and open files of this program are of no matter. A
    process whose parent is gone ends by itself.

    Args:
        workers: How many; ``None`` takes one for each processor that this process may use.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._slots = processors() if workers is None else workers
        self._executor = new_pool(self._slots)

    @property
    def slots(self) -> int:
        """How many processes there are, at most."""
        return self._slots

    def submit(self, work: UnitFunction, unit: WorkUnit, share: HostShare) -> UnitFuture:
        """Begin a unit in one of the processes.

        Raises:
            EngineError: A process died, so that none of the others does any more; or it is closed.
        """
        return submit_unit(self._executor, _run_unit_in_worker, work, unit, share)

    def restart_workers(self) -> bool:
        """Take new processes in place of all that there were."""
        self.close()
        self._executor = new_pool(self._slots)
        return True

    def close(self) -> None:
        """End all processes; what is under way is given up, and tidies up after itself."""
        end_pool(self._executor)


def open_processes(address: str, workers: int | None) -> ProcessEngine:
    """Open the engine of an address ``processes`` or ``processes:N``.

    Args:
        address: It.
        workers: How many processes; ``None`` takes what the address says.

    Raises:
        ConfigurationError: The number cannot be used.
    """
    number = address.partition(":")[2]
    if workers is None and number:
        if not (number.isascii() and number.isdigit()):
            raise ConfigurationError(
                f"{number[:100]!r} is no number of processes", hint="such as processes:4"
            )
        workers = int(number)
    if workers is not None and not 1 <= workers <= MAX_PROCESSES:
        raise ConfigurationError(f"the number of processes must be from 1 to {MAX_PROCESSES}")
    return ProcessEngine(workers)


def _run_unit_in_worker(work: UnitFunction, unit: WorkUnit, share: HostShare) -> UnitOutcome:
    return run_in_worker(run_unit, work, unit, share)
