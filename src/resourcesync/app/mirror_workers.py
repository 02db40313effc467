"""Workers that fetch for a pull: plug-ins open them, by the name of an engine."""

from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Final, Protocol

import msgspec

from resourcesync.app import plugins
from resourcesync.ports import CancelToken, Fetcher, Reporter
from resourcesync.settings.mirror import Network

_SLOTS: Final = 8
_UNIT_ROWS: Final = 500
_EXECUTOR: Final = "executor"
"""The name of the plug-in for an executor of a program."""


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """The workers for the units of a pull: the address of an engine, or a program's executor."""

    engine: str | Executor = "processes"
    units: int = _SLOTS
    """Most units of one host at a time."""
    unit_rows: int = _UNIT_ROWS


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's way to the Source and to the mirror; ``network`` has secrets."""

    source: str
    folder: str
    """The mirror's folder, at the same path for all workers; unused with a store."""
    store: str
    network: Network


class CountingFetcher(Fetcher, Protocol):
    """A fetcher that counts what its workers do."""

    def traffic(self) -> tuple[int, int]:
        """Return requests sent and bytes received by workers so far."""


def open_workers(
    site: Site, workers: Workers, cancel: CancelToken, report: Reporter
) -> AbstractContextManager[CountingFetcher]:
    """Return what opens the fetcher of a pull with workers."""
    engine = workers.engine
    name = _EXECUTOR if isinstance(engine, Executor) else engine.partition(":")[0]
    return plugins.open_plugin(plugins.ENGINES, name, site, workers, cancel, report)
