"""A world whose disk forgets bytes without a trace, and audits that may see it."""

import os
import random
from pathlib import Path
from typing import Final

from resourcesync.destination.sync_state import SyncState
from resourcesync.errors import ResourceSyncError
from tests.support.worlds.world import BASE, World

NAMES: Final = tuple(f"{n}.txt" for n in (*"abcdefgh", "d1/x", "d1/y", "d2/d3/z"))


class Rotting(World):
    """A world that may do harm to the files of its mirror, and remembers which it did."""

    def __init__(self, folder: Path, *, max_entries: int) -> None:
        super().__init__(folder, max_entries=max_entries)
        self.tampered: set[str] = set()
        self.rotten: set[str] = set()
        self.found: set[str] = set()  # rotten, and an audit saw it: a pull has no excuse any more

    def do_rot(self, luck: random.Random) -> None:
        """Change bytes of a file so that neither its size nor its time tells."""
        uri = BASE + luck.choice(NAMES)
        path = self.folder / uri.removeprefix(BASE)
        if uri in self.tampered or path.is_symlink() or not path.is_file():
            return
        stat = path.stat()
        path.write_bytes(bytes(luck.randbytes(stat.st_size)))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        self.tampered.add(uri)
        self.rotten.add(uri)

    def do_audit(self, luck: random.Random) -> None:
        """Let an audit read every byte: what is rotten is in doubt from then on."""
        if not (self.folder / ".resourcesync").is_dir() or self._excluded():
            return
        try:
            with self.destination() as destination:
                report = destination.audit(offline=luck.random() < 0.3)
        except ResourceSyncError:
            return
        seen = {finding.uri for finding in report.findings if finding.kind.value == "*"}
        self.found |= self.rotten & seen
        self.tampered -= self.found
        self.rotten -= self.found

    def _excluded(self) -> bool:
        with self.state() as state:
            filters = SyncState(state).filters
        return filters is not None and bool(filters.exclude)
