"""Pulls whose resources workers fetch; also the entry point of workers."""

import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from msgspec import structs

from resourcesync.adapters.mirror.staging import FileSyncer, open_staging
from resourcesync.app import machine
from resourcesync.app.mirrors import stores
from resourcesync.app.mirrors.workers import Site, Workers
from resourcesync.app.requests import open_fetcher
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.ports import CancelToken, Clock, Reporter
from resourcesync_cluster import worker
from resourcesync_cluster.engines.executors import open_engine
from resourcesync_cluster.fetcher import WorkerFetcher
from resourcesync_cluster.politeness import HostLimits
from resourcesync_cluster.ports import ExecutionEngine, HostShare, StagingArea, UnitOutcome
from resourcesync_cluster.staging import FolderStagingArea, StoreStagingArea
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
    clock = machine.system_clock()
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
        yield StoreStagingArea(stores.open_staging_store(site.store), staging.stage)
