"""Units in processes of this machine: the engine that needs nothing."""

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Final

from resourcesync.adapters.engines.executors import submit
from resourcesync.adapters.engines.performing import perform
from resourcesync.errors import ConfigurationError
from resourcesync.ports.engines import Outcome, Promise, Share, Unit, Work

_MOST: Final = 1_024
_PATIENCE: Final = 5.0
"""Seconds for which a process that was told to end may take its time."""


class ProcessEngine:
    """An ``Engine`` of processes, which begin as they are needed and end with it.

    Each begins as a new interpreter, so threads and open files of this program are of no matter. A
    process whose parent is gone ends by itself.

    Args:
        workers: How many; ``None`` takes one for each processor that this process may use.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._slots = _processors() if workers is None else workers
        self._executor = self._new()

    @property
    def slots(self) -> int:
        """How many processes there are, at most."""
        return self._slots

    def submit(self, work: Work, unit: Unit, share: Share) -> Promise:
        """Begin a unit in one of the processes.

        Raises:
            EngineError: A process died, so that none of the others does any more; or it is closed.
        """
        return submit(self._executor, _do, work, unit, share)

    def mend(self) -> bool:
        """Take new processes in place of all that there were."""
        self.close()
        self._executor = self._new()
        return True

    def close(self) -> None:
        """End all processes; what is under way is given up, and tidies up after itself."""
        # There is no public way to them before Python 3.14.
        processes = list((getattr(self._executor, "_processes", None) or {}).values())
        self._executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            with suppress(ValueError, OSError):  # it has ended
                process.terminate()
        patience = _PATIENCE
        for process in processes:
            with suppress(ValueError, OSError):
                process.join(patience)
                if process.is_alive():
                    patience = 0.0  # the others have had theirs meanwhile
                    process.kill()
                    process.join()

    def _new(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._slots, mp_context=context, initializer=_begin)


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
    if workers is not None and not 1 <= workers <= _MOST:
        raise ConfigurationError(f"the number of processes must be from 1 to {_MOST}")
    return ProcessEngine(workers)


def _processors() -> int:
    return min(_MOST, len(os.sched_getaffinity(0)))


@dataclass(slots=True)
class _Life:
    """What a process is at.

    Attributes:
        busy: It does a unit.
        ended: It was told to end.
    """

    busy: bool = False
    ended: bool = False


_life: Final = _Life()
"""Of this process, if it is one of an engine's: a signal has no other way to find it."""


def _begin() -> None:
    """Prepare a process: Ctrl-C is for the coordinator, which ends it, alive or dead."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()


def _do(work: Work, unit: Unit, share: Share) -> Outcome:
    _life.busy = True
    try:
        return perform(work, unit, share)
    finally:
        _life.busy = False
        if _life.ended:
            os._exit(0)  # nobody waits for more, and whoever died may hold the lock of the queue


def _end(_number: int, _frame: object) -> None:
    """Have the unit that is under way tidy up, as if it had failed."""
    if not _life.busy:
        os._exit(0)
    if not _life.ended:
        _life.ended = True
        raise SystemExit


def _end_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(_PATIENCE)
    os._exit(1)
