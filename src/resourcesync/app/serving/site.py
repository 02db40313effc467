"""Serving of a site: the Source Description that its sets share, and each set below its address."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, final
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec.structs import replace
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from resourcesync.adapters.files.names_and_uris import media_type
from resourcesync.app import document_stores, shared_description
from resourcesync.app.serving import applications
from resourcesync.app.serving.applications import (
    CurrentApplication,
    CurrentPublication,
    PublishedTree,
)
from resourcesync.app.shared_description import SETS, SiteSet, SiteState
from resourcesync.errors import ResourceSyncError
from resourcesync.ports import Clock
from resourcesync.server import asgi
from resourcesync.server.app import Application, ServedSource
from resourcesync.source.naming import DESCRIPTION, FOLDER, SITE_ABOUT

_OWN: Final = frozenset(f"/{name}".encode() for name in (DESCRIPTION, SITE_ABOUT))
_ABSENT: Final = 404


class PublishedSite(msgspec.Struct, frozen=True, kw_only=True):
    """A site: its folder, and the sets in it."""

    folder: Path
    state: SiteState

    @property
    def base(self) -> str:
        """The address of the site."""
        return self.state.address

    def application(self, clock: Clock) -> CurrentApplication:
        """Return the application that serves it, and sets that come later too."""
        current = CurrentPublication(self, self.folder / SETS, PublishedSite._read_again)
        return CurrentApplication(current, lambda site: _SiteApplication(site, clock))

    def _read_again(self) -> "PublishedSite":
        state = shared_description.read_state(self.folder)
        return self if state is None or not state.sets else replace(self, state=state)

    def mounts(self, clock: Clock) -> dict[str, ASGIApp]:
        """Return what answers below each path of the site, the longest path first."""
        found: defaultdict[str, list[ASGIApp]] = defaultdict(list)
        for path, application in self._applications(clock):
            found[path].append(application)
        found[""].append(self.own(clock))
        return {path: _FirstOf(found[path]) for path in sorted(found, key=len, reverse=True)}

    def own(self, clock: Clock) -> ASGIApp:
        """Return what serves the documents of the site itself."""
        first = next(iter(self.state.sets.values()))
        return Application(_documents(self.folder, first.names.capability_list), clock=clock)

    def _applications(self, clock: Clock) -> Iterator[tuple[str, ASGIApp]]:
        for place, each in self.state.sets.items():
            if not each.out:
                continue  # a store serves it
            tree = self._tree(place, each)
            base = self._path(each.base_uri)
            documents = self._path(each.documents_uri.removesuffix(FOLDER))
            if base is not None:
                yield base, _AtFirstUse(partial(tree.application, clock))
            if documents is not None and documents != base:
                yield documents, _AtFirstUse(partial(_documents_application, tree, clock))

    def _tree(self, place: str, each: SiteSet) -> PublishedTree:
        out = Path(os.path.normpath(self.folder / each.out))
        return PublishedTree(
            root=Path(os.path.normpath(self.folder / each.root)) if each.root else out,
            out=out,
            capability_list=each.names.capability_list,
            address=each.base_uri,
            catalogue=Path(os.path.normpath(self.folder / place)),
        )

    def _path(self, uri: str) -> str | None:
        path, above = (urlsplit(address).path for address in (uri, self.state.address))
        return unquote(path[len(above) - 1 :]).rstrip("/") if path.startswith(above) else None


def _documents_application(tree: PublishedTree, clock: Clock) -> ASGIApp:
    return Application(_documents(tree.out, tree.capability_list), clock=clock, links=tree.links())


def _documents(folder: Path, capability_list: str) -> ServedSource:
    return ServedSource(
        root=folder,
        capability_list_uri=capability_list,
        media_type=media_type,
        documents=folder / FOLDER,
        well_known=folder / DESCRIPTION,
        is_published=lambda path: path == document_stores.ROBOTS_FILE,
    )


def find(
    root: Path, out: Path | None = None, *, alone: bool = False, port: int = 8080
) -> PublishedTree | PublishedSite:
    """Return the site in a folder, or the tree: also if it is to be served ``alone``."""
    state = None if alone or out is not None else shared_description.read_state(root)
    if state is not None and state.sets:
        return PublishedSite(folder=root.absolute(), state=state)
    return applications.find_tree(root, out, port)


@final
class _SiteApplication:
    def __init__(self, site: PublishedSite, clock: Clock) -> None:
        mounts = site.mounts(clock)
        self._rest = mounts.pop("")
        self._mounts = asgi.MountedApplications(mounts)
        self._own = site.own(clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and asgi.path_within(scope) not in _OWN:
            application, scope = self._mounts.find(scope) or (self._rest, scope)
            await application(scope, receive, send)
        else:
            await self._own(scope, receive, send)


@final
class _AtFirstUse:
    """An application that is built for its first request; one that cannot be is unavailable."""

    def __init__(self, build: Callable[[], ASGIApp]) -> None:
        self._opening = build
        self._application: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._application is None:
            try:
                self._application = self._opening()
            except ResourceSyncError:
                refused = asgi.refuse(503, "It cannot be served now.", {"retry-after": "60"})
                await refused(scope, receive, send)
                return
        await self._application(scope, receive, send)


@final
class _FirstOf:
    """Applications at one path: the first answers for which there is something there."""

    def __init__(self, applications: Sequence[ASGIApp]) -> None:
        *self._first, self._last = applications

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        for application in self._first:
            is_absent = False

            async def pass_on(message: Message) -> None:
                nonlocal is_absent
                is_absent = is_absent or message.get("status") == _ABSENT
                if not is_absent:
                    await send(message)

            await application(scope, receive, pass_on)
            if not is_absent:
                return
        await self._last(scope, receive, send)
