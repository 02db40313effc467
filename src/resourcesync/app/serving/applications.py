"""Applications that serve a published tree: its files, former versions, changes and metrics."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Generic, TypeVar, final

import msgspec
from msgspec.structs import replace
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from resourcesync import __version__
from resourcesync.adapters.files.names_and_uris import media_type, to_segment
from resourcesync.app import document_stores, source_status
from resourcesync.app.serving import hubs, published_tree
from resourcesync.catalogue.reader import CatalogueReader
from resourcesync.destination.reports import report_fields
from resourcesync.documents import reader
from resourcesync.errors import ConfigurationError, ResourceSyncError, StorageError, quoted
from resourcesync.model.entries import CapabilityEntry, Part
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import Clock
from resourcesync.server.access_log import AccessLog
from resourcesync.server.admin import MetricsSource, OperationsApplication
from resourcesync.server.app import Application, LinksOf, ServedSource
from resourcesync.server.connection_limits import ConnectionLimits
from resourcesync.server.dashboard.views import DocumentFile, SourceView
from resourcesync.server.files import FileState, ServedFolder
from resourcesync.server.mementos import MementoApplication
from resourcesync.server.metrics import Metric, RequestTally, gauge, report_figures
from resourcesync.server.uvicorn_server import ServerThread, serve_forever
from resourcesync.server.websub import HubApplication
from resourcesync.source.naming import (
    CAPABILITY_LIST,
    DESCRIPTION,
    FOLDER,
    SourceNaming,
    is_sitemap,
)
from resourcesync.source.publication_settings import CATALOGUE
from resourcesync.source.versions.versions_and_patches import VERSIONS_FOLDER, VersionNames

__all__ = ["AccessLog", "ConnectionLimits", "ServerThread", "serve_forever"]

T = TypeVar("T")
MOUNT: Final = f"/{FOLDER}{VERSIONS_FOLDER}".rstrip("/")
"""Path of the application of versions, in that of the tree."""
_NON_RESOURCES: Final = (FOLDER, ".well-known/")


def _is_resource(path: str) -> bool:
    is_own = path.startswith(_NON_RESOURCES) or path == document_stores.ROBOTS_FILE
    return not is_own and not is_sitemap(path)


def _uri_of(names: SourceNaming, path: str) -> str:
    return names.base_uri + "/".join(map(to_segment, path.split("/")))


_CAPABILITY_LIST_NAME: Final = "capabilitylist.xml"
_MOST_DOCUMENTS: Final = 500
_MOST_SUBSCRIBERS: Final = 50


@final
class ServedStatus:
    """The state of a tree's documents and catalogue, read again at each call."""

    def __init__(self, tree: "PublishedTree") -> None:
        self._tree, self._documents = tree, tree.out / FOLDER

    def check(self) -> None:
        """Check that the tree can be served."""
        path = self._documents / _CAPABILITY_LIST_NAME
        try:
            with path.open("rb") as stream:
                for _ in reader.read(stream, uri=str(path)).entries():
                    pass
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror}") from error
        self._status()

    def _status(self) -> source_status.SourceStatus | None:
        path, name = self._tree.present_catalogue(), self._tree.root.absolute().name
        return None if path is None else source_status.read_status(name, path)

    def view(self, now: datetime, hub: HubApplication | None) -> SourceView:
        """Return the Source as its operators see it."""
        status = self._status()
        subscribers = None if hub is None else tuple(hub.store.list_subscribers(_MOST_SUBSCRIBERS))
        return SourceView(
            now=now,
            address=self._tree.base,
            documents=self._files(),
            resources=None if status is None else status.resources,
            changes=None if status is None else status.changes,
            subscribers=subscribers,
            subscribed=0 if hub is None else hub.store.count_subscriptions(),
        )

    def figures(self) -> Iterator[Metric]:
        """Yield the metrics of the Source, while it can be served."""
        self.check()
        yield gauge(
            "build_info",
            "Version of this program, and the running command.",
            {(("version", __version__), ("command", "serve")): 1},
        )
        if status := self._status():
            yield from report_figures(
                "source", source_status.SourceState, [(status.state, report_fields(status))]
            )

    def _files(self) -> tuple[DocumentFile, ...]:
        try:
            with os.scandir(self._documents) as entries:
                found = [(entry.name, entry.stat()) for entry in entries if entry.is_file()]
        except OSError as error:
            raise StorageError(f"cannot read {self._documents}: {error.strerror}") from error
        found.sort(key=lambda item: (-item[1].st_mtime, item[0]))
        return tuple(
            DocumentFile(
                name=name, size=info.st_size, written=datetime.fromtimestamp(info.st_mtime, UTC)
            )
            for name, info in found[:_MOST_DOCUMENTS]
        )


class PublishedTree(msgspec.Struct, frozen=True, kw_only=True):
    """A published tree, the folder of its documents, and the address of its Capability List.

    ``address`` is that of the tree, if its documents need not be below it: in a set of a site.
    """

    root: Path
    out: Path
    capability_list: str
    address: str = ""
    catalogue: Path | None = None

    @property
    def base(self) -> str:
        """The address that the tree was published for."""
        return self.address or self.capability_list.removesuffix(CAPABILITY_LIST)

    @property
    def _own_catalogue(self) -> Path:
        return self.catalogue or self.root / CATALOGUE

    def _current(self) -> "CurrentPublication[PublishedTree]":
        head = CAPABILITY_LIST if self.address else DESCRIPTION
        return CurrentPublication(self, self.out / head, PublishedTree._read_again)

    def _read_again(self) -> "PublishedTree":
        if self.catalogue is not None:
            return replace(self)  # its site has the same address
        return find_tree(self.root, self.out)

    def application(
        self, clock: Clock, *, hub: HubApplication | None = None, links: LinksOf = lambda _: ()
    ) -> "CurrentApplication":
        """Return the application that serves it."""
        tally = RequestTally()

        def build(tree: PublishedTree) -> ASGIApp:
            mounts: dict[str, ASGIApp] = {} if hub is None else {hub.path: hub}
            if published_tree.published_settings(tree._own_catalogue).versions:
                mounts[MOUNT] = tree._mementos()
            return Application(
                tree.source(),
                clock=clock,
                mounts=mounts,
                links=tree.links(links),
                count=tally.count,
            )

        return CurrentApplication(self._current(), build, tally.metrics)

    def _mementos(self) -> ASGIApp:
        catalogue, names = self._own_catalogue, SourceNaming(base_uri=self.base)
        settings = published_tree.published_settings(catalogue)
        root = self.root if settings.versions_in else catalogue.parent.parent
        return MementoApplication(
            index=CatalogueReader(catalogue),
            contents=ServedFolder(settings.versions_folder(root)),
            names=VersionNames(naming=names),
            uri_of=lambda path: _uri_of(names, path),
            is_published=published_tree.published_files(self.root, catalogue),
        )

    def links(self, links: LinksOf = lambda _: ()) -> LinksOf:
        """Return the function for ``Link`` fields: of hubs and TimeGates, and these."""
        known = published_tree.any_settings(self.present_catalogue() or self._own_catalogue)
        channels = hubs.channel_links(known.hubs, hubs.names_at(known, self.base))
        naming, is_published = SourceNaming(base_uri=self.base), None
        if published_tree.published_settings(self._own_catalogue).versions:
            is_published = published_tree.published_files(self.root, self._own_catalogue)

        def every(path: str) -> Sequence[str]:
            fields = (*channels(path), *links(path))
            if is_published is None or not (_is_resource(path) and is_published(path)):
                return fields
            gate = VersionNames(naming=naming).timegate(_uri_of(naming, path))
            return (*fields, f'<{gate}>; rel="timegate"')

        return every

    def source(self) -> ServedSource:
        """Return what the application serves, with the digests and links of its entries."""
        root, catalogue, copies = self.root, self.present_catalogue(), None
        if published_tree.is_aggregated(root):
            copies = published_tree.PublishedCopies(root)
        file_at = copies.file_at if copies is not None and copies.base else None
        return ServedSource(
            root=root,
            capability_list_uri=self.capability_list,
            media_type=media_type,
            documents=self.out / FOLDER,
            well_known=self.out / DESCRIPTION,
            is_published=(lambda _: False)  # a published path follows no symbolic link
            if file_at
            else published_tree.published_files(root, self._own_catalogue),
            file_at=file_at,
            find_entry=None
            if catalogue is None
            else published_tree.published_entries(root, self.base, catalogue),
        )

    def operations(self, *counts: MetricsSource) -> OperationsApplication:
        """Return the application for the operators of the server."""
        status = ServedStatus(self)
        return OperationsApplication(look=status.check, counts=(status.figures, *counts))

    def board(self, clock: Clock, hub: HubApplication | None, *counts: MetricsSource) -> ASGIApp:
        """Return the page for the operators, with the application for them."""
        from resourcesync.server.dashboard.app import source_pages  # noqa: PLC0415 - few have it

        def build(tree: PublishedTree) -> ASGIApp:
            status = ServedStatus(tree)
            return source_pages(
                lambda: status.view(clock.now(), hub), clock.now, tree.operations(*counts)
            )

        return CurrentApplication(self._current(), build)

    def own_hub(self, clock: Clock, *, private: bool = False) -> HubApplication:
        """Open the hub of the tree; see ``open_own_hub``."""
        current = self._current()
        return hubs.open_own_hub(self.root, lambda: current.find().base, clock, private=private)

    def present_catalogue(self) -> Path | None:
        """Return its catalogue, which another program may have made elsewhere."""
        paths = (self._own_catalogue, self.out / CATALOGUE)
        return next((path for path in paths if path.exists()), None)


@final
class CurrentPublication(Generic[T]):
    """A tree or a site as it was published last: its address may change while it is served.

    It is read again once the file that names its address was replaced; while that fails, it is the
    one before.
    """

    def __init__(self, found: T, head: Path, read_again: Callable[[T], T]) -> None:
        self._found, self._read_again = found, read_again
        self._head = str(head)  # each request asks it
        self._seen = FileState.at(self._head)

    def find(self) -> T:
        """Return it."""
        seen = FileState.at(self._head)
        if seen != self._seen:
            self._seen = seen
            with contextlib.suppress(ResourceSyncError):
                self._found = self._read_again(self._found)
        return self._found


@final
class CurrentApplication:
    """An application that is built again when what it serves was published again."""

    def __init__(
        self,
        current: CurrentPublication[T],
        build: Callable[[T], ASGIApp],
        metrics: MetricsSource = tuple,
    ) -> None:
        self._find, self._builder = current.find, build
        self._found = current.find()
        self._application = build(self._found)
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (found := self._find()) is not self._found:
            with contextlib.suppress(ResourceSyncError):  # the next request tries it again
                self._application, self._found = self._builder(found), found
        await self._application(scope, receive, send)


def _not_published_error(root: Path, description: Path, port: int) -> ConfigurationError:
    """The current folder is mostly none to publish: it was not even named."""
    tried = (("tried", f"{description}: not found"),)
    if not root.is_dir():
        tried, hint = (("tried", f"{root}: there is no such folder"),), "name one"
    elif root.absolute() == Path.cwd():
        hint = "name the folder that is published; this one is the current folder"
    else:
        hint = (
            "publish it first: "
            f"resourcesync publish {quoted(root, 'DIR')} --url http://127.0.0.1:{port}/"
        )
    return ConfigurationError(f"{root} is not published", evidence=tried, hint=hint)


def find_tree(root: Path, out: Path | None = None, port: int = 8080) -> PublishedTree:
    """Return the tree in a folder, with the data of its documents; it is served at a port."""
    out = out or published_tree.documents_of(root)
    for catalogue in (root / CATALOGUE, out / CATALOGUE):
        if (known := published_tree.any_settings(catalogue)).site:
            names = known.names
            return PublishedTree(
                root=root, out=out, capability_list=names.capability_list, address=names.base_uri
            )
    description = out / DESCRIPTION
    try:
        with description.open("rb") as stream:
            found = list(_capability_lists(reader.read(stream, uri=str(description))))
    except FileNotFoundError as error:
        raise _not_published_error(root, description, port) from error
    except OSError as error:
        raise StorageError(
            f"cannot read {description}: {error.strerror}",
            hint="publish the folder first: "
            f"resourcesync publish {quoted(root, 'DIR')} --url https://HOST/",
        ) from error
    if found:
        return PublishedTree(root=root, out=out, capability_list=found[0])
    raise ConfigurationError(
        f"the Source Description of {root} names no Capability List",
        evidence=(("file", str(description)),),
        hint=f"write it again: resourcesync publish {quoted(root, 'DIR')}",
    )


def _capability_lists(description: reader.Document) -> Iterator[str]:
    is_index = description.header.capability is Capability.CAPABILITY_LIST
    for entry in description.entries():
        is_named = (
            isinstance(entry, CapabilityEntry) and entry.capability is Capability.CAPABILITY_LIST
        )
        if is_named or (is_index and isinstance(entry, Part)):
            yield entry.uri


class LateApplication:
    """An application that is known only after its server listens; 503 until then.

    A tree on a free port gets its address only with the port, and its documents, which contain that
    address, only after that.
    """

    def __init__(self) -> None:
        self.application: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.application is not None:
            await self.application(scope, receive, send)
        elif scope["type"] == "http":
            await Response(status_code=503, headers={"retry-after": "1"})(scope, receive, send)
