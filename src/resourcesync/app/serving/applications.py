"""Applications that serve a published tree: its files, former versions, changes and metrics."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, final

import msgspec
from msgspec.structs import replace
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from resourcesync import __version__
from resourcesync.adapters.files.names import media_type, to_segment
from resourcesync.app import document_stores, source_runs
from resourcesync.app.serving import hubs, published_tree
from resourcesync.app.serving.hubs import OpenHub
from resourcesync.catalogue.reader import CatalogueReader
from resourcesync.destination.reports import report_fields
from resourcesync.documents import reader
from resourcesync.errors import ConfigurationError, ResourceSyncError, StorageError, quoted
from resourcesync.model.entries import CapabilityEntry, Part
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import Clock
from resourcesync.server.access_log import AccessLog
from resourcesync.server.admin import MetricsSource, OperationsApplication
from resourcesync.server.app import Application, LinksOf, ServedSource, create_app, no_links
from resourcesync.server.dashboard.views import DocumentFile, SourceView
from resourcesync.server.files import FileState, ServedFolder
from resourcesync.server.mementos import MementoApplication, ServedVersions
from resourcesync.server.metrics import Metric, gauge, report_figures
from resourcesync.server.uvicorn_server import (
    ConnectionLimits,
    SecondApplication,
    ServerThread,
    serve_forever,
)
from resourcesync.source.naming import (
    CAPABILITY_LIST,
    DESCRIPTION,
    FOLDER,
    SourceNaming,
    is_sitemap,
)
from resourcesync.source.publication_settings import CATALOGUE, PublicationSettings
from resourcesync.source.versions.version_recording import VERSIONS_FOLDER, VersionNames

MOUNT: Final = f"/{FOLDER}{VERSIONS_FOLDER}".rstrip("/")
"""Path of the application of versions, in that of the tree."""
_NON_RESOURCES: Final = (FOLDER, ".well-known/")


def memento_application(
    root: Path,
    asked: PublicationSettings,
    url: str,
    is_published: Callable[[str], bool],
    catalogue: Path | None = None,
) -> MementoApplication:
    """Return the application that answers at the addresses of versions."""
    names = SourceNaming(base_uri=url)
    return MementoApplication(
        ServedVersions(
            index=CatalogueReader(catalogue or root / CATALOGUE),
            contents=ServedFolder(asked.versions_folder(root)),
            names=VersionNames(naming=names),
            uri_of=lambda path: _uri_of(names, path),
            is_published=is_published,
        )
    )


def _is_resource(path: str) -> bool:
    """True if a path may be that of a resource: documents have no TimeGate."""
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

    def __init__(self, address: str, documents: Path, catalogue: Path | None, name: str) -> None:
        self._address = address
        self._documents = documents
        self._catalogue = catalogue
        self._name = name

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

    def _status(self) -> source_runs.SourceStatus | None:
        path = self._catalogue
        return None if path is None else source_runs.read_status(self._name, path)

    def view(self, now: datetime, hub: OpenHub | None) -> SourceView:
        """Return the Source as its operators see it."""
        status = self._status()
        subscribers = None if hub is None else tuple(hub.store.list_subscribers(_MOST_SUBSCRIBERS))
        return SourceView(
            now=now,
            address=self._address,
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
                "source", source_runs.SourceState, [(status.state, report_fields(status))]
            )

    def _files(self) -> tuple[DocumentFile, ...]:
        """Return the documents of the tree, those written last first; at most 500."""
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


__all__ = [
    "AccessLog",
    "Application",
    "ConnectionLimits",
    "LateApplication",
    "PublishedTree",
    "SecondApplication",
    "ServerThread",
    "find_tree",
    "serve_forever",
]


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
    def head(self) -> Path:
        """The document that is written again if the address of the tree changes."""
        return self.out / (CAPABILITY_LIST if self.address else DESCRIPTION)

    @property
    def _own_catalogue(self) -> Path:
        return self.catalogue or self.root / CATALOGUE

    def application(
        self, clock: Clock, *, hub: OpenHub | None = None, links: LinksOf = no_links
    ) -> Application:
        """Return the application that serves it."""
        current = CurrentTree(self)
        mounts: dict[str, ASGIApp] = {} if hub is None else {hub.path: hub.application}
        if published_tree.published_settings(self._own_catalogue).versions:
            mounts[MOUNT] = _CurrentApplication(current, PublishedTree._mementos)
        served = self

        def republished() -> tuple[ServedSource, LinksOf] | None:
            nonlocal served
            if (found := current.find()) is served:
                return None
            served = found
            return found.source(), found.links(links)

        return create_app(
            self.source(),
            clock=clock,
            mounts=mounts,
            links=self.links(links),
            republished=republished,
        )

    def _mementos(self) -> ASGIApp:
        catalogue = self._own_catalogue
        settings = published_tree.published_settings(catalogue)
        is_published = published_tree.published_files(self.root, catalogue)
        root = self.root if settings.versions_in else catalogue.parent.parent
        return memento_application(root, settings, self.base, is_published, catalogue)

    def links(self, links: LinksOf) -> LinksOf:
        """Return the function for ``Link`` fields: of hubs and TimeGates, and these."""
        known = published_tree.any_settings(self._catalogue() or self._own_catalogue)
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
        root, catalogue, copies = self.root, self._catalogue(), None
        if published_tree.is_aggregated(root):
            copies = published_tree.PublishedCopies(root)
        file_at = copies.file_at if copies is not None and copies.base else None
        return ServedSource(
            root=root,
            capability_list_uri=self.capability_list,
            media_type=media_type,
            documents=self.out / "resourcesync",
            well_known=self.out / DESCRIPTION,
            is_published=_follows_no_link
            if file_at
            else published_tree.published_files(root, self._own_catalogue),
            file_at=file_at,
            find_entry=None
            if catalogue is None
            else published_tree.published_entries(root, self.base, catalogue),
        )

    def operations(self, *counts: MetricsSource) -> OperationsApplication:
        """Return the application for the operators of the server."""
        lookout = self.status()
        return OperationsApplication(look=lookout.check, counts=(lookout.figures, *counts))

    def board(self, clock: Clock, hub: OpenHub | None, *counts: MetricsSource) -> ASGIApp:
        """Return the page for the operators, with the application for them."""
        from resourcesync.server.dashboard.app import source_pages  # noqa: PLC0415 - few have it

        def build(tree: PublishedTree) -> ASGIApp:
            status = tree.status()
            return source_pages(
                lambda: status.view(clock.now(), hub), clock.now, tree.operations(*counts)
            )

        return _CurrentApplication(CurrentTree(self), build)

    def own_hub(self, clock: Clock, *, private: bool = False) -> OpenHub:
        """Open the hub of the tree; see ``open_own_hub``."""
        current = CurrentTree(self)
        return hubs.open_own_hub(self.root, lambda: current.find().base, clock, private=private)

    def status(self) -> ServedStatus:
        """Return the status of its documents and its catalogue."""
        documents, name = self.out / "resourcesync", self.root.absolute().name
        return ServedStatus(self.base, documents, self._catalogue(), name)

    def _catalogue(self) -> Path | None:
        paths = (self._own_catalogue, self.out / CATALOGUE)
        return next((path for path in paths if path.exists()), None)


@final
class CurrentTree:
    """A tree as it was published last: its address may change while it is served."""

    def __init__(self, tree: PublishedTree) -> None:
        self._tree = tree
        self._head = str(tree.head)  # each request asks it
        self._seen = FileState.at(self._head)

    def find(self) -> PublishedTree:
        """Return the tree; its Source Description is read again once it was replaced.

        While that cannot be read, the tree is the one before.
        """
        seen = FileState.at(self._head)
        if seen != self._seen:
            self._seen = seen
            with contextlib.suppress(ResourceSyncError):
                if self._tree.catalogue is None:
                    self._tree = find_tree(self._tree.root, self._tree.out)
                else:
                    self._tree = replace(self._tree)  # its site has the same address
        return self._tree


@final
class _CurrentApplication:
    """An application of a tree that is built again for a new address."""

    def __init__(self, current: CurrentTree, build: Callable[[PublishedTree], ASGIApp]) -> None:
        self._current = current
        self._builder = build
        self._tree = current.find()
        self._application = build(self._tree)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if (tree := self._current.find()) is not self._tree:
            self._tree, self._application = tree, self._builder(tree)
        await self._application(scope, receive, send)


def _follows_no_link(path: str) -> bool:
    """True: a published path follows no symbolic link, wherever that leads."""
    del path
    return False


def _not_published_error(root: Path, description: Path) -> ConfigurationError:
    """Return the error for a folder that is not published.

    The current folder is mostly none to publish: it was not even named.
    """
    tried = (("tried", f"{description}: not found"),)
    if not root.is_dir():
        tried, hint = (("tried", f"{root}: there is no such folder"),), "name one"
    elif root.absolute() == Path.cwd():
        hint = "name the folder that is published; this one is the current folder"
    else:
        hint = (
            "publish it first: "
            f"resourcesync publish {quoted(root, 'DIR')} --url http://127.0.0.1:8080/"
        )
    return ConfigurationError(f"{root} is not published", evidence=tried, hint=hint)


def find_tree(root: Path, out: Path | None = None) -> PublishedTree:
    """Return the tree in a folder, with the data of its documents."""
    out = out or published_tree.documents_of(root)
    for catalogue in (root / CATALOGUE, out / CATALOGUE):
        if (known := published_tree.any_settings(catalogue)).site:
            names = known.names
            return PublishedTree(
                root=root,
                out=out,
                capability_list=names.uri(CAPABILITY_LIST),
                address=names.base_uri,
            )
    description = out / DESCRIPTION
    try:
        with description.open("rb") as stream:
            found = list(_capability_lists(reader.read(stream, uri=str(description))))
    except FileNotFoundError as error:
        raise _not_published_error(root, description) from error
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
    """Yield the Capability Lists that a Source Description names, or the index before 0.9."""
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
        self.application: ASGIApp = _unready

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self.application(scope, receive, send)


async def _unready(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await Response(status_code=503, headers={"retry-after": "1"})(scope, receive, send)
