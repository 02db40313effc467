"""What is done to a disk when it fails, or when the power is cut, and what must hold afterwards."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

from resourcesync.destination.options import PullOptions
from resourcesync.destination.reports import MirrorState, RunReport
from tests.support.crashes.power_publishing import Publishing
from tests.support.crashes.power_pulling import Pulling
from tests.support.crashes.power_renaming import Renaming

Scene = Pulling | Publishing


class Auditing(Pulling):
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
