"""Workers in one process, who fetch for a mirror; some die now and then."""

import random
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

from msgspec import structs

from resourcesync.adapters.mirror.state import SqliteMirrorState
from resourcesync.cluster import worker
from resourcesync.cluster.slices import SliceResults
from resourcesync.cluster.transfer import SharedTransfer
from resourcesync.cluster.units import SliceUnit, WorkerContext
from resourcesync.destination.options import Dependencies
from resourcesync.ports import Clock
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
    """No worker dies."""

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


class SharedWorkers:
    """Workers in this process; some die now and then.

    Args:
        luck: Whether workers die.

    Attributes:
        scratch: A folder of theirs.
        exchange: What they hand to each other.
        brought: How many units were done.
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove what they left."""
        shutil.rmtree(self.scratch)

    def employed(self, dependencies: Dependencies) -> Dependencies:
        """Add the workers."""
        context = WorkerContext(
            fetch=lambda units: self._do(units, dependencies),
            exchange=self.exchange,
            state=dependencies.state,
            folder=tempfile.mkdtemp(dir=self.scratch),
            site=None,
            slice_rows=3,
        )
        clock, report = dependencies.clock, dependencies.report
        SliceResults(context, clock, report).recover()
        return structs.replace(
            dependencies, workers=lambda policy: SharedTransfer(context, policy, clock, report)
        )

    def _do(self, units: Iterable[SliceUnit], dependencies: Dependencies) -> Iterator[UnitOutcome]:
        """Do units one after the other; a worker may die, and the unit is done again."""
        for unit in units:
            for _ in range(_TRIES):
                fuse = None
                if self._luck.random() < 0.2:
                    fuse = Fuse(self._luck.randrange(2), how=self._luck.randrange(3))
                copies: Any = dependencies.copies
                used = copies if fuse is None else Dying(copies, fuse)
                try:
                    outcome = worker.fetch_slice(unit, self._tools(used, dependencies))
                    self.brought += 1
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
            exchange=self.exchange,
            file=lambda name: f"{folder}/{name.replace('/', '-')}",
            traffic=lambda: (0, 0),
            wait=lambda: None,
        )
