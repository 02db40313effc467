"""Server of former versions of resources: Mementos, TimeGates, TimeMaps and patches (RFC 7089).

An application of its own, to be mounted at the address of ``source.versions.versions_and_patches``:

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
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final, final
from urllib.parse import unquote_to_bytes, urlsplit

from anyio import to_thread
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from resourcesync.catalogue.reader import CatalogueReader
from resourcesync.catalogue.versions import ResourceVersion
from resourcesync.errors import StorageError
from resourcesync.model.digests import WANTED
from resourcesync.model.timestamps import SECOND
from resourcesync.server import asgi, caching, conditions_and_ranges
from resourcesync.server.entry_fields import digest_headers
from resourcesync.server.file_sender import storage_error_response, stream
from resourcesync.server.files import Names, ServedFolder, is_hidden, read_path
from resourcesync.source.versions.versions_and_patches import VersionNames, parse_stamp

MAP_PAGE: Final = 500
"""Versions of a TimeMap that are read at a time."""
_VARY: Final = {"vary": "accept-datetime"}
_WITH_CONTENT: Final = frozenset({200, 206})
_LINK_FORMAT: Final = "application/link-format"
_FULL_ADDRESS: Final = re.compile(
    rb"(/time(?:gate|map)/)https?://?([^/?#]+)(/[^?#]*)?", re.IGNORECASE
)
_ENCODED_ADDRESS: Final = re.compile(rb"(/time(?:gate|map)/)(https?%3A(?:%2F|/).*)", re.IGNORECASE)
_DEFAULT_PORT: Final = re.compile(rb":(?:80|443)?\Z")
_IMF: Final = len("Thu, 01 Jan 2026 00:00:00 GMT")


@final
class MementoApplication:
    """ASGI application that serves versions; ``contents`` has the bytes of each, by its sha-256.

    Functions get a path in the tree, in the form of ``ServedSource.media_type``.
    """

    def __init__(
        self,
        *,
        index: CatalogueReader,
        contents: ServedFolder,
        names: VersionNames,
        uri_of: Callable[[str], str],
        is_published: Callable[[str], bool],
    ) -> None:
        self._index, self._contents, self._names = index, contents, names
        self._uri_of, self._is_published = uri_of, is_published

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as ASGI 3 requires."""
        if scope["type"] == "http":
            await asgi.answer(self._respond, scope, receive, send)

    async def _respond(self, request: asgi.HttpRequest) -> Response:
        try:
            return await self._find_response(request) or _absent()
        except StorageError as error:
            return storage_error_response(error)

    async def _find_response(self, request: asgi.HttpRequest) -> Response | None:
        path = self._own_path(request.raw_path, request.query)
        first, *rest = read_path(path) or (b"",)
        names = tuple(rest)
        if first == b"timegate" and (uri := self._uri(names)) is not None:
            return await self._timegate(uri, request.fields.get("accept-datetime"))
        if first == b"timemap" and (uri := self._uri(names)) is not None:
            return await self._timemap(uri)
        if first == b"patch" and names:
            return await self._patch(request, names)
        version = await self._find(first, names)
        if version is None:
            return None
        headers = {
            **_kind(version.media_type),
            "memento-datetime": _date(version),
            "link": ", ".join(self._common_links(version.uri)),
            **caching.FOREVER,
            **asgi.NOSNIFF,
        }
        return self._content(request, version.sha256, headers)

    def _own_path(self, path: bytes, query: bytes) -> bytes:
        """Return a path with the whole address of a resource of ours reduced to its path."""
        encoded = _ENCODED_ADDRESS.fullmatch(path)
        if encoded is not None:
            path = encoded[1] + unquote_to_bytes(encoded[2])
        found = _FULL_ADDRESS.fullmatch(path)
        if found is None:
            return path if encoded is None else b""
        base = urlsplit(self._names.naming.base_uri)
        ours, below = base.path.encode(), found[3] or b"/"
        if query or _host(found[2]) != _host(base.netloc.encode()) or not below.startswith(ours):
            return b""
        return found[1] + below.removeprefix(ours)

    def _uri(self, names: Names) -> str | None:
        if not names or is_hidden(names):
            return None
        path = os.fsdecode(b"/".join(names))
        return self._uri_of(path) if self._is_published(path) else None

    async def _find(self, stamp: bytes, names: Names) -> ResourceVersion | None:
        moment, uri = parse_stamp(stamp.decode("latin-1")), self._uri(names)
        if moment is None or uri is None:
            return None
        return await to_thread.run_sync(self._index.version, uri, moment)

    def _common_links(self, uri: str) -> tuple[str, ...]:
        return (
            f'<{uri}>; rel="original"',
            f'<{self._names.timegate(uri)}>; rel="timegate"',
            f'<{self._names.timemap(uri)}>; rel="timemap"; type="{_LINK_FORMAT}"',
        )

    def _link(self, version: ResourceVersion, relation: str) -> str:
        address = self._names.memento(version.uri, version.moment)
        return f'<{address}>; rel="{relation}"; datetime="{_date(version)}"'

    async def _timegate(self, uri: str, wanted: str | None) -> Response:
        moment: int | None = None
        if wanted is not None:
            wanted = wanted.strip(" \t")
            seconds = conditions_and_ranges.parse_http_date(wanted) if len(wanted) == _IMF else None
            if seconds is None:
                reason = "Accept-Datetime is not a date such as Thu, 01 Jan 2026 00:00:00 GMT."
                return asgi.refuse(400, reason, _VARY)
            moment = seconds * SECOND + SECOND - 1  # any time within that second
        version = await to_thread.run_sync(self._index.version_at, uri, moment)
        if version is None:
            return _absent(_VARY)
        first, last = await to_thread.run_sync(self._index.first_and_last, version)
        links = [self._common_links(uri)[0], self._common_links(uri)[2]]
        if first is not None and last is not None:
            if first.moment == last.moment:
                links.append(self._link(first, "first last memento"))
            else:
                links += [self._link(first, "first memento"), self._link(last, "last memento")]
            if version.moment not in {first.moment, last.moment}:
                # Aggregators read these links, and do not follow the redirect.
                links.append(self._link(version, "memento"))
        location = self._names.memento(uri, version.moment)
        headers = {"location": location, "link": ", ".join(links), **_VARY, **caching.NO_CACHE}
        return Response(status_code=302, headers=headers)

    async def _timemap(self, uri: str) -> Response | None:
        page = await to_thread.run_sync(self._index.versions, uri, 0, MAP_PAGE)
        if not page:
            return None
        headers = asgi.raw_headers({"content-type": _LINK_FORMAT}, caching.NO_CACHE, asgi.NOSNIFF)
        return asgi.ChunkedResponse(200, headers, chunks=self._map_lines(uri, page))

    async def _map_lines(self, uri: str, page: Sequence[ResourceVersion]) -> AsyncIterator[bytes]:
        original, timegate, itself = self._common_links(uri)
        lines = [original, timegate, itself.replace('rel="timemap"', 'rel="self"')]
        relation = "first memento"
        while page:
            more = await to_thread.run_sync(self._index.versions, uri, page[-1].moment, MAP_PAGE)
            for version in page:
                if version is page[-1] and not more:
                    relation = relation.replace("memento", "last memento")
                lines.append(self._link(version, relation))
                relation = "memento"
            yield (",\n".join(lines) + (",\n" if more else "\n")).encode("ascii")
            page, lines = more, []

    async def _patch(self, request: asgi.HttpRequest, names: Names) -> Response | None:
        version = await self._find(names[0], names[1:])
        patch = None if version is None else version.patch
        if patch is None:
            return None
        headers = {**_kind(patch.media_type), **caching.FOREVER, **asgi.NOSNIFF}
        return self._content(request, patch.sha256, headers)

    def _content(
        self, request: asgi.HttpRequest, sha256: str, headers: Mapping[str, str]
    ) -> Response | None:
        opened = self._contents.open((sha256[:2].encode(), sha256.encode()))
        if opened is None:
            return None
        request.at_end(opened.close)
        size = opened.found.size
        validators = conditions_and_ranges.ResponseValidators(etag=f'"{sha256}"')
        response = conditions_and_ranges.plan_response(
            request, size, validators, asgi.raw_headers(headers)
        )
        if response.status_code in _WITH_CONTENT:
            wanted = request.fields.get(WANTED, "")
            response.raw_headers.extend(digest_headers(f"sha-256:{sha256}", wanted))
        if response.span is None:
            return response
        digest = hashlib.sha256()
        is_part = len(response.span) < size
        response.chunks = stream(
            opened, response.span, lambda: is_part or digest.hexdigest() == sha256, digest.update
        )
        return response


def _kind(media_type: str) -> Mapping[str, str]:
    kind = media_type.encode("ascii", "ignore").decode("ascii")
    return {"content-type": kind} if kind else {}


def _host(authority: bytes) -> bytes:
    return _DEFAULT_PORT.sub(b"", authority.lower())


def _date(version: ResourceVersion) -> str:
    return conditions_and_ranges.format_http_date(version.since // SECOND)


def _absent(*fields: Mapping[str, str]) -> Response:
    return asgi.refuse(404, "There is no such version.", *fields)
