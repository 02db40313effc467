"""The hard life of a mirror whose copies are a table, with workers that die now and then."""

import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from resourcesync.adapters.mirror.mirror_folder import MirrorFolder
from resourcesync.adapters.mirror.state import SqliteMirrorState
from resourcesync.adapters.mirror.tabled_state import TabledState
from resourcesync.app.mirrors.table_mirror import TableSyncStrategy
from resourcesync.cluster import package_worker, worker
from resourcesync.cluster.slices import SliceQueue
from resourcesync.cluster.tables import ParquetTables
from resourcesync.cluster.worker_context import WorkerContext
from resourcesync.destination.options import Dependencies
from resourcesync.ports.cancellation import CancelToken
from resourcesync.ports.engines import UnitOutcome
from tests.support.crashes.killing import Dying, Fuse, Killed
from tests.support.simulated.campaign import Campaign
from tests.support.worlds.loose_source import Style
from tests.support.worlds.world import BASE

_TRIES: Final = 3


class MemoryExchange:
    """An ``Exchange`` whose files outlive a coordinator that is killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.files: dict[str, bytes] = {}

    def send(self, name: str, file: str) -> None:
        self.files[name] = Path(file).read_bytes()

    def receive(self, name: str) -> str | None:
        if name not in self.files:
            return None
        place = Path(tempfile.mkdtemp(dir=self._folder)) / "file"
        place.write_bytes(self.files[name])
        return str(place)

    def names(self, prefix: str) -> Iterator[str]:
        return iter([name for name in self.files if name.startswith(prefix)])

    def remove(self, name: str) -> None:
        self.files.pop(name, None)


class SharedCampaign(Campaign):
    """A Campaign whose mirror has a table, and workers in its own process."""

    def __init__(self, folder: Path, *, style: Style | None, max_entries: int) -> None:
        super().__init__(folder, style=style, max_entries=max_entries)
        self.luck = random.Random(f"{style} {max_entries}")
        self.scratch = Path(tempfile.mkdtemp())
        self.exchange = MemoryExchange(self.scratch)
        self.tables = ParquetTables(self.scratch, threads=1)
        self.folds = 0
        self.brought = 0
        self.lost = 0

    def close(self) -> None:
        shutil.rmtree(self.scratch)

    @contextmanager
    def dependencies(self, source: str | None = BASE) -> Iterator[Dependencies]:
        with MirrorFolder(self.folder, self.clock, self.open_state) as mirror:
            copies, state = mirror.copies, mirror.state
            assert copies is not None and isinstance(state, TabledState)  # noqa: PT018 - two types
            self._fold(state)
            dying = self._dying(copies, state)
            unpack = package_worker.unpack
            crew = WorkerContext(
                read=lambda units: self._do(worker.read_list, units, dying[0], copies.scratch),
                fetch=lambda units: self._do(worker.fetch_slice, units, dying[0], copies.scratch),
                unpack=lambda units: self._do(unpack, units, dying[0], copies.scratch),
                exchange=self.exchange,
                tables=self.tables,
                state=dying[1],
                fold=lambda: self._fold(state),
                folder=lambda: tempfile.mkdtemp(dir=self.scratch),
                site=None,
                slice_rows=3,
            )
            SliceQueue(crew, self.clock, self._tell).recover()
            yield Dependencies(
                folder=str(self.folder),
                source=source,
                fetcher=self.fetcher,
                copies=dying[0],
                state=dying[1],
                clock=self.clock,
                cancel=CancelToken(self.clock),
                report=self._tell,
                scratch=copies.scratch,
                check_folder=mirror.check_marker,
                purge=copies.purge,
                traffic=lambda: (self.fetcher.requests, self.fetcher.received),
                patches=self.patches,
                mappers=self.mappers,
                strategy=TableSyncStrategy(crew),
            )
            if self.luck.random() < 0.8:  # else what was changed stays beside the table
                self._fold(state)

    def _dying(self, copies: Any, state: Any) -> tuple[Any, Any]:
        if self.fuse is None:
            return copies, state
        return Dying(copies, self.fuse), Dying(state, self.fuse)

    def _tell(self, event: str, fields: Any) -> None:
        self.events.append((event, fields))

    def open_state(self, path: Path) -> SqliteMirrorState:
        return TabledState(path, self.tables, self.scratch / "parts")

    def _fold(self, state: TabledState) -> None:
        self.folds += 1
        state.fold(f"{self.folds:04}", lambda _part, _file: None)
        state.drop_old_parts()

    def _do(
        self,
        task: Callable[[Any, worker.WorkerTools], UnitOutcome],
        units: Iterable[Any],
        copies: Any,
        scratch: Callable[[], Any],
    ) -> Iterator[UnitOutcome]:
        """Do units one after the other; a worker may die, and the unit is done again."""
        for unit in units:
            for _ in range(_TRIES):
                fuse = None
                if task is worker.fetch_slice and self.luck.random() < 0.2:
                    fuse = Fuse(self.luck.randrange(2), how=self.luck.randrange(3))
                used = copies if fuse is None else Dying(copies, fuse)
                try:
                    outcome = task(unit, self._tools(used, scratch))
                    self.brought += task is worker.fetch_slice
                    break
                except Killed:
                    if fuse is None or not fuse.is_burnt:
                        raise
                    self.lost += 1
            else:
                outcome = UnitOutcome(unit.name, failed=("engine", "its worker died each time"))
            yield outcome

    def _tools(self, copies: Any, scratch: Callable[[], Any]) -> worker.WorkerTools:
        folder = tempfile.mkdtemp(dir=self.scratch)
        return worker.WorkerTools(
            fetcher=self.fetcher,
            copies=copies,
            memory=lambda: SqliteMirrorState(":memory:"),
            clock=self.clock,
            cancel=CancelToken(self.clock),
            tables=self.tables,
            exchange=self.exchange,
            scratch=scratch,
            file=lambda name: f"{folder}/{name.replace('/', '-')}",
            mappers=self.mappers,
            traffic=lambda: (0, 0),
            wait=lambda: None,
        )
