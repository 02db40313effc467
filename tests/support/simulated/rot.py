"""A disk that forgets bytes without a trace, and audits that may see it."""

import os
import random
from typing import Any, Final

from resourcesync.destination.sync_state import SyncState
from resourcesync.errors import ResourceSyncError
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World

NAMES: Final = tuple(f"{n}.txt" for n in (*"abcdefgh", "d1/x", "d1/y", "d2/d3/z"))


class Rot:
    """Harm that is done to the files of a mirror, and what is known of it."""

    def __init__(self, world: World[Any]) -> None:
        self._world = world
        self.tampered: set[str] = set()
        self.rotten: set[str] = set()
        self.found: set[str] = set()

    def forget(self, luck: random.Random) -> None:
        uri = BASE + luck.choice(NAMES)
        path = self._world.folder / uri.removeprefix(BASE)
        if uri in self.tampered or path.is_symlink() or not path.is_file():
            return
        stat = path.stat()
        path.write_bytes(bytes(luck.randbytes(stat.st_size)))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        self.tampered.add(uri)
        self.rotten.add(uri)

    def audit(self, luck: random.Random) -> None:
        if not (self._world.folder / ".resourcesync").is_dir() or has_exclusions(self._world):
            return
        try:
            report = self._world.audit(offline=luck.random() < 0.3)
        except ResourceSyncError:
            return
        seen = {finding.uri for finding in report.findings if finding.kind.value == "*"}
        self.found |= self.rotten & seen
        self.tampered -= self.found
        self.rotten -= self.found


def has_exclusions(world: World[Any]) -> bool:
    with world.state() as state:
        filters = SyncState(state).filters
    return filters is not None and bool(filters.exclude)
