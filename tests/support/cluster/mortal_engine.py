"""An engine of threads that breaks as a pool of processes does, and the units for it."""

import threading
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from typing import NamedTuple

from resourcesync.errors import EngineError
from resourcesync_cluster.ports import HostShare, UnitFunction, UnitOutcome, WorkUnit


class Death(BaseException):
    """What the work of a unit raises to have its worker die."""


class Task(NamedTuple):
    name: str
    does: str = "well"  # `well`, `raises`, `dies`, or `waits`
    host: str = ""


class MortalEngine:
    """Does units in threads; when a unit dies, all that is under way is lost."""

    def __init__(self, slots: int = 2, lives: int = 1_000) -> None:
        self.slots = slots
        self.lives = lives
        self.done: list[str] = []
        self.cancelled = 0
        self._lock = threading.Lock()
        self._broken = False
        self._under_way: set[Future[UnitOutcome]] = set()
        self._threads = ThreadPoolExecutor(slots)

    def submit(self, work: UnitFunction, unit: WorkUnit, share: HostShare) -> "Future[UnitOutcome]":
        future = _Counted(self)
        with self._lock:
            if self._broken:
                raise EngineError("it is broken")
            self._under_way.add(future)
        self._threads.submit(self._do, future, work, unit, share)
        return future

    def _do(
        self, future: "Future[UnitOutcome]", work: UnitFunction, unit: WorkUnit, share: HostShare
    ) -> None:
        if future.done():
            return
        try:
            outcome = work(unit, share)
        except Death:
            with self._lock:
                self._broken = True
                lost, self._under_way = self._under_way, set()
            for other in lost:
                if not other.done():
                    other.set_exception(BrokenExecutor("a worker died"))
            return
        except Exception as error:  # noqa: BLE001 - as a worker tells what its work raised
            self._end(future, error)
            return
        self._end(future, outcome)

    def _end(self, future: "Future[UnitOutcome]", became: UnitOutcome | Exception) -> None:
        with self._lock:
            if future not in self._under_way:
                return
            self._under_way.remove(future)
            if future.done():
                return
            if isinstance(became, UnitOutcome):
                self.done.append(became.name)
                future.set_result(became)
            else:
                future.set_exception(became)

    def restart_workers(self) -> bool:
        self.lives -= 1
        self._broken = False
        return self.lives >= 0

    def close(self) -> None:
        self._threads.shutdown()


class _Counted(Future[UnitOutcome]):
    def __init__(self, engine: MortalEngine) -> None:
        super().__init__()
        self._engine = engine

    def cancel(self) -> bool:
        self._engine.cancelled += 1
        return super().cancel()


def do_task(task: Task, share: HostShare) -> UnitOutcome:
    match task.does:
        case "dies":
            raise Death
        case "raises":
            raise ValueError("no such thing")
        case "waits":
            return UnitOutcome(task.name, wait=100.0)
        case _:
            return UnitOutcome(task.name, rows=1)
