"""Mirrors whose copies are a table in a store, synchronized by workers."""

import json
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from resourcesync.adapters.mirror.state import TABLES_NOTE, SqliteMirrorState
from resourcesync.adapters.mirror.tabled_state import TabledState
from resourcesync.adapters.stored_files import StoredExchange
from resourcesync.app import engines
from resourcesync.app.engines import Workers
from resourcesync.app.mirrors import mirror_state, state_backup, stores, work_units
from resourcesync.app.mirrors.stores import Home
from resourcesync.app.mirrors.work_units import Site
from resourcesync.cluster.baseline import SharedBaseline, SharedIncremental
from resourcesync.cluster.politeness import HostLimits
from resourcesync.cluster.slices import SliceQueue
from resourcesync.cluster.unit_runner import run_units
from resourcesync.cluster.units import WorkerContext
from resourcesync.destination.session import SyncSession
from resourcesync.errors import ConfigurationError, Remedy, StateError
from resourcesync.ports import Reporter
from resourcesync.ports.cancellation import CancelToken
from resourcesync.ports.engines import ExecutionEngine, UnitFunction, UnitOutcome, WorkUnit
from resourcesync.ports.stores import Store
from resourcesync.ports.tables import TablePart

COPIES: Final = ".resourcesync/copies/"
"""Manifest of the table's parts in the store, for other readers."""
_LIST: Final = "copies.json"


class TableSyncStrategy:
    """The strategy of a Destination whose copies are a table."""

    def __init__(self, crew: WorkerContext) -> None:
        self._crew = crew

    def with_workers(self, own: Callable[[], tuple[int, int]]) -> Callable[[], tuple[int, int]]:
        """Return the counter of requests sent and bytes received, with those of workers."""
        theirs = self._crew.traffic

        def traffic() -> tuple[int, int]:
            requests, received = own()
            return requests + theirs.requests, received + theirs.received

        return traffic

    def baseline(self, pull: SyncSession) -> SharedBaseline:
        """Return the baseline synchronization of a pull."""
        return SharedBaseline(pull, self._crew)

    def incremental(self, pull: SyncSession, are_others: Callable[[], bool]) -> SharedIncremental:
        """Return the incremental synchronization of a pull."""
        return SharedIncremental(pull, are_others, self._crew)


class TableInStore:
    """The parts of the table, on this machine and in the store.

    Args:
        state: The mirror's state.
        own: The mirror's own folder.
    """

    def __init__(self, state: TabledState, store: Store, own: Path) -> None:
        self._state = state
        self._folder = mirror_state.parts_folder(own)
        self._parts = StoredExchange(store, COPIES, self._folder)
        self._own = own

    def fetch_parts(self) -> None:
        """Fetch the parts that are missing on this machine, such as after a replacement.

        Raises:
            StateError: One is not in the store either.
        """
        for part in self._state.parts:
            file = self._folder / part.name
            if file.is_file() and file.stat().st_size == part.size:
                continue
            if self._parts.receive(part.name) is None:
                raise StateError(
                    f"a part of the mirror's table is missing: {part.name}",
                    evidence=(("rows", f"{part.rows}"), ("kept", "all copies")),
                    hint="restore it in the store, or start over with another folder of state",
                    remedy=Remedy("state-elsewhere"),
                )

    def fold(self) -> None:
        """Merge the last table and later changes into the next one, here and in the store.

        Readers of the old table still find its parts: they are removed with the next merge.
        Parts that the state in the store names stay.
        """
        before = set(self._read_manifest())
        if not self._state.changed_count and self._state.note(TABLES_NOTE) is not None:
            if before != {
                part.name for part in self._state.parts
            }:  # killed before this was recorded
                self._write_manifest(self._state.parts)
            return
        self._state.fold(
            f"{secrets.token_hex(8)}", lambda part, file: self._parts.send(part.name, str(file))
        )
        if self._state.parts or before:
            self._write_manifest(self._state.parts)
        retained = {*self._state.drop_old_parts(before), *state_backup.parts_named(self._state)}
        for name in list(self._parts.names("")):
            if name not in retained | before | {_LIST}:
                self._parts.remove(name)

    def dissolve(self, keep: Callable[[], None]) -> None:
        """Move the copies into the mirror's state, and remove the table, in the store too.

        Args:
            keep: Stores the state in the store: the state there still needs the parts.
        """
        self._state.unfold()
        keep()
        self._state.drop_old_parts()
        for name in list(self._parts.names("")):
            self._parts.remove(name)

    def _read_manifest(self) -> list[str]:
        found = self._parts.receive(_LIST)
        if found is None:
            return []
        file = Path(found)
        try:
            return [str(part["name"]) for part in json.loads(file.read_text("utf-8"))["parts"]]
        except (ValueError, KeyError, TypeError):
            return []
        finally:
            file.unlink(missing_ok=True)

    def _write_manifest(self, parts: Sequence[TablePart]) -> None:
        manifest = {"format": "parquet", "parts": [part._asdict() for part in parts]}
        with tempfile.NamedTemporaryFile(dir=self._own / "tmp", suffix=".json") as file:
            file.write(json.dumps(manifest, ensure_ascii=False, indent=1).encode())
            file.flush()
            self._parts.send(_LIST, file.name)


def check_table(home: Home, state_file: Path) -> None:
    """Check that the copies of a mirror are a table, or can be one.

    Args:
        home: The mirror in a store.
        state_file: Its state, which need not exist.

    Raises:
        ConfigurationError: It is in a folder, or its copies are in its state.
    """
    if not home.store:
        raise ConfigurationError(
            f"{home.folder} is a folder of this machine, which other workers cannot reach",
            hint="name a store: s3://BUCKET/PREFIX, or file:///PATH for a shared folder",
        )
    if state_file.is_file() and not mirror_state.has_copy_table(home.folder):
        raise ConfigurationError(
            f"the copy records of {home.store} are in the mirror's own state, not in a table",
            evidence=(("memory", str(state_file)),),
            hint="make a table of them",
            remedy=Remedy("make-table", target=home.store),
        )


@contextmanager
def open_table_strategy(
    state: SqliteMirrorState,
    own: Path,
    site: Site,
    workers: Workers | None,
    cancel: CancelToken,
    report: Reporter,
) -> Iterator[TableSyncStrategy]:
    """Yield a Destination's strategy; at the end all changes are merged into the table.

    Args:
        state: The mirror's state; it is locked.
        own: The mirror's own folder.
        site: The workers' access to Source and store, which is locked.
        workers: Runs the units; ``None`` for processes of this machine.
        cancel: The request to stop, and the clock.
        report: Receives events.

    Raises:
        ConfigurationError: There is no such engine.
        StateError: A part of the table is missing.
        StorageError: The store fails.
    """
    assert isinstance(state, TabledState), "its copies are a table"
    store, workers = stores.open_store(site.store), workers or Workers()
    table = TableInStore(state, store, own)
    table.fetch_parts()
    table.fold()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=own / "tmp"))
        hands = _LazyEngine(workers, site, cancel, stack, report)
        context = WorkerContext(
            read=lambda some: hands.run_units(work_units.read_list, some),
            fetch=lambda some: hands.run_units(work_units.fetch_slice, some),
            unpack=lambda some: hands.run_units(work_units.unpack_package, some),
            exchange=StoredExchange(store, work_units.EXCHANGE, Path(folder) / "exchange"),
            tables=mirror_state.tables_of(own),
            state=state,
            fold=table.fold,
            folder=lambda: tempfile.mkdtemp(dir=folder),
            site=site,
            slice_rows=workers.slice_rows,
        )
        SliceQueue(context, cancel.clock, report).recover()
        yield TableSyncStrategy(context)
        table.fold()  # after a failure, the next opening merges the changes


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
