"""A whole world in one process: our real publisher in memory, our real Destination on a disk."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from resourcesync.adapters.in_memory import (
    ManualClock,
    MemoryCatalogue,
    MemoryDocuments,
    MemoryOriginals,
)
from resourcesync.adapters.mirror.copies import OWN_FOLDER
from resourcesync.adapters.mirror.mirror_folder import MirrorFolder
from resourcesync.app import plugins
from resourcesync.destination.audits.reports import AuditReport
from resourcesync.destination.destination import Destination
from resourcesync.destination.mapping.tree import MapperFactory
from resourcesync.destination.options import Dependencies, PullOptions
from resourcesync.destination.reports import RunReport
from resourcesync.destination.sync_state import SyncState
from resourcesync.ports import FetchRequest
from resourcesync.ports.cancellation import CancelToken
from resourcesync.ports.mirror import MirrorStateStore
from resourcesync.source.paging import PageLimits
from resourcesync.source.plan import Policy, PublicationStep
from resourcesync.source.publisher import ListPublisher, Publication
from resourcesync.source.scan import scan
from tests.support.worlds.memory_fetcher import Answer, MemoryFetcher

BASE = "http://source.example/"


class World:
    """A Source and one mirror of it. Tests change the Source and look at the mirror."""

    def __init__(self, folder: Path, *, max_entries: int = 50_000) -> None:
        self.clock = ManualClock()
        self.originals = MemoryOriginals(self.clock)
        self.catalogue = MemoryCatalogue()
        self.documents = MemoryDocuments()
        self.limits = PageLimits(max_entries=max_entries)
        self.policy = Policy()
        self.folder = folder
        self.room: int | None = None
        self.patches = plugins.patch_formats()
        self.mappers: Callable[[str], MapperFactory] = plugins.mapper
        self.before: Callable[[Any], Any] = lambda port: port  # stands before files and state
        self.events: list[tuple[str, Mapping[str, object]]] = []
        self.answers: dict[
            str, Answer | Exception | Callable[[FetchRequest], Answer | Exception]
        ] = {}
        self.fetcher = MemoryFetcher(self.serve)

    # --- the Source ---

    def put(self, name: str, content: bytes | str) -> None:
        data = content.encode() if isinstance(content, str) else content
        self.originals.put(BASE + name, data)

    def remove(self, name: str) -> None:
        self.originals.remove(BASE + name)

    def publish(
        self, step: PublicationStep = PublicationStep.DUE, *, after: float = 60
    ) -> Publication:
        self.clock.advance(seconds=after)
        scan(self.originals, self.catalogue, self.clock.now())
        return ListPublisher(
            self.catalogue,
            self.documents,
            base_uri=BASE,
            clock=self.clock,
            limits=self.limits,
            policy=self.policy,
        ).publish(step)

    def serve(self, request: FetchRequest) -> Answer | Exception:
        override = self.answers.get(request.uri)
        if callable(override):
            return override(request)
        if override is not None:
            return override
        return self.honest(request.uri)

    def honest(self, uri: str) -> Answer:
        document = self.documents.open(uri.removeprefix(BASE))
        if document is not None:
            return Answer(body=document.read(), headers={"content-type": "application/xml"})
        original = self.originals.open(uri)
        return Answer(status=404) if original is None else Answer(body=original.read())

    # --- the mirror ---

    @contextmanager
    def dependencies(self, source: str | None = BASE) -> Iterator[Dependencies]:
        with MirrorFolder(self.folder, self.clock) as mirror:
            assert mirror.copies is not None
            assert mirror.state is not None
            yield Dependencies(
                folder=str(self.folder),
                source=source,
                fetcher=self.fetcher,
                copies=self.before(mirror.copies),
                state=self.before(mirror.state),
                clock=self.clock,
                cancel=CancelToken(self.clock),
                report=lambda event, fields: self.events.append((event, fields)),
                scratch=mirror.copies.scratch,
                check_folder=mirror.check_marker,
                purge=mirror.copies.purge,
                traffic=lambda: (self.fetcher.requests, self.fetcher.received),
                room=lambda: self.room,
                patches=self.patches,
                mappers=self.mappers,
            )

    @contextmanager
    def destination(self, source: str | None = BASE) -> Iterator[Destination]:
        with self.dependencies(source) as dependencies:
            yield Destination(dependencies)

    @contextmanager
    def state(self) -> Iterator[MirrorStateStore]:
        """Open what the mirror remembers, as another program does."""
        with MirrorFolder(self.folder, self.clock) as mirror:
            assert mirror.state is not None
            yield mirror.state

    def pull(self, source: str | None = BASE, **options: Any) -> RunReport:
        self.fetcher.asked.clear()
        self.fetcher.requests = self.fetcher.received = 0
        self.events.clear()
        with self.destination(source) as destination:
            return destination.pull(PullOptions(**options))

    def audit(self, **options: Any) -> AuditReport:
        with self.destination() as destination:
            return destination.audit(**options)

    def files(self) -> dict[str, bytes]:
        """What the mirror holds, by URI, as the files on the disk tell."""
        with MirrorFolder(self.folder, self.clock) as mirror:
            assert mirror.copies is not None
            assert mirror.state is not None
            mapping = SyncState(mirror.state).mapping(self.mappers)
            assert mapping is not None
            owners = {copy.path: copy.uri for copy in mirror.state.copies()}
            return {  # a mirror with a table has its copies elsewhere
                owners.get(path) or mapping.uri(path) or path: (self.folder / path).read_bytes()
                for path in mirror.copies.paths()
            }

    def files_on_disk(self) -> dict[str, bytes]:
        """The mirror's files by path, its own folder left out."""
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

    def in_sync(self) -> bool:
        return self.files() == self.originals.contents()

    def asked_resources(self) -> list[str]:
        """The resources, documents left out, that were asked for since the last pull began."""
        return [
            uri.removeprefix(BASE)
            for uri in self.fetcher.asked
            if "/resourcesync" not in uri and not uri.endswith("/sitemap.xml")
        ]

    def told(self, event: str) -> list[Mapping[str, object]]:
        return [fields for name, fields in self.events if name == event]
