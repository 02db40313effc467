"""A whole world in one process: a Source in memory, the way to it, and a mirror on a disk."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast, overload

from resourcesync.destination.audits.explain import Explanation
from resourcesync.destination.audits.reports import AuditFinding, AuditReport
from resourcesync.destination.destination import Destination
from resourcesync.destination.options import Dependencies, PullOptions
from resourcesync.destination.reports import MirrorStatus, RunReport
from resourcesync.destination.sync_state import status_of
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.ports import FetchRequest
from tests.support.in_memory import ManualClock
from tests.support.worlds.folder_home import FolderHome, Surroundings
from tests.support.worlds.network import BASE, Answer, MemoryFetcher, Network
from tests.support.worlds.published_source import PublishedSource


class Source(Protocol):
    """A Source in memory, which writes its lists in some way."""

    @property
    def clock(self) -> ManualClock: ...

    @property
    def entry(self) -> str: ...

    def serve(self, request: FetchRequest) -> Answer | Exception: ...

    def contents(self) -> dict[str, bytes]: ...


SourceT = TypeVar("SourceT", bound=Source)


class World(Generic[SourceT]):
    """A Source and one mirror of it. Tests change the Source and look at the mirror."""

    @overload
    def __init__(self: "World[PublishedSource]", home: FolderHome | Path) -> None: ...

    @overload
    def __init__(
        self,
        home: FolderHome | Path,
        source: SourceT,
        *,
        network: Network | None = None,
        before_pull: Callable[[], object] = lambda: None,
    ) -> None: ...

    def __init__(
        self,
        home: FolderHome | Path,
        source: Any = None,
        *,
        network: Network | None = None,
        before_pull: Callable[[], object] = lambda: None,
    ) -> None:
        self.source: SourceT = source or cast("SourceT", PublishedSource())
        self.home = FolderHome(home) if isinstance(home, Path) else home
        self.network = network or Network()
        self.network.origin = self._serve
        self.fetcher = MemoryFetcher(self.network.serve)
        self.before_pull = before_pull
        self.events: list[tuple[str, Mapping[str, object]]] = []

    @property
    def clock(self) -> ManualClock:
        return self.source.clock

    @property
    def folder(self) -> Path:
        return self.home.folder

    def _serve(self, request: FetchRequest) -> Answer | Exception:
        return self.source.serve(request)

    @contextmanager
    def dependencies(self, source: str | None = BASE) -> Iterator[Dependencies]:
        surroundings = Surroundings(
            clock=self.clock,
            fetcher=self.fetcher,
            report=lambda event, fields: self.events.append((event, fields)),
        )
        with self.home.dependencies(surroundings, source) as dependencies:
            yield dependencies

    @contextmanager
    def destination(self, source: str | None = BASE) -> Iterator[Destination]:
        with self.dependencies(source) as dependencies:
            yield Destination(dependencies)

    @contextmanager
    def state(self) -> Iterator[SqliteMirrorState]:
        with self.home.state(self.clock) as state:
            yield state

    def pull(self, source: str | None = "", **options: Any) -> RunReport:
        """Pull from an address; an empty one is where the Source's lists begin."""
        self.before_pull()
        self.fetcher.asked.clear()
        self.fetcher.requests = self.fetcher.received = 0
        self.events.clear()
        with self.destination(self.source.entry if source == "" else source) as destination:
            return destination.pull(PullOptions(**options))

    def audit(self, **options: Any) -> AuditReport:
        with self.destination() as destination:
            return destination.audit(**options)

    def repair(
        self,
        findings: Iterable[AuditFinding] | None = None,
        *,
        source: str | None = BASE,
        deleting: bool = False,
        **options: Any,
    ) -> RunReport:
        with self.destination(source) as destination:
            return destination.repair(findings, PullOptions(**options), deleting=deleting)

    def why(self, name: str, source: str | None = BASE, *, offline: bool = False) -> Explanation:
        with self.destination(source) as destination:
            return destination.explain([BASE + name], tuple, offline=offline)

    def status(self) -> MirrorStatus:
        with self.state() as state:
            return status_of("mirror", state, running=False)

    def files(self) -> dict[str, bytes]:
        return self.home.files(self.clock)

    def texts(self) -> dict[str, str]:
        return {name.removeprefix(BASE): data.decode() for name, data in self.files().items()}

    def in_sync(self) -> bool:
        return self.files() == self.source.contents()

    def differences(self) -> list[str]:
        here, there = self.files(), self.source.contents()
        return sorted(uri for uri in {*here, *there} if here.get(uri) != there.get(uri))

    def asked(self) -> list[str]:
        return [uri.removeprefix(BASE) for uri in self.fetcher.asked]

    def asked_resources(self) -> list[str]:
        return [
            uri.removeprefix(BASE)
            for uri in self.fetcher.asked
            if "/resourcesync" not in uri and not uri.endswith("/sitemap.xml")
        ]

    def told(self, event: str) -> list[Mapping[str, object]]:
        return [fields for name, fields in self.events if name == event]

    def warned(self) -> list[object]:
        return [fields["code"] for fields in self.told("warning")]


OwnWorld = World[PublishedSource]
