"""The engine at an address, or on an executor of a program."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from typing import Final

from resourcesync.errors import ConfigurationError
from resourcesync_cluster.engines.executors import ExecutorEngine

_FORMS: Final = (
    "processes",
    "processes:N",
    "dask://HOST:PORT",
    "spark://HOST:PORT",
    "spark:local[2]",
)
_SLOTS: Final = 8


@contextmanager
def open_engine(address: str | Executor, workers: int | None = None) -> Iterator[ExecutorEngine]:
    """Open an engine; it is closed after the block."""
    if workers is not None and workers < 1:
        raise ConfigurationError(f"the number of workers must be at least 1, not {workers}")
    if isinstance(address, Executor):
        yield ExecutorEngine(address, lambda _: workers or _SLOTS)
        return
    with closing(_opener(address)(address, workers)) as engine:
        yield engine


def _opener(address: str) -> Callable[[str, int | None], ExecutorEngine]:
    match address.partition(":")[0]:
        case "processes":
            from resourcesync_cluster.engines.processes import open_processes  # noqa: PLC0415

            return open_processes
        case "dask":
            from resourcesync_cluster.engines.dask import open_dask  # noqa: PLC0415

            return open_dask
        case "spark":
            from resourcesync_cluster.engines.spark import open_spark  # noqa: PLC0415

            return open_spark
        case _:
            raise ConfigurationError(
                f"there is no engine {address[:200]!r}", hint=f"one of: {', '.join(_FORMS)}"
            )
