"""Workers in one process, who fetch for a mirror; some die now and then."""

import random
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from resourcesync.adapters.mirror.staging import open_staging
from resourcesync.adapters.mirror.syncing import FileSyncer
from resourcesync.destination.options import Dependencies
from resourcesync.errors import StorageError
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.ports import StagedCopy
from resourcesync_cluster import worker
from resourcesync_cluster.fetcher import WorkerFetcher
from resourcesync_cluster.ports import StagingArea, UnitOutcome
from resourcesync_cluster.units import FetchUnit
from resourcesync_cluster.worker_fetching import FolderStagingArea
from tests.support.crashes.killing import Fuse, Killed

_TRIES: Final = 3


class Steady(random.Random):
    def random(self) -> float:
        return 0.5


class DyingArea:
    """Stands before a staging area; the worker dies before, within or after handing over."""

    def __init__(self, real: StagingArea, fuse: Fuse) -> None:
        self._real = real
        self._fuse = fuse

    def stage(self, algorithms: Sequence[str]) -> StagedCopy:
        return self._real.stage(algorithms)

    def hand_over(
        self, batch: Sequence[tuple[StagedCopy, Mapping[str, str]]]
    ) -> list[str | StorageError]:
        places: list[str | StorageError] = self._fuse.burn(self._real.hand_over, batch)
        return places


class SharedWorkers:
    def __init__(self, luck: random.Random) -> None:
        self._luck = luck
        self.brought = 0
        self.lost = 0
        self.ahead = 1
        self.arriving: Callable[[], None] = lambda: None

    def employed(self, dependencies: Dependencies) -> Dependencies:
        fetcher = WorkerFetcher(lambda units: self._do(units, dependencies), None, rows=3)
        return structs.replace(dependencies, workers=fetcher)

    def _do(
        self, units: Iterable[FetchUnit], dependencies: Dependencies
    ) -> Generator[UnitOutcome, None, None]:
        """Do units; the outcome of the first arrives when some more are done."""
        waiting = []
        for unit in units:
            waiting.append(self._do_one(unit, dependencies))
            if len(waiting) >= self.ahead:
                self.arriving()
                yield waiting.pop(0)
        yield from waiting

    def _do_one(self, unit: FetchUnit, dependencies: Dependencies) -> UnitOutcome:
        """Do a unit; a worker may die, and the unit is done again."""
        for _ in range(_TRIES):
            fuse = None
            if self._luck.random() < 0.2:
                fuse = Fuse(0, how=self._luck.randrange(3))
            try:
                outcome = self._attempt(unit, dependencies, fuse)
            except Killed:
                if fuse is None or not fuse.is_burnt:
                    raise
                self.lost += 1
                left = _temporary(dependencies) / f"left-{self.lost}"
                left.write_bytes(b"half of it")
            else:
                self.brought += 1
                return outcome
        return UnitOutcome(unit.name, failed=("engine", "its worker died each time"))

    def _attempt(
        self, unit: FetchUnit, dependencies: Dependencies, fuse: Fuse | None
    ) -> UnitOutcome:
        with (
            open_staging(_temporary(dependencies)) as staging,
            closing(FileSyncer(lambda: 0.0)) as syncer,
        ):
            area: Any = FolderStagingArea(staging, syncer)
            tools = worker.WorkerTools(
                fetcher=dependencies.fetcher,
                area=area if fuse is None else DyingArea(area, fuse),
                traffic=lambda: (0, 0),
                wait=lambda: None,
            )
            return worker.fetch_unit(unit, tools)


def _temporary(dependencies: Dependencies) -> Path:
    return Path(dependencies.folder) / OWN_FOLDER / "tmp"
