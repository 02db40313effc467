"""What is done to a disk when it fails, or when the power is cut, and what must hold afterwards."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Protocol

from resourcesync.destination.options import PullOptions
from resourcesync.destination.reports import MirrorState, RunReport
from tests.support.crashes.crash_states import State
from tests.support.crashes.power_publishing import Publishing
from tests.support.crashes.power_pulling import Pulling
from tests.support.crashes.power_renaming import Renaming
from tests.support.crashes.renumbered import Numbers


class Scene(Protocol):
    def do(self) -> None:
        """Do it, below the folder that was given."""
        ...

    def set_before(self) -> None:
        """Set the clock to the moment before it was done."""
        ...

    def set_after(self) -> None:
        """Set the clock to the moment after it was done."""
        ...

    def attempt(self, folder: Path, numbers: Numbers) -> bool:
        """Do it in another folder in the place of the one that was given."""
        ...

    def begin_again(self, numbers: Numbers) -> None:
        """Take note of which file was which: the power was cut, and it is done anew."""
        ...

    def seen(self, state: State) -> None:
        """Take note of what everybody could see before the power was cut."""
        ...

    def wrong(self, folder: Path, numbers: Numbers, *, is_done: bool) -> Iterator[str]:
        """Yield what is wrong with a disk after the power cut, and after the next run."""
        ...

    def end(self) -> object:
        """Return what the next run led to, that was looked at last."""
        ...

    def wrong_for_readers(self, end: object) -> Iterator[str]:
        """Yield what is wrong for who had read until now, when the next run leads to this end."""
        ...


class Auditing(Pulling):
    """An audit of a mirror that is in sync: no copy is changed."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        super()._act()
        self._altered.clear()
        self._before = self._world.home.files_on_disk()

    def _act(self) -> bool:
        return self._world.audit().in_sync


class Repairing(Auditing):
    """A repair of a mirror in which somebody wrote to some copies, and threw others away."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        luck = random.Random(f"repair {seed}")
        for path in sorted(self._before):
            what = luck.random()
            if what < 0.3:
                self._alter_one(path, luck)
            elif what < 0.5:
                (self._world.folder / path).unlink()
                self._altered[path] = None
        self._before = self._world.home.files_on_disk()

    def _act(self) -> bool:
        return self._repair().state is MirrorState.IN_SYNC

    def _repair(self) -> RunReport:
        with self._world.destination() as destination:
            return destination.repair(None, PullOptions())

    def _heal(self) -> RunReport:
        self._world.pull()
        return self._repair()


SCENES: Final[dict[str, Callable[[Path, int], Scene]]] = {
    "pull": Pulling,
    "rename": Renaming,
    "publish": Publishing,
    "audit": Auditing,
    "repair": Repairing,
}
