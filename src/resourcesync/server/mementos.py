"""Server of former versions of resources: Mementos, TimeGates, TimeMaps and patches (RFC 7089).

An application of its own, to be mounted at the address of ``source.versions.version_recording``:

- ``/20260101120000000000/a.html`` is one version of ``a.html``. It never changes.
- ``/timegate/a.html`` leads to the version of a moment that ``Accept-Datetime`` names: 302.
- ``/timemap/a.html`` lists all versions.
- Both also accept the whole address of a resource of ours, as aggregators send it:
  ``/timegate/https://museum.example/a.html``.
- ``/patch/20260101120000000000/a.html`` leads to that version from the one before.

A version that is not stored is absent: 404. A malformed moment is refused: 400. There is no 406:
before the first version the first one is the answer, and after the last one the last.
"""

import hashlib
import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final
from urllib.parse import urlsplit

from anyio import to_thread
from starlette.types import Receive, Scope, Send

from resourcesync.errors import OriginalChangedError, StorageError
from resourcesync.ports.versions import ResourceVersion, VersionReader
from resourcesync.server.conditions import ResponseValidators, format_http_date, parse_http_date
from resourcesync.server.exchange import (
    Headers,
    HttpExchange,
    HttpReply,
    HttpRequest,
    refuse,
    refuse_request,
)
from resourcesync.server.files import OpenFile, ServedFolder
from resourcesync.server.mounts import path_within
from resourcesync.server.paths import Names, is_hidden, read_path
from resourcesync.server.ranges import ByteRange, chunk_ranges, is_complete
from resourcesync.server.representations import build_reply
from resourcesync.source.versions.version_recording import VersionNames, parse_stamp

_LOG: Final = logging.getLogger(__name__)

_CHUNK: Final = 256 * 1024
_SECOND: Final = 1_000_000
MAP_PAGE: Final = 500
"""Versions of a TimeMap that are read at a time."""
_FOREVER: Final = (b"cache-control", b"max-age=31536000, immutable")
_NO_CACHE: Final = (b"cache-control", b"no-cache")
_NOSNIFF: Final = (b"x-content-type-options", b"nosniff")
_VARY: Final = (b"vary", b"accept-datetime")
_LINK_FORMAT: Final = "application/link-format"
_FULL_ADDRESS: Final = re.compile(rb"(/time(?:gate|map)/)https?://?([^/]+)(/.*)?", re.IGNORECASE)
_DEFAULT_PORT: Final = re.compile(rb":(?:80|443)?\Z")
_IMF: Final = len("Thu, 01 Jan 2026 00:00:00 GMT")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedVersions:
    """The versions to serve.

    Attributes:
        index: The index of versions.
        contents: The folder with the bytes of each, by its sha-256.
        names: The addresses of versions.
        uri_of: Returns the URI of a path in the tree, in the form of ``ServedSource.media_type``.
        is_published: Returns true for such a path whose file is published.
    """

    index: VersionReader
    contents: ServedFolder
    names: VersionNames
    uri_of: Callable[[str], str]
    is_published: Callable[[str], bool]


@final
class MementoApplication:
    """ASGI application that serves versions.

    Args:
        versioned: The versions to serve.
    """

    def __init__(self, versioned: ServedVersions) -> None:
        self._index = versioned.index
        self._contents = versioned.contents
        self._names = versioned.names
        self._uri_of = versioned.uri_of
        self._is_published = versioned.is_published

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as ASGI 3 requires."""
        if scope["type"] != "http":
            return  # no lifespan, and no websockets
        exchange = HttpExchange(HttpRequest.read(scope, path_within(scope)), receive, send)
        refusal = refuse_request(exchange.request)
        if refusal is not None:
            await exchange.send(refusal)
            return
        try:
            await self._answer(exchange, scope)
        except StorageError as error:
            if exchange.has_started:
                raise
            _LOG.warning("%s", error)
            await exchange.send(refuse(503, "It cannot be read now.", (b"retry-after", b"5")))

    async def _answer(self, exchange: HttpExchange, scope: Scope) -> None:
        path = self._own_path(exchange.request.raw_path, scope.get("query_string", b""))
        first, *rest = read_path(path) or (b"",)
        names = tuple(rest)
        if first == b"timegate" and (uri := self._uri(names)) is not None:
            await exchange.send(await self._timegate(uri, _accept_datetime(scope)))
        elif first == b"timemap" and (uri := self._uri(names)) is not None:
            await self._timemap(exchange, uri)
        elif first == b"patch" and names:
            await self._patch(exchange, names)
        else:
            version = await self._find(first, names)
            headers = () if version is None else self._memento_headers(version)
            if version is None or not await self._send(exchange, version.sha256, headers):
                await exchange.send(_absent())

    def _own_path(self, path: bytes, query: bytes) -> bytes:
        """Return a path with the whole address of a resource of ours reduced to its path.

        Scheme and usual port do not count: aggregators change them. Some proxies make one slash of
        two.
        """
        found = _FULL_ADDRESS.fullmatch(path)
        if found is None:
            return path
        base = urlsplit(self._names.naming.base_uri)
        ours, below = base.path.encode(), found[3] or b"/"
        if query or _host(found[2]) != _host(base.netloc.encode()) or not below.startswith(ours):
            return b""
        return found[1] + below.removeprefix(ours)

    def _uri(self, names: Names) -> str | None:
        """Return the URI of the resource of a path; ``None`` for one that is not published."""
        if not names or is_hidden(names):
            return None
        path = os.fsdecode(b"/".join(names))
        return self._uri_of(path) if self._is_published(path) else None

    async def _find(self, stamp: bytes, names: Names) -> ResourceVersion | None:
        moment, uri = parse_stamp(stamp.decode("latin-1")), self._uri(names)
        if moment is None or uri is None:
            return None
        return await to_thread.run_sync(self._index.find, uri, moment)

    def _memento_headers(self, version: ResourceVersion) -> Headers:
        kind = version.media_type.encode("ascii", "ignore")
        return (
            *(((b"content-type", kind),) if kind else ()),
            (b"memento-datetime", _date(version).encode("ascii")),
            (b"link", ", ".join(self._common_links(version.uri)).encode("ascii")),
            _FOREVER,
            _NOSNIFF,
        )

    def _common_links(self, uri: str) -> tuple[str, ...]:
        """Return the links of every version."""
        return (
            f'<{uri}>; rel="original"',
            f'<{self._names.timegate(uri)}>; rel="timegate"',
            f'<{self._names.timemap(uri)}>; rel="timemap"; type="{_LINK_FORMAT}"',
        )

    def _link(self, version: ResourceVersion, relation: str) -> str:
        address = self._names.memento(version.uri, version.moment)
        return f'<{address}>; rel="{relation}"; datetime="{_date(version)}"'

    async def _timegate(self, uri: str, wanted: str | None) -> HttpReply:
        """Return the redirect to the version of a moment (RFC 7089 §4.1)."""
        moment: int | None = None
        if wanted is not None:
            seconds = parse_http_date(wanted) if len(wanted) == _IMF else None
            if seconds is None:
                reason = "Accept-Datetime is not a date such as Thu, 01 Jan 2026 00:00:00 GMT."
                return refuse(400, reason, _VARY)
            moment = seconds * _SECOND + _SECOND - 1  # any time within that second
        version = await to_thread.run_sync(self._index.at, uri, moment)
        if version is None:
            return _absent(_VARY)
        first, last = await to_thread.run_sync(self._index.first_and_last, version)
        links = [self._common_links(uri)[0], self._common_links(uri)[2]]
        if first is not None and last is not None:
            links += _ends(self._link, first, last)
        location = self._names.memento(uri, version.moment)
        headers = (
            (b"location", location.encode("ascii")),
            (b"link", ", ".join(links).encode("ascii")),
            (b"content-length", b"0"),
            _VARY,
            _NO_CACHE,
        )
        return HttpReply(status=302, headers=headers)

    async def _timemap(self, exchange: HttpExchange, uri: str) -> None:
        """Send the list of all versions, some hundred at a time (RFC 7089 §5)."""
        page = await to_thread.run_sync(self._index.versions, uri, 0, MAP_PAGE)
        if not page:
            await exchange.send(_absent())
            return
        headers = ((b"content-type", _LINK_FORMAT.encode()), _NO_CACHE, _NOSNIFF)
        if exchange.request.method == "HEAD":
            await exchange.send(HttpReply(status=200, headers=headers))
            return
        original, timegate, itself = self._common_links(uri)
        lines = [original, timegate, itself.replace('rel="timemap"', 'rel="self"')]
        relation = "first memento"
        await exchange.start(HttpReply(status=200, headers=headers))
        async with exchange.watch_disconnect() as gone:
            while page and not gone.done():
                more = await to_thread.run_sync(
                    self._index.versions, uri, page[-1].moment, MAP_PAGE
                )
                for version in page:
                    if version is page[-1] and not more:
                        relation = _last(relation)
                    lines.append(self._link(version, relation))
                    relation = "memento"
                end = ",\n" if more else "\n"
                await exchange.send_chunk(
                    (",\n".join(lines) + end).encode("ascii"), more=bool(more)
                )
                page, lines = more, []

    async def _patch(self, exchange: HttpExchange, names: Names) -> None:
        """Send the patch to a version from the one before."""
        version = await self._find(names[0], names[1:])
        patch = None if version is None else version.patch
        if patch is None:
            await exchange.send(_absent())
            return
        kind = (b"content-type", patch.media_type.encode("ascii", "ignore"))
        if not await self._send(exchange, patch.sha256, (kind, _FOREVER, _NOSNIFF)):
            await exchange.send(_absent())

    async def _send(self, exchange: HttpExchange, sha256: str, headers: Headers) -> bool:
        """Send a content; return whether it exists.

        Raises:
            OriginalChangedError: It differs from the stored one; the server cuts the connection.
            StorageError: It cannot be read.
        """
        opened = self._contents.open((sha256[:2].encode(), sha256.encode()))
        if opened is None:
            return False
        with opened:
            validators = ResponseValidators(etag=f'"{sha256}"')
            reply = build_reply(exchange.request, opened.found.size, validators, headers)
            if not reply.pieces or exchange.request.method == "HEAD":
                await exchange.send(reply)
            else:
                await _stream(exchange, reply, opened, sha256)
        return True


async def _stream(exchange: HttpExchange, reply: HttpReply, opened: OpenFile, sha256: str) -> None:
    """Send a content; the last bytes of the whole only if its digest is right."""
    is_all = reply.pieces == (ByteRange(start=0, stop=opened.found.size),)
    running = hashlib.sha256()
    steps = chunk_ranges(reply.pieces, _CHUNK)
    async with exchange.watch_disconnect() as gone:
        await exchange.start(reply)
        step = next(steps, None)
        while step is not None and not gone.done():
            following = next(steps, None)
            chunk = step
            if not isinstance(chunk, bytes):
                chunk = await to_thread.run_sync(opened.read, chunk.start, chunk.length)
            running.update(chunk)
            is_harmed = following is None and is_all and running.hexdigest() != sha256
            if is_harmed or not is_complete(step, chunk):
                raise OriginalChangedError("a stored version has changed")
            await exchange.send_chunk(chunk, more=following is not None)
            step = following


def _ends(
    link: Callable[[ResourceVersion, str], str], first: ResourceVersion, last: ResourceVersion
) -> tuple[str, ...]:
    if first.moment == last.moment:
        return (link(first, "first last memento"),)
    return (link(first, "first memento"), link(last, "last memento"))


def _last(relation: str) -> str:
    return "first last memento" if relation == "first memento" else "last memento"


def _host(authority: bytes) -> bytes:
    return _DEFAULT_PORT.sub(b"", authority.lower())


def _date(version: ResourceVersion) -> str:
    return format_http_date(version.since // _SECOND)


def _absent(*extra: tuple[bytes, bytes]) -> HttpReply:
    return refuse(404, "There is no such version.", *extra)


def _accept_datetime(scope: Scope) -> str | None:
    """Return the value of ``Accept-Datetime``; repeated fields are joined, and thus invalid."""
    found = [value.decode("latin-1") for name, value in scope["headers"] if name == _FIELD]
    return ", ".join(found).strip(" \t") if found else None


_FIELD: Final = b"accept-datetime"
