"""Faults of a simulated Destination: crashes between two steps, power cuts, a full disk."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, cast

from resourcesync.errors import DiskFullError
from resourcesync_simulator.clock import SimulatedClock
from resourcesync_simulator.scenario import Faults, is_within

if TYPE_CHECKING:
    from resourcesync.mirror_state.database import SqliteMirrorState
    from resourcesync.mirror_state.rows import StateTransaction

OnFault = Callable[[str, str], None]
"""Called for each fault: its name and its object; empty for no single object."""


class Crash(BaseException):
    """A process crashed: only the code that restarts it catches this."""


class FaultInjector:
    """Faults of a Destination while it writes."""

    def __init__(self, faults: Faults, seed: int, clock: SimulatedClock, on_fault: OnFault) -> None:
        self._faults = faults
        self._random = random.Random(f"writing {seed}")  # noqa: S311 - a simulation
        self._clock = clock
        self.on_fault = on_fault
        self.is_healthy = False
        """True if no more faults happen."""
        self._is_dead = False

    def die(self, fault: str, what: str) -> NoReturn:
        """Crash the Destination."""
        self._is_dead = True
        self.on_fault(fault, what)
        raise Crash

    def check_alive(self) -> None:
        """Raise if the process has crashed: what runs while the stack unwinds has no effect."""
        if self._is_dead:
            raise Crash

    def revive(self) -> None:
        """Restart the Destination."""
        self._is_dead = False

    def step(self, what: str) -> None:
        """Pass the point before or after a write."""
        self.check_alive()
        if self._happens(self._faults.crash_writing):
            self.die("crash_writing", what)

    def check_room(self, what: str) -> None:
        """Check the room on the disk."""
        self.check_alive()
        elapsed = self._clock.elapsed
        full = is_within(elapsed, self._faults.disk_full)
        if full and not self.is_healthy:
            self.on_fault("disk_full", what)
            raise DiskFullError("no space is left", evidence=(("place", what),))

    def survivors(self, many: int) -> frozenset[int] | None:
        """Return which of a batch of copies survive a power cut; ``None`` without one."""
        if not self._happens(self._faults.power_cut):
            return None
        return frozenset(number for number in range(many) if self._random.random() < 0.5)  # noqa: PLR2004

    def _happens(self, rate: float) -> bool:
        return rate > 0 and not self.is_healthy and self._random.random() < rate


class CrashingState:
    """A ``SqliteMirrorState`` of a Destination that may crash before and after each commit."""

    def __init__(self, state: "SqliteMirrorState", injector: FaultInjector) -> None:
        self._state = state
        self._injector = injector

    def __getattr__(self, name: str) -> object:
        self._injector.check_alive()
        return getattr(self._state, name)

    def commit(self, step: "StateTransaction") -> None:
        """Store a step."""
        self._injector.check_room("memory")
        self._injector.step("memory")
        self._state.commit(step)
        self._injector.step("memory")


def with_crashes(state: "SqliteMirrorState", injector: FaultInjector) -> "SqliteMirrorState":
    """Return a state whose owner may crash."""
    return cast("SqliteMirrorState", CrashingState(state, injector))
