"""Workers in one process, for a mirror whose copies are a table; some die now and then."""

import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

from msgspec import structs

from resourcesync.adapters.mirror.state import SqliteMirrorState
from resourcesync.adapters.mirror.tabled_state import TabledState
from resourcesync.app.mirrors.table_mirror import TableSyncStrategy
from resourcesync.cluster import package_worker, worker
from resourcesync.cluster.slices import SliceQueue
from resourcesync.cluster.tables import ParquetTables
from resourcesync.cluster.units import WorkerContext
from resourcesync.destination.options import Dependencies
from resourcesync.ports import Clock
from resourcesync.ports.cancellation import CancelToken
from resourcesync.ports.engines import UnitOutcome
from tests.support.crashes.killing import Dying, Fuse, Killed

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


class Steady(random.Random):
    """No worker dies, and what was done is folded into the table."""

    def random(self) -> float:
        return 0.5


class Skewed:
    """A clock that is ahead of another one."""

    def __init__(self, clock: Clock, ahead: timedelta) -> None:
        self._clock = clock
        self._ahead = ahead

    def now(self) -> datetime:
        return self._clock.now() + self._ahead

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)


class TableWorkers:
    """Workers in this process, for a mirror whose copies are a table; some die now and then.

    Args:
        luck: Whether workers die, and whether what was done is folded into the table.

    Attributes:
        scratch: A folder of theirs.
        exchange: What they hand to each other.
        tables: How they write tables.
        brought: How many units of fetching were done.
        lost: How many workers died.
        skew: How far the clocks of workers are ahead.
    """

    def __init__(self, luck: random.Random) -> None:
        self._luck = luck
        self.brought = 0
        self.lost = 0
        self.skew = timedelta()
        self.scratch = Path(tempfile.mkdtemp())
        self.exchange = MemoryExchange(self.scratch)
        self.tables = ParquetTables(self.scratch, threads=1)
        self._folds = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove what they left."""
        shutil.rmtree(self.scratch)

    def open_state(self, path: Path) -> SqliteMirrorState:
        """Open the state of the mirror, with its table."""
        return TabledState(path, self.tables, self.scratch / "parts")

    @contextmanager
    def employed(self, dependencies: Dependencies, state: object) -> Iterator[Dependencies]:
        """Add the workers; ``state`` is that of the disk, whatever stands before it."""
        assert isinstance(state, TabledState)
        before: Any = dependencies.state
        self._fold(state)
        crew = WorkerContext(
            read=lambda units: self._do(worker.read_list, units, dependencies),
            fetch=lambda units: self._do(worker.fetch_slice, units, dependencies),
            unpack=lambda units: self._do(package_worker.unpack, units, dependencies),
            exchange=self.exchange,
            tables=self.tables,
            state=before,
            fold=lambda: self._fold(state),
            folder=lambda: tempfile.mkdtemp(dir=self.scratch),
            site=None,
            slice_rows=3,
        )
        SliceQueue(crew, dependencies.clock, dependencies.report).recover()
        yield structs.replace(dependencies, strategy=TableSyncStrategy(crew))
        if self._luck.random() < 0.8:  # else what was changed stays beside the table
            self._fold(state)

    def _fold(self, state: TabledState) -> None:
        self._folds += 1
        state.fold(f"{self._folds:04}", lambda _part, _file: None)
        state.drop_old_parts()

    def _do(
        self,
        task: Callable[[Any, worker.WorkerTools], UnitOutcome],
        units: Iterable[Any],
        dependencies: Dependencies,
    ) -> Iterator[UnitOutcome]:
        """Do units one after the other; a worker may die, and the unit is done again."""
        for unit in units:
            for _ in range(_TRIES):
                fuse = None
                if task is worker.fetch_slice and self._luck.random() < 0.2:
                    fuse = Fuse(self._luck.randrange(2), how=self._luck.randrange(3))
                copies: Any = dependencies.copies
                used = copies if fuse is None else Dying(copies, fuse)
                try:
                    outcome = task(unit, self._tools(used, dependencies))
                    self.brought += task is worker.fetch_slice
                    break
                except Killed:
                    if fuse is None or not fuse.is_burnt:
                        raise
                    self.lost += 1
            else:
                outcome = UnitOutcome(unit.name, failed=("engine", "its worker died each time"))
            yield outcome

    def _tools(self, copies: Any, dependencies: Dependencies) -> worker.WorkerTools:
        folder = tempfile.mkdtemp(dir=self.scratch)
        return worker.WorkerTools(
            fetcher=dependencies.fetcher,
            copies=lambda _confirm: copies,
            memory=lambda: SqliteMirrorState(":memory:"),
            clock=Skewed(dependencies.clock, self.skew),
            cancel=CancelToken(dependencies.clock),
            tables=self.tables,
            exchange=self.exchange,
            scratch=dependencies.scratch,
            file=lambda name: f"{folder}/{name.replace('/', '-')}",
            mappers=dependencies.mappers,
            traffic=lambda: (0, 0),
            wait=lambda: None,
        )
