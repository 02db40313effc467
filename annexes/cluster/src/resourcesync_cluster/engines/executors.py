"""The one engine: an executor of ``concurrent.futures``, and the worker's code for all of them."""

import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import PurePath
from typing import Any, Final

from resourcesync import __version__
from resourcesync.errors import ConfigurationError, EngineError, ResourceSyncError
from resourcesync_cluster.ports import HostShare, UnitFunction, UnitFuture, UnitOutcome, WorkUnit

_LONGEST: Final = 500
_FORMS: Final = (
    "processes",
    "processes:N",
    "dask://HOST:PORT",
    "spark://HOST:PORT",
    "spark:local[2]",
)
_ENGINES: Final = ("processes", "dask", "spark")
"""Modules that are imported when they are used."""
_SLOTS: Final = 8


def run_unit(
    work: UnitFunction, unit: WorkUnit, share: HostShare, version: str = __version__
) -> UnitOutcome:
    """Run a unit; any error is converted to one that reaches the coordinator.

    Exceptions of other packages may fail to unpickle, and would break the engine.
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


def _source_location(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{PurePath(last.filename).name}:{last.lineno}, {last.name}"


def _package_version() -> str:
    return __version__


UnitRunner = Callable[[UnitFunction, Any, HostShare, str], UnitOutcome]
"""Runs the work with its unit, in a worker that may have another version."""


def leave(_executor: Executor) -> None:
    """Leave an executor as it is: it is its owner's."""


class ExecutorEngine:
    """An ``ExecutionEngine`` on an executor."""

    def __init__(
        self,
        executor: Executor,
        slots: Callable[[Any], int],
        *,
        reopen: Callable[[], Executor] | None = None,
        end: Callable[[Any], object] = leave,
        run: UnitRunner = run_unit,
    ) -> None:
        self._executor = executor
        self._slots = slots
        self._reopen = reopen
        self._end = end
        self._run = run

    @property
    def slots(self) -> int:
        """Number of units that run at a time."""
        return max(1, self._slots(self._executor))

    def submit(self, work: UnitFunction, unit: WorkUnit, share: HostShare) -> UnitFuture:
        """Submit a unit."""
        try:
            return self._executor.submit(self._run, work, unit, share, __version__)
        except RuntimeError as error:  # BrokenExecutor is one, too
            raise EngineError(
                "the executor accepts no more work", evidence=(("got", f"{error}"),)
            ) from (error)

    def restart_workers(self) -> bool:
        """Open another executor in place of one that accepts no more work, if that can be."""
        if self._reopen is None:
            return False
        self._end(self._executor)
        try:
            self._executor = self._reopen()
        except EngineError:
            return False
        return True

    def close(self) -> None:
        """End the executor, unless it is its owner's."""
        self._end(self._executor)


def check_version(executor: Executor, kind: str, patience: float) -> None:
    """Check that a worker has this version of the package."""
    try:
        found = executor.submit(_package_version).result(patience)
    except TimeoutError as error:
        raise EngineError(
            f"no {kind} worker started the task within {patience:g} s",
            hint="check that there are workers, and that they are not busy",
        ) from error
    except Exception as error:
        raise EngineError(
            f"no unit can run on this {kind} cluster",
            evidence=(("got", f"{error}"[:_LONGEST]),),
            hint="check that it answers; on the scheduler and each worker: "
            f"pip install resourcesync-cluster=={__version__}",
        ) from error
    if found != __version__:
        raise EngineError(
            f"resourcesync {__version__} is not installed on all workers",
            evidence=(("a worker", f"{found}"),),
            hint="on the scheduler and each worker: "
            f"pip install resourcesync-cluster=={__version__}",
        )


@contextmanager
def open_engine(address: str | Executor, workers: int | None = None) -> Iterator[ExecutorEngine]:
    """Open an engine; it is closed after the block."""
    if workers is not None and workers < 1:
        raise ConfigurationError(f"the number of workers must be at least 1, not {workers}")
    if isinstance(address, Executor):
        yield ExecutorEngine(address, lambda _: workers or _SLOTS)
        return
    name = address.partition(":")[0]
    if name not in _ENGINES:
        raise ConfigurationError(
            f"there is no engine {address[:200]!r}", hint=f"one of: {', '.join(_FORMS)}"
        )
    opener = getattr(import_module(f"resourcesync_cluster.engines.{name}"), f"open_{name}")
    with closing(opener(address, workers)) as engine:
        yield engine
