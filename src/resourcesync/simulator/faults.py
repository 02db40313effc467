"""A simulated Destination that dies between two steps, has its power cut, or its disk full."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, cast

from resourcesync.errors import DiskFullError
from resourcesync.simulator.clock import SimulatedClock
from resourcesync.simulator.scenario import Faults, is_within

if TYPE_CHECKING:
    from resourcesync.ports.mirror import MirrorStateStore, StateTransaction

OnFault = Callable[[str, str], None]
"""Told of each fault: which one, and what it befalls; empty for no single thing."""


class Crash(BaseException):
    """Somebody died: nothing catches it but who begins it anew."""


class FaultInjector:
    """What befalls a Destination while it writes.

    Args:
        faults: What goes wrong.
        seed: Of all that is left to chance.
        clock: Time.
        on_fault: Told of each fault.
    """

    def __init__(self, faults: Faults, seed: int, clock: SimulatedClock, on_fault: OnFault) -> None:
        self._faults = faults
        self._random = random.Random(f"writing {seed}")  # noqa: S311 - a simulation
        self._clock = clock
        self.on_fault = on_fault
        self.is_healthy = False
        """True if nothing goes wrong any more."""
        self._is_dead = False

    def die(self, fault: str, what: str) -> NoReturn:
        """Let the Destination die.

        Args:
            fault: Of what.
            what: It befalls this.

        Raises:
            Crash: Always.
        """
        self._is_dead = True
        self.on_fault(fault, what)
        raise Crash

    def check_alive(self) -> None:
        """See that who acts is not dead: what is done on the way up would never be done.

        Raises:
            Crash: It is dead.
        """
        if self._is_dead:
            raise Crash

    def revive(self) -> None:
        """Let the Destination be alive again."""
        self._is_dead = False

    def step(self, what: str) -> None:
        """Come to the moment before or after something is written.

        Args:
            what: It, for who is told.

        Raises:
            Crash: The Destination dies here.
        """
        self.check_alive()
        if self._happens(self._faults.crash_writing):
            self.die("crash_writing", what)

    def check_room(self, what: str) -> None:
        """See that there is room for more.

        Args:
            what: What is to be written.

        Raises:
            DiskFullError: There is none.
            Crash: The Destination is dead.
        """
        self.check_alive()
        elapsed = self._clock.elapsed
        full = is_within(elapsed, self._faults.disk_full)
        if full and not self.is_healthy:
            self.on_fault("disk_full", what)
            raise DiskFullError("no space is left", evidence=(("place", what),))

    def survivors(self, many: int) -> frozenset[int] | None:
        """Return which of so many copies are in place if the power is cut; ``None`` if it is not.

        Args:
            many: How many are put in place together.
        """
        if not self._happens(self._faults.power_cut):
            return None
        return frozenset(number for number in range(many) if self._random.random() < 0.5)  # noqa: PLR2004

    def _happens(self, rate: float) -> bool:
        return rate > 0 and not self.is_healthy and self._random.random() < rate


class CrashingState:
    """A ``MirrorStateStore`` of a Destination that may die before and after each step is stored.

    Args:
        state: Stores them.
        fate: What befalls it.
    """

    def __init__(self, state: "MirrorStateStore", fate: FaultInjector) -> None:
        self._state = state
        self._injector = fate

    def __getattr__(self, name: str) -> object:
        self._injector.check_alive()
        return getattr(self._state, name)

    def commit(self, step: "StateTransaction") -> None:
        """Store a step.

        Raises:
            Crash: The Destination dies before or after it.
            DiskFullError: There is no room for it; nothing of it is stored.
        """
        self._injector.check_room("memory")
        self._injector.step("memory")
        self._state.commit(step)
        self._injector.step("memory")


def with_crashes(state: "MirrorStateStore", fate: FaultInjector) -> "MirrorStateStore":
    """Return a memory whose owner may die."""
    return cast("MirrorStateStore", CrashingState(state, fate))
