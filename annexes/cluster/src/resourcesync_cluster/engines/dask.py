"""A running Dask cluster as an executor; its scheduler replaces lost workers."""

import importlib
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any, Final

from resourcesync.errors import ConfigurationError, EngineError
from resourcesync_cluster.engines.executors import ExecutorEngine, check_version

PATIENCE: Final = 30
"""Seconds to wait for the scheduler and for the first worker."""
_FRESH: Final = 10
"""Number of calls of ``threads`` between two requests to the scheduler."""


class DaskExecutor(Executor):
    """An executor on a Dask cluster, with the cluster's current size.

    Dask itself restarts a call whose worker is lost on another one.
    """

    def __init__(self, scheduler: str) -> None:
        self._scheduler = scheduler
        self._calls = 0
        self._threads = 1
        self._client = _connect(scheduler)
        self._executor = self._client.get_executor(pure=False)
        try:
            check_version(self, "Dask", PATIENCE)
        except BaseException:
            self.shutdown()
            raise

    def threads(self) -> int:
        """Return the number of threads of all workers."""
        if self._calls % _FRESH == 0:
            with suppress(OSError, TimeoutError):
                self._threads = sum(self._client.nthreads().values())
        self._calls += 1
        return self._threads

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a call to one of the workers."""
        if self._client.status not in {"running", "connecting"}:
            raise RuntimeError(f"the scheduler at {self._scheduler} is gone")
        future: Future[Any] = self._executor.submit(fn, *args, **kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - as its base class has it
        """Disconnect from the cluster; calls in progress are cancelled."""
        with suppress(OSError, TimeoutError, RuntimeError):  # it may be gone already
            self._client.close(timeout=PATIENCE)


def _connect(scheduler: str) -> Any:
    distributed = _imported()
    try:
        return distributed.Client(scheduler, timeout=PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise EngineError(
            f"no Dask scheduler answers at {scheduler}",
            evidence=(("got", f"{type(error).__name__}: {error}"[:500]),),
            hint="start one: dask scheduler",
        ) from error


def open_dask(address: str, workers: int | None) -> ExecutorEngine:
    """Open the engine of an address ``dask://HOST:PORT``, or ``dask:`` and an address of Dask's."""
    rest = address.partition(":")[2]
    if len(rest.strip("/")) == 0:
        raise ConfigurationError(f"{address!r} names no scheduler", hint="dask://HOST:PORT")
    scheduler = f"tcp:{rest}" if rest.startswith("//") else rest
    return ExecutorEngine(
        DaskExecutor(scheduler),
        lambda executor: min(executor.threads(), workers or inf),
        reopen=partial(DaskExecutor, scheduler),
        end=DaskExecutor.shutdown,
    )


def _imported() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise ConfigurationError(
            "Dask needs another package", hint="pip install 'resourcesync-cluster[dask]'"
        ) from error
