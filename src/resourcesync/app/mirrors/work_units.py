"""Entry points of workers: each opens what its unit needs, and runs it."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec
from msgspec import structs

from resourcesync.adapters.http import CurlFetcher
from resourcesync.adapters.http.robots import NoKnownRules
from resourcesync.adapters.mirror.staging import open_staging
from resourcesync.adapters.mirror.state import SqliteMirrorState
from resourcesync.adapters.stored_copies import StoredCopies
from resourcesync.adapters.stored_files import StoredExchange
from resourcesync.app import machine, plugins, transports
from resourcesync.app.mirrors import mirror_state, stores
from resourcesync.app.options import fetch_settings
from resourcesync.cluster import package_worker, worker
from resourcesync.cluster.units import ListDocumentUnit, PackageUnit, SliceUnit, UnitOptions
from resourcesync.ports.cancellation import CancelToken
from resourcesync.ports.engines import HostShare, UnitOutcome
from resourcesync.settings.network import Network

EXCHANGE = ".resourcesync/units/"
"""Folder of units and outcomes in the store."""


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


def read_list(unit: ListDocumentUnit, share: HostShare) -> UnitOutcome:
    """Read a list into a file of rows."""
    with _tools(unit.options, share) as tools:
        return worker.read_list(unit, tools)


def fetch_slice(unit: SliceUnit, share: HostShare) -> UnitOutcome:
    """Fetch a slice into the store."""
    with _tools(unit.options, share) as tools:
        return worker.fetch_slice(unit, tools)


def unpack_package(unit: PackageUnit, share: HostShare) -> UnitOutcome:
    """Unpack the requested resources from a package of a dump."""
    with _tools(unit.options, share) as tools:
        return package_worker.unpack(unit, tools)


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
        transports.open_fetcher(
            site.source, partial(fetch_settings, requested), cancel, NoKnownRules()
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
            cancel=cancel,
            tables=mirror_state.tables_of(Path(folder)),
            exchange=StoredExchange(store, EXCHANGE, files / "exchange"),
            scratch=staging.scratch,
            file=lambda name: str(files / name.replace("/", "-")),
            mappers=plugins.mapper,
            traffic=opened.traffic,
            wait=lambda: fetcher.stats.wait if isinstance(fetcher, CurlFetcher) else None,
        )
