"""ASGI application that serves a tree of resources and its ResourceSync documents. Read-only.

What it answers at which address: ``docs/how-to/serve.md``. Files that are not published, hidden
ones, links that lead out of the tree and what is no regular file are absent: 404; for another
method, or a request with a body, 405 or 400. A file that cannot be read is not absent: 403, or 503
when the fault may pass, because a Destination may take 404 for a deletion. The same holds for a
copy that is in the state of a mirror and not on its disk. Validators are sent only for a state that
can be distinguished from the next one, and a body is never a mixture of two: if a file changes
while it is sent, the connection is cut. Other applications may be mounted below it: they get every
method.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, final
from urllib.parse import quote, unquote_to_bytes

import msgspec
from msgspec.structs import replace
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from resourcesync.errors import ConfigurationError, StorageError
from resourcesync.model.vocabulary import WELL_KNOWN_PATH
from resourcesync.ports import Clock
from resourcesync.server import asgi, files
from resourcesync.server.caching import FOREVER, NO_CACHE
from resourcesync.server.entry_fields import EntryFields, FindEntry
from resourcesync.server.file_sender import FileSender, ServedLocation, storage_error_response
from resourcesync.server.front_page import front_page
from resourcesync.source.naming import CAPABILITY_LIST, FOLDER, is_immutable, is_sitemap

_LINKABLE: Final = re.compile(r"https?://[!#-;=?-Z_a-z~%\[\]@]+")


class ServedSource(msgspec.Struct, frozen=True, kw_only=True):
    """The tree that one application serves, its documents, and their metadata.

    A folder of ``documents`` outside ``root`` is served under its own name, and ``well_known`` is
    the file of the Source Description. ``capability_list_uri`` is for the ``Link`` field and the
    page (§6.3.3): from the operator's settings, never from a request.

    Functions get a path in the tree, with ``/`` and undecodable bytes as surrogates. A file that is
    not ``is_published`` is absent. ``file_at`` returns such a path for a request's path and query,
    as they came, without the first slash, where resources are not under the paths of their files.
    """

    root: Path
    capability_list_uri: str
    media_type: Callable[[str], str]
    documents: Path
    well_known: Path
    is_published: Callable[[str], bool] = lambda _: True
    file_at: Callable[[str], str | None] | None = None
    find_entry: FindEntry | None = None

    def __post_init__(self) -> None:
        if _LINKABLE.fullmatch(self.capability_list_uri) is None:
            raise ConfigurationError(
                "the address of the Capability List is not an absolute HTTP URI",
                evidence=(("got", repr(self.capability_list_uri)),),
            )
        if not self.documents_names:
            raise ConfigurationError("the ResourceSync documents need a folder of their own")

    @property
    def documents_names(self) -> files.Names:
        """Return the path of the documents' folder in the application, as names."""
        folder, root = self.documents.absolute(), self.root.absolute()
        inside = folder.relative_to(root) if folder.is_relative_to(root) else Path(folder.name)
        names = tuple(os.fsencode(part) for part in inside.parts)
        return names[-1:] if files.is_hidden(names) else names

    @property
    def has_documents_inside(self) -> bool:
        """True if the folder of documents would be served as a part of the tree, too."""
        inside = Path(os.fsdecode(b"/".join(self.documents_names)))
        return self.root.absolute() / inside == self.documents.absolute()


_LIFESPAN: Final = Router()
"""Starts and ends at once: between requests there is nothing to keep."""
_MOST_LOCATIONS: Final = 4096
_REMEMBERED: Final = 256
"""Longest path in bytes whose location is cached: 4096 of them take a few megabytes."""
_WELL_KNOWN: Final = tuple(os.fsencode(WELL_KNOWN_PATH).strip(b"/").split(b"/"))
_INDEX: Final = "index.html"
_QUERY: Final = "/?:@!$&'()*+,;=%~"
"""The characters of a query that need no encoding, and the mark of those that are encoded."""
_ROBOTS: Final = (b"robots.txt",)
_XML: Final = {"content-type": "application/xml"}
_KINDS: Final = {b".xml": _XML, b".zip": {"content-type": "application/zip"}}
"""The fields of documents, by the ends of their names."""
_VARY: Final = {"vary": "accept-encoding"}
_LINK: Final = re.compile(r"<[!#-;=?-Z_a-z~%\[\]@]*>[ -~]*")

LinksOf = Callable[[str], Sequence[str]]
"""Function that returns the values of further ``Link`` fields for a path of the application.

The path is without its first slash, with undecodable bytes as surrogates, such as
``resourcesync/changelist.xml``; a value is such as ``<https://hub.example/>; rel="hub"``. The
result for a path is cached: it must not change.
"""


@final
class Application:
    """ASGI application that locates the file of a path and sends it.

    Between requests, no file is open for long.
    """

    def __init__(
        self,
        served: ServedSource,
        *,
        clock: Clock,
        mounts: Mapping[str, ASGIApp] = MappingProxyType({}),
        links: LinksOf = lambda _: (),
        count: asgi.ResponseCounter = lambda _status, _sent: None,
    ) -> None:
        find = served.find_entry
        self._mounts = asgi.MountedApplications(mounts)
        self._links, self._count = links, count
        self._sender = FileSender(clock, None if find is None else EntryFields(find, clock))
        self._locations = lru_cache(maxsize=_MOST_LOCATIONS)(self._locate)
        self._media_type = served.media_type
        self._prefix = served.documents_names
        self._documents = files.ServedFolder(served.documents)
        self._sitemaps = files.ServedFolder(served.documents.parent)
        closed = self._prefix if served.has_documents_inside else ()
        self._is_published = served.is_published
        self._file_at = served.file_at
        self._tree = files.ServedFolder(served.root, closed=closed, is_open=self._is_open)
        self._link = f'<{served.capability_list_uri}>; rel="resourcesync"'
        self._description = files.ServedFolder(served.well_known.parent)
        self._description_name = (os.fsencode(served.well_known.name),)
        self._front = front_page(served.capability_list_uri)
        capability_list = served.documents / CAPABILITY_LIST.removeprefix(FOLDER)
        self._root, self._always_there = served.root, (capability_list, served.well_known)

    def _is_open(self, names: files.Names) -> bool:
        return self._is_published(_path_of(names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as ASGI 3 requires."""
        if scope["type"] == "lifespan":
            await _LIFESPAN(scope, receive, send)
            return
        mounted = self._mounts.find(scope)
        if mounted is not None:
            application, inner = mounted
            await application(inner, receive, send)
        elif scope["type"] == "http":
            await asgi.answer(self._respond, scope, receive, send, self._count)
        else:
            await send({"type": "websocket.close"})

    async def _respond(self, request: asgi.HttpRequest) -> Response:
        try:
            place = self._locate_path(request.raw_path or b"/", request.query)
            response = None
            if place is not None:
                response = await self._sender.respond(request, place)
            if response is None:
                response = self._redirect_to_folder(request)
        except StorageError as error:
            return storage_error_response(error)
        if response is not None:
            return response
        if request.raw_path in {b"", b"/"}:
            return self._front.response_to(request)
        if not (self._root.is_dir() and any(map(os.path.lexists, self._always_there))):
            return storage_error_response(StorageError("a folder is away: is its disk mounted?"))
        return asgi.refuse(404, "Not found.")

    def _redirect_to_folder(self, request: asgi.HttpRequest) -> Response | None:
        path = files.without_authority(request.raw_path)
        if path[-1:] in {b"", b"/"}:
            return None
        place = self._locate_path(path + b"/", b"")
        opened = None if place is None else place.folder.open(place.names)
        if opened is None:
            return None
        opened.close()
        # With ./ a name with a colon is no scheme.
        name = quote(unquote_to_bytes(path.rpartition(b"/")[2]), safe="")
        query = f"?{quote(request.query, safe=_QUERY)}" if request.query else ""
        return asgi.refuse(301, "It is a folder.", {"location": f"./{name}/{query}"})

    def _locate_path(self, path: bytes, query: bytes) -> ServedLocation | None:
        if self._file_at is not None:
            return self._locate_known_file(self._file_at, path, query)
        return self._locations(path) if len(path) <= _REMEMBERED else self._locate(path)

    def _locate_known_file(
        self, file_at: Callable[[str], str | None], raw: bytes, raw_query: bytes
    ) -> ServedLocation | None:
        names = files.read_path(raw)
        if names is not None and self._is_document(names):
            return self._locate_published(names)
        path = files.without_authority(raw).removeprefix(b"/").decode("latin-1")
        query = raw_query.decode("latin-1")
        # Pages add a query to files that have none, so that caches see different versions.
        index = f"{path}{_INDEX}" if path.endswith("/") or not path else path
        for tail in (f"{path}?{query}" if query else path, path, index):
            found = file_at(tail)
            if found:
                place = self._locate_resource(tuple(os.fsencode(found).split(b"/")))
                return replace(place, is_known=True, entry=(found, tail))
        return None

    def _locate(self, path: bytes) -> ServedLocation | None:
        names = files.read_path(path + _INDEX.encode() if path.endswith(b"/") else path)
        if names is None:
            return None
        if self._is_document(names):
            return self._locate_published(names)
        names = names or (_INDEX.encode(),)
        if files.is_hidden(names) or not self._is_open(names):
            return None
        return self._locate_resource(names)

    def _is_document(self, names: files.Names) -> bool:
        is_own_sitemap = len(names) == 1 and is_sitemap(names[0].decode("latin-1"))
        return is_own_sitemap or names == _WELL_KNOWN or names[: len(self._prefix)] == self._prefix

    def _locate_published(self, path: files.Names) -> ServedLocation | None:
        depth = len(self._prefix)
        folder, names = self._documents, path[depth:]
        if path == _WELL_KNOWN:
            folder, names = self._description, self._description_name
        elif path[:depth] != self._prefix:
            folder, names = self._sitemaps, path
        elif not names or files.is_hidden(names) or _kind(names[-1]) is None:
            return None
        kind, is_final = _kind(path[-1]) or _XML, is_immutable(FOLDER + path[-1].decode("latin-1"))
        caching = FOREVER if is_final else NO_CACHE
        encodable = not path[-1].endswith(b".zip")
        varying = _VARY if encodable else {}
        headers = asgi.raw_headers(kind, caching, self._link_field(path), varying, asgi.NOSNIFF)
        return ServedLocation(folder=folder, names=names, headers=headers, is_encodable=encodable)

    def _locate_resource(self, names: files.Names) -> ServedLocation:
        media_type = self._media_type(_path_of(names))
        kind = {"content-type": media_type} if media_type else {}
        # robots.txt may be the publisher's, which lists it nowhere: no list covers it then.
        covered = () if names == _ROBOTS else (self._link,)
        headers = asgi.raw_headers(kind, self._link_field(names, *covered), asgi.NOSNIFF)
        entry = (_path_of(names), "") if covered else None
        return ServedLocation(folder=self._tree, names=names, headers=headers, entry=entry)

    def _link_field(self, names: files.Names, *own: str) -> Mapping[str, str]:
        values = (*own, *self._links(_path_of(names)))
        for value in values:
            if _LINK.fullmatch(value) is None:
                raise ConfigurationError(f"{value[:64]!r} cannot stand in a Link field")
        return {"link": ", ".join(values)} if values else {}


def _kind(name: bytes) -> Mapping[str, str] | None:
    stem, dot, ending = name.rpartition(b".")
    return _KINDS.get(dot + ending) if stem else None


def _path_of(names: files.Names) -> str:
    return os.fsdecode(b"/".join(names))
