"""Engines that run the units of a pull: processes, Dask and Spark are ours, others plug-ins'."""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from typing import Any, Final, cast

import msgspec

from resourcesync.app import plugins
from resourcesync.errors import ConfigurationError, ResourceSyncError
from resourcesync.ports.engines import UNIT_ROWS, ExecutionEngine

_FORMS: Final = (
    "processes",
    "processes:N",
    "dask://HOST:PORT",
    "spark://HOST:PORT",
    "spark:local[2]",
)
_SLOTS: Final = 8
_METHODS: Final = ("submit", "restart_workers", "close")


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """The workers for the units of a pull.

    Attributes:
        engine: Its address; or an existing executor of a program.
        units: Most units of one host at a time.
        unit_rows: The most requests of a unit.
    """

    engine: str | Executor = "processes"
    units: int = _SLOTS
    unit_rows: int = UNIT_ROWS


@contextmanager
def open_engine(address: str | Executor, workers: int | None = None) -> Iterator[ExecutionEngine]:
    """Open an engine; it is closed after the block."""
    if workers is not None and workers < 1:
        raise ConfigurationError(f"the number of workers must be at least 1, not {workers}")
    if isinstance(address, Executor):
        from resourcesync.cluster.engines.executors import ExecutorEngine  # noqa: PLC0415 - rarely

        yield ExecutorEngine(address, lambda _: workers or _SLOTS)
        return
    name = address.partition(":")[0]
    if name not in plugins.names(plugins.ENGINES):
        raise ConfigurationError(
            f"there is no engine {address[:200]!r}",
            evidence=(("installed", ", ".join(plugins.names(plugins.ENGINES))),),
            hint=f"one of: {', '.join(_FORMS)}",
        )
    with closing(_load_engine(name, address, workers)) as engine:
        yield engine


def _load_engine(name: str, address: str, workers: int | None) -> ExecutionEngine:
    factory = plugins.load(plugins.ENGINES, name)
    try:
        engine: Any = factory(address, workers)
    except ResourceSyncError:
        raise
    except Exception as error:
        raise _unusable(name, f"{type(error).__name__}: {error}"[:500]) from error
    if not all(callable(getattr(engine, method, None)) for method in _METHODS):
        raise _unusable(name, f"its factory returned a {type(engine).__name__}, not an engine")
    return cast("ExecutionEngine", engine)


def _unusable(name: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the engine {name} cannot be used",
        evidence=(("got", why),),
        hint="the list of plug-ins names the package of each: resourcesync doctor --plugins",
        code="bad-plugin",
    )
