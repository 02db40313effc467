"""An engine on local processes, which needs no other software.

Each process is a new interpreter: it shares no threads and no open files with this program, and
ends with its parent. On Ctrl-C the parent ends the processes; a unit in progress is abandoned and
cleans up after itself.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing.connection import wait
from typing import Final, ParamSpec, TypeVar

import msgspec

from resourcesync.errors import ConfigurationError
from resourcesync_cluster.engines.executors import ExecutorEngine, run_unit
from resourcesync_cluster.ports import HostShare, UnitFunction, UnitOutcome, WorkUnit

P = ParamSpec("P")
R = TypeVar("R")

MAX_PROCESSES: Final = 1_024
_PATIENCE: Final = 5.0
"""Seconds that a process has to end after SIGTERM."""


def new_pool(workers: int) -> ProcessPoolExecutor:
    """Return an executor whose work is to run in `run_in_worker`; end it by `end_pool`."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_prepare_worker)


def end_pool(executor: ProcessPoolExecutor) -> None:
    """End all processes; units in progress are cancelled, and clean up after themselves."""
    # There is no public access to them before Python 3.14.
    processes = list((getattr(executor, "_processes", None) or {}).values())
    executor.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        with suppress(ValueError, OSError):  # it has ended
            process.terminate()
    patience = _PATIENCE
    for process in processes:
        with suppress(ValueError, OSError):
            process.join(patience)
            if process.is_alive():
                patience = 0.0  # the time of the others ran meanwhile
                process.kill()
                process.join()


def processors() -> int:
    """Return the number of processors that this process may use."""
    return min(MAX_PROCESSES, len(os.sched_getaffinity(0)))


class _WorkerState(msgspec.Struct):
    """The state of a worker process."""

    busy: bool = False
    is_ending: bool = False


_worker_state: Final = _WorkerState()
"""The state of this process, if it is in a pool; global for the signal handler."""


def run_in_worker(function: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """Call a function in one of the processes, so that it can be cancelled."""
    _worker_state.busy = True
    try:
        return function(*arguments, **named)
    finally:
        _worker_state.busy = False
        if _worker_state.is_ending:
            os._exit(0)  # no result is awaited; a dead process may hold the queue's lock


def _prepare_worker() -> None:
    """Prepare a process: ignore Ctrl-C, and end with the parent, also if that dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _on_terminate)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _on_terminate(_number: int, _frame: object) -> None:
    """Let the unit in progress clean up, as if it had failed."""
    if not _worker_state.busy:
        os._exit(0)
    if not _worker_state.is_ending:
        _worker_state.is_ending = True
        raise SystemExit


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(_PATIENCE)
    os._exit(1)


def open_processes(address: str, workers: int | None) -> ExecutorEngine:
    """Open the engine of an address ``processes`` or ``processes:N``."""
    number = address.partition(":")[2]
    if workers is None and number:
        if not (number.isascii() and number.isdigit()):
            raise ConfigurationError(
                f"{number[:100]!r} is not a number of processes", hint="such as processes:4"
            )
        workers = int(number)
    if workers is not None and not 1 <= workers <= MAX_PROCESSES:
        raise ConfigurationError(f"the number of processes must be from 1 to {MAX_PROCESSES}")
    slots = processors() if workers is None else workers
    return ExecutorEngine(
        new_pool(slots),
        lambda _: slots,
        reopen=partial(new_pool, slots),
        end=end_pool,
        run=_run_unit_in_worker,
    )


def _run_unit_in_worker(
    work: UnitFunction, unit: WorkUnit, share: HostShare, version: str
) -> UnitOutcome:
    return run_in_worker(run_unit, work, unit, share, version)
