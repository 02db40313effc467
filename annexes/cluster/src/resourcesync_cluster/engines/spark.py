"""Spark as an executor: one job with one task for each call, submitted from a thread."""

import importlib
import itertools
import re
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Final

from resourcesync.errors import ConfigurationError, EngineError
from resourcesync_cluster.engines.executors import ExecutorEngine, check_version

MOST: Final = 512
"""The most units at a time: each has a Python thread and a Java thread."""
PATIENCE: Final = 600.0
"""Seconds to wait for the first worker."""
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


class SparkExecutor(Executor):
    """An executor on a context of Spark's: each call is a job of one task, run from a thread."""

    def __init__(self, context: Any, ended: Callable[[], None] = lambda: None) -> None:
        self._context = context
        self._ended = ended
        self._numbers = itertools.count()
        self._groups = f"{_NAME}-{id(self):x}"
        self._under_way: set[str] = set()
        self._threads = ThreadPoolExecutor(MOST + 1, thread_name_prefix="resourcesync-spark")

    def cores(self) -> int:
        """Return the number of cores that Spark has now."""
        return min(MOST, int(self._context.defaultParallelism))

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a call as a job."""
        group = f"{self._groups}-{next(self._numbers)}"
        return self._threads.submit(self._run_job, group, partial(fn, *args, **kwargs))

    def _run_job(self, group: str, call: Callable[[], Any]) -> Any:
        self._under_way.add(group)
        try:
            self._context.setJobGroup(group, _NAME, interruptOnCancel=True)
            return self._context.parallelize([call], 1).map(_call).collect()[0]
        except Exception as error:  # noqa: BLE001 - whatever Java says becomes one of ours
            raise EngineError(cause_of(f"{error}")) from None
        finally:
            self._under_way.discard(group)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - as its base class has it
        """Cancel all jobs and wait for their end."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with suppress(Exception):  # Java may be gone, and with it the jobs
            for group in list(self._under_way):
                self._context.cancelJobGroup(group)
        self._threads.shutdown(wait=True)
        self._ended()


def cause_of(text: str) -> str:
    """Return the one line of an error report of Spark's that has the cause.

    A report has the stack of Java, within it that of Python, and the cause somewhere between.
    """
    found = (cause.search(text) for cause in _CAUSES)
    best = next((match[1] for match in found if match), "no cause")
    return " ".join(best.split())[:_LONGEST]


def _call(call: Callable[[], Any]) -> Any:
    return call()


def open_spark(address: str, workers: int | None) -> ExecutorEngine:
    """Open the engine of an address ``spark://HOST:PORT``, or ``spark:`` and a master of Spark's.

    Everything else is from Spark's own configuration.
    """
    pyspark = _imported()
    rest = address.partition(":")[2]
    master = address if rest.startswith("//") else rest
    began = pyspark.SparkContext._gateway is None  # noqa: SLF001 - nothing else tells
    context = _context(pyspark, master)
    executor = SparkExecutor(context, partial(_stop, pyspark, context, java=began))
    try:
        check_version(executor, "Spark", PATIENCE)
    except BaseException:
        executor.shutdown()
        raise
    return ExecutorEngine(
        executor, lambda spark: min(spark.cores(), workers or MOST), end=SparkExecutor.shutdown
    )


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
            "Spark needs another package", hint="pip install 'resourcesync-cluster[spark]'"
        ) from error
