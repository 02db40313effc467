"""The engine at an address, or on an executor of a program."""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from importlib import import_module
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
_ENGINES: Final = ("processes", "dask", "spark")
"""Modules that are imported when they are used."""
_SLOTS: Final = 8


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
