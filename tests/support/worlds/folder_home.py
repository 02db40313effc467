"""Where a mirror is: a folder on a real disk, and who works for it."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.app import plugins
from resourcesync.app.mirror_home import part_files
from resourcesync.destination.options import Dependencies
from resourcesync.destination.sync_state import SyncState
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.ports import CancelToken
from resourcesync.ports.patches import PatchFormat
from tests.support.in_memory import ManualClock
from tests.support.worlds.network import MemoryFetcher


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    clock: ManualClock
    fetcher: MemoryFetcher  # its way to the Source
    report: Callable[[str, Mapping[str, object]], None]  # what is told of each event


class Workers(Protocol):
    def employed(self, dependencies: Dependencies) -> Dependencies: ...


class FolderHome:
    def __init__(self, folder: Path, workers: Workers | None = None) -> None:
        self.folder = folder
        self.workers = workers
        self.room: int | None = None
        self.patches: Callable[[], Mapping[str, PatchFormat]] = plugins.patch_formats
        self.before: Callable[[Any], Any] = lambda port: port

    @contextmanager
    def dependencies(
        self, surroundings: Surroundings, source: str | None
    ) -> Iterator[Dependencies]:
        with MirrorFolder(self.folder, surroundings.clock) as mirror:
            assert mirror.copies is not None
            assert mirror.state is not None
            fetcher = surroundings.fetcher
            alone = Dependencies(
                folder=str(self.folder),
                source=source,
                fetcher=fetcher,
                copies=self.before(mirror.copies),
                state=self.before(mirror.state),
                clock=surroundings.clock,
                cancel=CancelToken(surroundings.clock),
                report=surroundings.report,
                scratch=mirror.copies.scratch,
                check_folder=mirror.check_marker,
                purge=mirror.copies.purge,
                traffic=lambda: (fetcher.requests, fetcher.received),
                room=lambda: self.room,
                patches=self.patches,
                stored_parts=partial(part_files, self.folder, mirror.copies.scratch),
            )
            yield alone if self.workers is None else self.workers.employed(alone)

    @contextmanager
    def behind(self, before: Callable[[Any], Any]) -> Iterator[None]:
        """Have something stand before its files and its state while the block runs."""
        self.before = before
        try:
            yield
        finally:
            self.before = lambda port: port

    @contextmanager
    def state(self, clock: ManualClock) -> Iterator[SqliteMirrorState]:
        """Open what the mirror remembers, as another program does."""
        with MirrorFolder(self.folder, clock) as mirror:
            assert mirror.state is not None
            yield mirror.state

    def files(self, clock: ManualClock) -> dict[str, bytes]:
        with MirrorFolder(self.folder, clock) as mirror:
            assert mirror.copies is not None
            assert mirror.state is not None
            mapping = SyncState(mirror.state).mapping()
            assert mapping is not None
            owners = {copy.path: copy.uri for copy in mirror.state.copies()}
            return {
                owners.get(path) or mapping.uri(path) or path: (self.folder / path).read_bytes()
                for path in mirror.copies.paths()
            }

    def files_on_disk(self) -> dict[str, bytes]:
        root, found = str(self.folder), {}
        for above, folders, names in os.walk(root):
            if OWN_FOLDER in folders:
                folders.remove(OWN_FOLDER)
            for name in names:
                path = f"{above}/{name}"
                if os.path.isfile(path):
                    with open(path, "rb", buffering=0) as file:
                        found[path[len(root) + 1 :]] = file.readall()
        return found
