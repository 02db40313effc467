"""Pulls of mirrors in a store whose resources are fetched by workers; entry point of these."""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import msgspec
from msgspec import structs

from resourcesync.adapters.http.robots import NoKnownOrigins
from resourcesync.adapters.mirror.staging import open_staging
from resourcesync.adapters.mirror.state import SqliteMirrorState
from resourcesync.adapters.stored_copies import StoredCopies
from resourcesync.app import engines, fetching, machine
from resourcesync.app.engines import Workers
from resourcesync.app.mirrors import stores
from resourcesync.app.options import fetch_settings
from resourcesync.cluster import worker
from resourcesync.cluster.politeness import HostLimits
from resourcesync.cluster.slices import SliceResults
from resourcesync.cluster.transfer import SharedTransfer
from resourcesync.cluster.unit_runner import run_units
from resourcesync.cluster.units import SliceUnit, UnitOptions, WorkerContext
from resourcesync.destination.transfers.commit import TransferPolicy
from resourcesync.ports import Clock, Reporter
from resourcesync.ports.cancellation import CancelToken
from resourcesync.ports.engines import (
    ExecutionEngine,
    HostShare,
    UnitFunction,
    UnitOutcome,
    WorkUnit,
)
from resourcesync.ports.mirror import MirrorStateStore
from resourcesync.settings.network import Network


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's access to Source and store.

    Attributes:
        source: The Source's address.
        store: The address of the store.
        network: Settings for requests to the Source, its secrets included.
    """

    source: str
    store: str
    network: Network


class SharedPull:
    """The workers of one pull.

    Args:
        context: Workers and their exchange.
        report: Receives events.
    """

    def __init__(self, context: WorkerContext, clock: Clock, report: Reporter) -> None:
        self._context = context
        self._clock = clock
        self._report = report

    def transfer(self, policy: TransferPolicy) -> SharedTransfer:
        """Return a transfer by the workers."""
        return SharedTransfer(self._context, policy, self._clock, self._report)

    def with_workers(self, own: Callable[[], tuple[int, int]]) -> Callable[[], tuple[int, int]]:
        """Return the counter of requests sent and bytes received, with those of workers."""
        theirs = self._context.traffic

        def traffic() -> tuple[int, int]:
            requests, received = own()
            return requests + theirs.requests, received + theirs.received

        return traffic


@contextmanager
def open_shared_pull(
    state: MirrorStateStore,
    own: Path,
    site: Site,
    workers: Workers | None,
    cancel: CancelToken,
    report: Reporter,
) -> Iterator[SharedPull]:
    """Yield the workers of a pull; what those of a killed run left is recorded first.

    Args:
        state: The mirror's state; it is locked.
        own: The mirror's own folder.
        site: The workers' access to Source and store, which is locked.
        workers: Runs the units; ``None`` only records what was left.
        cancel: The request to stop, and the clock.
        report: Receives events.

    Raises:
        ConfigurationError: There is no such engine.
        StorageError: The store fails.
    """
    workers = workers or Workers()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=own / "tmp"))
        hands = _LazyEngine(workers, site, cancel, stack, report)
        context = WorkerContext(
            fetch=lambda some: hands.run_units(fetch_slice, some),
            exchange=stores.open_exchange(stores.open_store(site.store), Path(folder)),
            state=state,
            folder=folder,
            site=site,
            slice_rows=workers.slice_rows,
        )
        SliceResults(context, cancel.clock, report).recover()
        yield SharedPull(context, cancel.clock, report)


class _LazyEngine:
    """The engine, opened with the first unit: most pulls have none."""

    def __init__(
        self, workers: Workers, site: Site, cancel: CancelToken, held: ExitStack, report: Reporter
    ) -> None:
        self._report = report
        self._workers = workers
        self._network = site.network
        self._cancel = cancel
        self._held = held
        self._engine: ExecutionEngine | None = None

    def run_units(self, work: UnitFunction, some: Iterable[WorkUnit]) -> Iterator[UnitOutcome]:
        """Run units."""
        if self._engine is None:
            opened = engines.open_engine(self._workers.engine)
            self._engine = self._held.enter_context(opened)
        network = self._network
        manners = HostLimits(
            units=self._workers.units, rate=network.rate, jobs=network.per_host or network.jobs
        )
        return run_units(
            self._engine,
            work,
            some,
            limits=manners,
            cancel=self._cancel,
            tell=self._report_lost_worker,
        )

    def _report_lost_worker(self, message: str) -> None:
        self._report("warning", {"code": "worker-died", "message": message, "evidence": ()})


def fetch_slice(unit: SliceUnit, share: HostShare) -> UnitOutcome:
    """Fetch a slice into the store."""
    with _tools(unit.options, share) as tools:
        return worker.fetch_slice(unit, tools)


@contextmanager
def _tools(terms: UnitOptions, share: HostShare) -> Iterator[worker.WorkerTools]:
    """Open the tools of a unit; partial downloads are in a folder that is removed with it."""
    site: Site = terms.site
    clock = machine.system_clock()
    cancel = CancelToken(clock)
    requested = structs.replace(site.network, rate=share.rate, jobs=share.jobs or site.network.jobs)
    with (
        tempfile.TemporaryDirectory(prefix="resourcesync-unit-") as folder,
        open_staging(Path(folder)) as staging,
        fetching.open_fetcher(
            site.source, partial(fetch_settings, requested), cancel, NoKnownOrigins()
        ) as opened,
    ):
        fetcher = opened.fetcher
        store = stores.open_store(site.store)
        files = Path(folder) / "files"
        files.mkdir()
        yield worker.WorkerTools(
            fetcher=fetcher,
            copies=partial(StoredCopies, store, staging.stage, clock),
            memory=lambda: SqliteMirrorState(":memory:"),
            clock=clock,
            exchange=stores.open_exchange(store, files / "exchange"),
            file=lambda name: str(files / name.replace("/", "-")),
            traffic=opened.traffic,
            wait=lambda: fetcher.stats.wait,
        )
