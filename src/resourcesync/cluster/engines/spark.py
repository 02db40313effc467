"""An engine on Spark: one job with one task for each unit, submitted from a thread."""

import importlib
import itertools
import re
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from resourcesync import __version__
from resourcesync.cluster.engines.executors import package_version, run_unit
from resourcesync.errors import ConfigurationError, EngineError
from resourcesync.ports.engines import HostShare, UnitFunction, UnitFuture, UnitOutcome, WorkUnit

_MOST: Final = 512
"""The most units at a time: each has a Python thread and a Java thread."""
_PATIENCE: Final = 600.0
_NAME: Final = "resourcesync"
_PYTHON: Final = "python3"
"""The Python that Spark uses by default."""
_QUIET: Final = (
    ("spark.ui.showConsoleProgress", "false"),
    ("spark.log.level", "FATAL"),  # errors are reported without two pages of Java stack
)
_LONGEST: Final = 500
_CAUSES: Final = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^(?:[\w.]+\.)?EngineError: (.+)$",  # the work raised it
        r"^([\w.]*(?:Error|Exception|Interrupt): .+)$",  # Python raised it
        r"^Caused by: [\w.$]+: (.+)$",
        r"^: [\w.$]+: (.+)$",
        r"^(?!An error occurred)(.*\S.*)$",
    )
)
"""Patterns of the cause in an error report of Spark's, the best first."""


class SparkEngine:
    """An ``Engine`` on a context of Spark's.

    Args:
        context: A ``pyspark.SparkContext``; the caller owns and stops it.
        most: Most units at a time; ``None`` for one for each core.
        ended: Called when the engine is closed and its jobs have ended.
        patience: Seconds to wait for the first worker.
    """

    def __init__(
        self,
        context: Any,
        most: int | None = None,
        *,
        ended: Callable[[], None] = lambda: None,
        patience: float = _PATIENCE,
    ) -> None:
        self._context = context
        self._patience = patience
        self._most = min(_MOST, most or _MOST)
        self._ended = ended
        self._numbers = itertools.count()
        self._groups = f"{_NAME}-{id(self):x}"
        self._under_way: set[str] = set()
        self._threads = ThreadPoolExecutor(_MOST + 1, thread_name_prefix="resourcesync-spark")

    @property
    def slots(self) -> int:
        """Number of cores that Spark has now."""
        return max(1, min(int(self._context.defaultParallelism), self._most))

    def submit(self, work: UnitFunction, unit: WorkUnit, share: HostShare) -> UnitFuture:
        """Submit a unit as a job of one task.

        Raises:
            EngineError: The engine is closed.
        """
        group = f"{self._groups}-{next(self._numbers)}"
        try:
            payload = (work, unit, share, __version__)
            future = self._threads.submit(self._run_unit, group, unit.name, payload)
        except RuntimeError as error:
            raise EngineError("Spark accepts no more work", evidence=(("got", f"{error}"),)) from (
                error
            )
        return _SparkFuture(future, lambda: self._context.cancelJobGroup(group))

    def check(self) -> None:
        """Check that a worker has this version of the package.

        Raises:
            EngineError: It has none or another, or there is no worker.
        """
        group = f"{self._groups}-check"
        try:
            asked = self._threads.submit(self._run_job, group, "which version", _version, None)
            found = asked.result(self._patience)
        except TimeoutError as error:
            self._context.cancelJobGroup(group)
            raise EngineError(
                f"no Spark worker started the task within {self._patience:g} s",
                hint="check that it has workers, and that they are not busy",
            ) from error
        except EngineError as error:
            raise EngineError(
                "no unit can run on this Spark cluster",
                evidence=(("got", error.message),),
                hint="check that its master answers; on each worker: "
                f"pip install resourcesync=={__version__}",
            ) from error
        if found != __version__:
            raise EngineError(
                f"resourcesync {__version__} is not installed on all workers",
                evidence=(("a worker", f"{found}"),),
                hint=f"on each worker: pip install resourcesync=={__version__}",
            )

    def restart_workers(self) -> bool:
        """Return ``False``: Spark gets new executors by itself."""
        return False

    def close(self) -> None:
        """Cancel all jobs of this engine and wait for their end."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with suppress(Exception):  # Java may be gone, and with it the jobs
            for group in list(self._under_way):
                self._context.cancelJobGroup(group)
        self._threads.shutdown(wait=True)
        self._ended()

    def _run_unit(
        self, group: str, name: str, payload: tuple[UnitFunction, WorkUnit, HostShare, str]
    ) -> UnitOutcome:
        outcome: UnitOutcome = self._run_job(group, name, _perform, payload)
        return outcome

    def _run_job(self, group: str, name: str, function: Callable[[Any], Any], payload: Any) -> Any:
        self._under_way.add(group)
        try:
            self._context.setJobGroup(group, name, interruptOnCancel=True)
            return self._context.parallelize([payload], 1).map(function).collect()[0]
        except Exception as error:  # noqa: BLE001 - whatever Java says becomes one of ours
            raise EngineError(cause_of(f"{error}")) from None
        finally:
            self._under_way.discard(group)


def cause_of(text: str) -> str:
    """Return the one line of an error report of Spark's that has the cause.

    A report has the stack of Java, within it that of Python, and the cause somewhere between.
    """
    found = (cause.search(text) for cause in _CAUSES)
    best = next((match[1] for match in found if match), "no cause")
    return " ".join(best.split())[:_LONGEST]


def _perform(payload: tuple[UnitFunction, WorkUnit, HostShare]) -> UnitOutcome:
    return run_unit(*payload)


def _version(_: object) -> str:
    return package_version()


class _SparkFuture:
    """A future of a thread; cancelling it cancels the job."""

    def __init__(self, future: "Future[UnitOutcome]", cancel: Callable[[], object]) -> None:
        self._future = future
        self._cancel = cancel

    def result(self) -> UnitOutcome:
        return self._future.result()

    def cancel(self) -> object:
        if not self._future.cancel() and not self._future.done():
            with suppress(Exception):  # Java may be gone, and with it the job
                self._cancel()
        return True

    def add_done_callback(self, fn: Callable[[Any], object], /) -> None:
        self._future.add_done_callback(fn)


def open_spark(address: str, workers: int | None) -> SparkEngine:
    """Open the engine of an address ``spark://HOST:PORT``, or ``spark:`` and a master of Spark's.

    Everything else is from Spark's own configuration.

    Args:
        address: Such as ``spark:local[2]`` or ``spark:yarn``.
        workers: Most units at a time; ``None`` for one for each core.

    Raises:
        ConfigurationError: Spark is not installed, or this program has a context already.
        EngineError: Java or the master is not there, or the workers lack this version.
    """
    pyspark = _imported()
    rest = address.partition(":")[2]
    master = address if rest.startswith("//") else rest
    began = pyspark.SparkContext._gateway is None  # noqa: SLF001 - nothing else tells
    context = _context(pyspark, master)
    engine = SparkEngine(context, workers, ended=lambda: _stop(pyspark, context, java=began))
    try:
        engine.check()
    except BaseException:
        engine.close()
        raise
    return engine


def _context(pyspark: Any, master: str) -> Any:
    conf = pyspark.SparkConf().setAppName(_NAME)
    if master:
        conf.setMaster(master)
    for key, value in _QUIET:
        conf.setIfMissing(key, value)
    try:
        context = pyspark.SparkContext(conf=conf)
    except ValueError as error:
        raise ConfigurationError(
            "this program uses Spark already", evidence=(("got", cause_of(f"{error}")),)
        ) from error
    except Exception as error:
        raise EngineError(
            f"Spark does not start at {master}",
            evidence=(("got", cause_of(f"{error}")),),
            hint="check that Java 17 is installed, and that the master is reachable",
        ) from error
    if context.pythonExec == _PYTHON:
        context.pythonExec = sys.executable
    return context


def _stop(pyspark: Any, context: Any, *, java: bool) -> None:
    """Stop a context, and the Java process started for it, which would remain otherwise."""
    gateway = pyspark.SparkContext._gateway  # noqa: SLF001 - there is no public way
    with suppress(Exception):  # Java may be gone
        context.stop()
    if not java or gateway is None:
        return
    with suppress(Exception):
        gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()  # its signal to end
        process.wait()
    pyspark.SparkContext._gateway = None  # noqa: SLF001 - so that another can be begun
    pyspark.SparkContext._jvm = None  # noqa: SLF001


def _imported() -> Any:
    try:
        return importlib.import_module("pyspark")
    except ImportError as error:
        raise ConfigurationError(
            "Spark needs another package", hint="pip install 'resourcesync[spark]'"
        ) from error
