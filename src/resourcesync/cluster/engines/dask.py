"""An engine on a running Dask cluster; its scheduler replaces lost workers."""

import importlib
import logging
import pkgutil
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import suppress
from typing import Any, Final

from resourcesync import __version__
from resourcesync.cluster.engines.executors import run_unit
from resourcesync.errors import ConfigurationError, EngineError
from resourcesync.ports.engines import HostShare, UnitFunction, UnitFuture, UnitOutcome, WorkUnit

PATIENCE: Final = 30
"""Seconds to wait for the scheduler and for the first worker."""
"""Seconds to wait for the scheduler, and for its first worker."""
_FRESH: Final = 10
"""Number of calls of ``slots`` between two requests to the scheduler."""
_OURS: Final = "resourcesync:__version__"
_NAMED: Final = 3

_log = logging.getLogger(__name__)


class DaskEngine:
    """An ``Engine`` on a Dask cluster, with the cluster's current size.

    Dask itself restarts a unit whose worker is lost on another one.

    Args:
        address: The scheduler's address, in Dask's own format.
        most: Most units at a time; ``None`` for one for each thread of the workers.

    Raises:
        ConfigurationError: Dask is not installed.
        EngineError: No scheduler or no worker is there, or they lack this version of the package.
    """

    def __init__(self, address: str, most: int | None = None) -> None:
        self._address = address
        self._most = most
        self._slot_requests = 0
        self._slots = 1
        self._client = self._connect()
        try:
            self._check()
        except BaseException:
            self.close()
            raise

    @property
    def slots(self) -> int:
        """Number of threads of all workers."""
        if self._slot_requests % _FRESH == 0:
            with suppress(OSError, TimeoutError, KeyError):
                found = self._client.scheduler_info(n_workers=0)
                threads = found["total_threads"]
                self._slots = max(1, threads if self._most is None else min(threads, self._most))
        self._slot_requests += 1
        return self._slots

    def submit(self, work: UnitFunction, unit: WorkUnit, share: HostShare) -> UnitFuture:
        """Submit a unit to one of the workers.

        Raises:
            EngineError: The scheduler is gone.
        """
        if self._client.status not in ("running", "connecting"):
            raise EngineError(f"the scheduler at {self._address} is gone")
        words = (work, unit, share, __version__)
        return _DaskFuture(self._client.submit(run_unit, *words, pure=False))

    def restart_workers(self) -> bool:
        """Reconnect to the scheduler: it may have been restarted."""
        self.close()
        try:
            self._client = self._connect()
        except EngineError as error:
            _log.warning("%s", error.message)
            return False
        return True

    def close(self) -> None:
        """Disconnect from the cluster; units in progress are cancelled."""
        with suppress(OSError, TimeoutError, RuntimeError):  # it may be gone already
            self._client.close(timeout=PATIENCE)

    def _connect(self) -> Any:
        distributed = _imported()
        try:
            client = distributed.Client(self._address, timeout=PATIENCE, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise EngineError(
                f"no Dask scheduler answers at {self._address}",
                evidence=(("got", f"{type(error).__name__}: {error}"[:500]),),
                hint="start one: dask scheduler",
            ) from error
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            client.close()
            raise EngineError(
                f"the Dask scheduler at {self._address} has no workers",
                hint=f"start some: dask worker {self._address}",
            ) from error
        return client

    def _check(self) -> None:
        """Check that workers and scheduler can import this package; both read the graph.

        A worker that cannot be reached is about to be removed by Dask; it gets no unit.
        """
        try:
            found = {"the scheduler": self._client.run_on_scheduler(pkgutil.resolve_name, _OURS)}
        except ImportError as error:
            found = {"the scheduler": error}
        found |= self._client.run(pkgutil.resolve_name, _OURS, on_error="return")
        others = [
            (where, item)
            for where, item in found.items()
            if item != __version__ and not isinstance(item, OSError)
        ]
        if others:
            raise EngineError(
                f"resourcesync {__version__} is not installed on all workers",
                evidence=tuple((where, f"{item}"[:200]) for where, item in others[:_NAMED]),
                hint=f"on the scheduler and each worker: pip install resourcesync=={__version__}",
            )


class _DaskFuture:
    """A Dask future; Dask reports it as cancelled when the scheduler is gone."""

    def __init__(self, future: Any) -> None:
        self._future = future

    def result(self) -> UnitOutcome:
        try:
            outcome: UnitOutcome = self._future.result()
        except CancelledError as error:
            raise BrokenExecutor(" ".join(f"{error}".split())[:500]) from None
        return outcome

    def cancel(self) -> object:
        return self._future.cancel()

    def add_done_callback(self, fn: Any, /) -> object:
        return self._future.add_done_callback(fn)


def open_dask(address: str, workers: int | None) -> DaskEngine:
    """Open the engine of an address ``dask://HOST:PORT``, or ``dask:`` and an address of Dask's.

    Args:
        address: Such as ``dask://127.0.0.1:8786`` or ``dask:tls://scheduler:8786``.
        workers: Most units at a time; ``None`` for one for each thread of the workers.

    Raises:
        ConfigurationError: Dask is not installed, or the address cannot be one.
        EngineError: No scheduler or no worker is there, or they lack this version of the package.
    """
    rest = address.partition(":")[2]
    if len(rest.strip("/")) == 0:
        raise ConfigurationError(f"{address!r} names no scheduler", hint="dask://HOST:PORT")
    return DaskEngine(f"tcp:{rest}" if rest.startswith("//") else rest, workers)


def _imported() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise ConfigurationError(
            "Dask needs another package", hint="pip install 'resourcesync[dask]'"
        ) from error
