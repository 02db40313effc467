"""Pulls whose resources workers fetch; also the entry point of workers."""

import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import cast

from msgspec import structs

from resourcesync.adapters.mirror.staging import StagedFile, Staging, open_staging
from resourcesync.adapters.mirror.syncing import FileSyncer
from resourcesync.adapters.system import SystemClock
from resourcesync.app import mirror_stores
from resourcesync.app.fetchers import open_fetcher
from resourcesync.app.mirror_workers import Site, Workers
from resourcesync.errors import StorageError
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.ports import CancelToken, Clock, CopyInstallation, Reporter, StagedCopy
from resourcesync.ports.stores import ObjectContent, StagingStore, guard_store, in_flight
from resourcesync.ports.validators_and_dates import modified_at
from resourcesync_cluster import worker
from resourcesync_cluster.engines.executors import open_engine
from resourcesync_cluster.fetcher import WorkerFetcher
from resourcesync_cluster.politeness import HostLimits
from resourcesync_cluster.ports import ExecutionEngine, HostShare, StagingArea, UnitOutcome
from resourcesync_cluster.unit_runner import run_units
from resourcesync_cluster.units import FetchUnit


@contextmanager
def open_workers(
    site: Site, workers: Workers, cancel: CancelToken, report: Reporter
) -> Iterator[WorkerFetcher]:
    """Yield the fetcher of a pull with workers.

    The engine is opened with the first unit: most pulls have none.
    """
    network = site.network
    limits = HostLimits(
        units=workers.units, rate=network.rate, jobs=min(network.per_host, network.jobs)
    )
    opened: list[ExecutionEngine] = []

    def report_lost(message: str) -> None:
        report("warning", {"code": "worker-died", "message": message, "evidence": ()})

    with ExitStack() as stack:

        def run(units: Iterable[FetchUnit]) -> Generator[UnitOutcome, None, None]:
            if not opened:
                opened.append(stack.enter_context(open_engine(workers.engine)))
            return run_units(
                opened[0], fetch_unit, units, limits=limits, cancel=cancel, tell=report_lost
            )

        yield WorkerFetcher(run, site, rows=workers.unit_rows)


def fetch_unit(unit: FetchUnit, share: HostShare) -> UnitOutcome:
    """Carry out the requests of a unit, in a worker."""
    with _tools(unit.site, share) as tools:
        return worker.fetch_unit(unit, tools)


@contextmanager
def _tools(site: Site, share: HostShare) -> Iterator[worker.WorkerTools]:
    clock = SystemClock()
    network = structs.replace(site.network, rate=share.rate, jobs=share.jobs or site.network.jobs)
    with (
        _staging_area(site, clock) as area,
        open_fetcher(site.source, network, CancelToken(clock)) as fetcher,
    ):
        yield worker.WorkerTools(
            fetcher=fetcher,
            area=area,
            traffic=lambda: (fetcher.stats.requests, fetcher.stats.received),
            wait=lambda: fetcher.stats.wait,
        )


@contextmanager
def _staging_area(site: Site, clock: Clock) -> Iterator[StagingArea]:
    if not site.store:
        with (
            open_staging(Path(site.folder) / OWN_FOLDER / "tmp") as staging,
            closing(FileSyncer(clock.monotonic)) as syncer,
        ):
            yield FolderStagingArea(staging, syncer)
        return
    with (
        tempfile.TemporaryDirectory(prefix="resourcesync-unit-") as folder,
        open_staging(Path(folder)) as staging,
    ):
        yield StoreStagingArea(mirror_stores.open_staging_store(site.store), staging.stage)


class FolderStagingArea:
    """The ``StagingArea`` in the folder of temporary files of a mirror.

    The names of files have a random part for each worker, so none writes a file of another.
    """

    def __init__(self, staging: Staging, syncer: FileSyncer) -> None:
        self._staging = staging
        self._syncer = syncer

    def stage(self, algorithms: Sequence[str]) -> StagedFile:
        """Start a staged file."""
        return self._staging.stage(algorithms)

    def hand_over(
        self, batch: Sequence[tuple[StagedCopy, Mapping[str, str]]]
    ) -> list[str | StorageError]:
        """Make files durable; return the name of each, or its error."""
        staged = [cast("StagedFile", copy) for copy, _ in batch]
        synced = self._syncer.sync([CopyInstallation(file, "") for file in staged])
        return [
            file.name if isinstance(result, str) else result
            for file, result in zip(staged, synced, strict=True)
        ]


class StoreStagingArea:
    """The ``StagingArea`` in a store: bytes are staged on a local disk until they are sealed."""

    def __init__(
        self, store: StagingStore, stage: Callable[[Sequence[str], str], StagedCopy]
    ) -> None:
        self._store = store
        self._stage = stage

    def stage(self, algorithms: Sequence[str]) -> StagedCopy:
        """Start a staged copy."""
        return self._stage(algorithms, "")

    def hand_over(
        self, batch: Sequence[tuple[StagedCopy, Mapping[str, str]]]
    ) -> list[str | StorageError]:
        """Store bytes under temporary keys; return the key of each, or its error."""
        workers = min(in_flight(self._store), len(batch))
        if not workers:
            return []
        with ThreadPoolExecutor(workers, "store") as pool:
            return list(pool.map(self._put, batch))

    def _put(self, item: tuple[StagedCopy, Mapping[str, str]]) -> str | StorageError:
        staged, headers = item
        length, digests = staged.seal()
        try:
            with staged.open_sealed() as stream, guard_store("staging a copy there"):
                stream.seek(0)
                lastmod = modified_at(headers)
                return self._store.stage(ObjectContent(stream, length, digests, lastmod))
        except StorageError as error:
            return error
        finally:
            staged.discard()
