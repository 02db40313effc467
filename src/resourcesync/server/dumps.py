"""Resource Dump made on demand, for a Source that stores none (§11.1, §11.2).

``resourcedump.xml`` lists packages of the catalogue as it is now; each name contains the moment, so
a package is of that very moment or is gone: 404, and the list has others. A package is written by
the code that writes those on the disk, with its manifest in it, and the same bytes each time.
Nothing is stored. Where a file is no longer as the catalogue says, the connection is cut: a package
without its end is invalid.
"""

import asyncio
import logging
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import chain, islice
from typing import Final, final

import msgspec
from anyio import to_thread
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from resourcesync.documents.packages.planning import ManifestEntry, PackageSize, plan_packages
from resourcesync.documents.packages.zip_writer import write_package
from resourcesync.documents.writer import write
from resourcesync.errors import OriginalChangedError, Remedy, ResourceSyncError, StorageError
from resourcesync.model.capabilities import Header, Package
from resourcesync.model.links import Link
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import MAX_ENTRIES, Capability, Relation
from resourcesync.ports.catalogue import CatalogueSnapshot
from resourcesync.ports.originals import ResourceContents
from resourcesync.server.asgi import (
    NO_CACHE,
    NOSNIFF,
    ChunkedResponse,
    HttpRequest,
    answer,
    raw_headers,
    refuse,
)
from resourcesync.server.representations import (
    InMemoryRepresentation,
    ResponseValidators,
    evaluate_preconditions,
    plan_response,
)

_LOG: Final = logging.getLogger(__name__)

MAX_RESOURCES: Final = 1_000_000
"""The most resources of a Source that is offered as dumps on request."""
PACKAGE_SIZE: Final = PackageSize(max_entries=10_000)
"""The limits of one package."""
_PIECE: Final = 256 * 1024
MAX_PACKAGE_SECONDS: Final = 3600.0
"""Seconds after which the sending of a package is cut."""
_BUSY: Final = {"retry-after": "30"}
_PACKAGE: Final = re.compile(rb"/([0-9]{1,18})-([0-9]{1,6})\.zip")


class _PackagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The packages of one moment: the URI that each begins with."""

    at: datetime
    starts: tuple[str, ...]

    @property
    def moment(self) -> int:
        return to_microseconds(self.at)

    @property
    def ranges(self) -> tuple[tuple[str, str | None], ...]:
        return tuple(zip(self.starts, [*self.starts[1:], None], strict=True))


@final
class DumpApplication:
    """The ASGI application that makes a Resource Dump on demand.

    Args:
        look: Opens a snapshot of the catalogue.
        contents: The bytes of the resources.
        uri: The address of the application, with a slash at its end.
        capability_list: The address of the Capability List.
        most: Most packages that are made at a time.
    """

    def __init__(
        self,
        look: Callable[[], AbstractContextManager[CatalogueSnapshot]],
        contents: ResourceContents,
        *,
        uri: str,
        capability_list: str,
        most: int = 2,
    ) -> None:
        self._open_snapshot = look
        self._contents = contents
        self._uri = uri
        self._up = Link(rel=Relation.UP.value, href=capability_list)
        self._most = most
        self._running = 0
        self._plan: _PackagePlan | None = None
        self._busy = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as ASGI 3 requires; lifespans are not supported."""
        if scope["type"] == "http":
            await answer(self._respond, scope, receive, send)

    async def _respond(self, request: HttpRequest) -> Response:
        found = _PACKAGE.fullmatch(request.raw_path)
        if request.raw_path != b"/resourcedump.xml" and found is None:
            return refuse(404, "Not found.")
        try:
            plan = await self._current_plan()
            if found is None:
                return self._document(plan).response_to(request)
            number = int(found[2])
            if int(found[1]) != plan.moment or not 0 < number <= len(plan.starts):
                return refuse(404, "This package is outdated: see resourcedump.xml.")
            return await self._package(request, plan, number)
        except ResourceSyncError as error:
            _LOG.warning("no dump can be made now: %s", error)
            return refuse(503, f"A dump is not available now: {error.message}.", _BUSY)

    async def _current_plan(self) -> _PackagePlan:
        """Return the packages of the present catalogue; computed once for each moment."""
        async with self._busy:
            self._plan = await to_thread.run_sync(self._plan_packages, self._plan)
            return self._plan

    def _plan_packages(self, known: _PackagePlan | None) -> _PackagePlan:
        with self._open_snapshot() as snapshot:
            if known is not None and known.at == snapshot.at:
                return known
            if snapshot.count(MAX_RESOURCES + 1) > MAX_RESOURCES:
                raise StorageError(
                    "there are too many resources",
                    hint="publish dumps",
                    remedy=Remedy("dump"),
                )
            header = self._header(snapshot.at)
            packages = plan_packages(header, snapshot.resources(), size=PACKAGE_SIZE)
            starts = tuple(islice((entries[0].uri for entries in packages), MAX_ENTRIES + 1))
            if len(starts) > MAX_ENTRIES:
                raise StorageError("there are too many packages")
            return _PackagePlan(at=snapshot.at, starts=starts)

    def _header(self, at: datetime) -> Header:
        return Header(capability=Capability.RESOURCE_DUMP_MANIFEST, at=at, links=(self._up,))

    def _document(self, plan: _PackagePlan) -> InMemoryRepresentation:
        header = Header(capability=Capability.RESOURCE_DUMP, at=plan.at, links=(self._up,))
        packages = [
            Package(
                uri=f"{self._uri}{plan.moment}-{number}.zip",
                at=plan.at,
                media_type="application/zip",
            )
            for number in range(1, len(plan.starts) + 1)
        ]
        return InMemoryRepresentation(
            body=b"".join(write(header, packages)),
            validators=ResponseValidators(etag=f'"{plan.moment}"'),
            headers=raw_headers({"content-type": "application/xml"}, NO_CACHE, NOSNIFF),
        )

    async def _package(self, request: HttpRequest, plan: _PackagePlan, number: int) -> Response:
        """Return the response that makes a package while it is sent.

        Raises:
            OriginalChangedError: A resource is no longer as the catalogue says.
            StorageError: A resource cannot be read, or this takes too long.
        """
        # Another release of the library may give other bytes.
        etag = f'"{plan.moment}-{number}-{zlib.ZLIB_RUNTIME_VERSION}"'
        validators = ResponseValidators(etag=etag)
        headers = raw_headers({"content-type": "application/zip"}, NO_CACHE, NOSNIFF)
        if evaluate_preconditions(request.fields, validators) != "send":
            return plan_response(request, 0, validators, headers)
        response = ChunkedResponse(
            200, (*headers, (b"etag", etag.encode("ascii"))), seconds=MAX_PACKAGE_SECONDS
        )
        if request.is_head:
            return response
        if self._running >= self._most:
            return refuse(503, "Too many packages are being made.", _BUSY)
        self._running += 1
        request.at_end(self._release)
        try:
            async with asyncio.timeout(MAX_PACKAGE_SECONDS):
                pieces = await to_thread.run_sync(self._begin, plan, number)
        except TimeoutError as error:
            raise StorageError("a package took longer than an hour") from error
        response.chunks = iterate_in_threadpool(pieces)
        return response

    def _release(self) -> None:
        self._running -= 1

    def _begin(self, plan: _PackagePlan, number: int) -> Iterator[bytes]:
        """Return the bytes of a package, with the first ones made."""
        entries = self._entries(plan, number)
        pieces = _coalesce(write_package(self._header(plan.at), entries, self._bytes_of))
        return chain([next(pieces, b"")], pieces)

    def _entries(self, plan: _PackagePlan, number: int) -> Sequence[ManifestEntry]:
        start, end = plan.ranges[number - 1]
        with self._open_snapshot() as snapshot:
            if snapshot.at != plan.at:
                raise OriginalChangedError("there are newer packages")
            resources = snapshot.resources(start, end)
            return next(plan_packages(self._header(plan.at), resources, size=PACKAGE_SIZE))

    def _bytes_of(self, content: Resource | Link) -> Iterator[bytes]:
        assert isinstance(content, Resource), "a Resource Dump has no patches"
        stream = self._contents.open(content)
        if stream is None:
            raise OriginalChangedError(f"{content.uri} no longer exists")
        with stream:
            try:
                while piece := stream.read(_PIECE):
                    yield piece
            except OSError as error:
                raise StorageError(f"{content.uri} cannot be read: {error.strerror}") from error


def _coalesce(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield fewer and longer pieces: each costs a thread switch."""
    buffered: list[bytes] = []
    size = 0
    for piece in pieces:
        buffered.append(piece)
        size += len(piece)
        if size >= _PIECE:
            yield b"".join(buffered)
            buffered, size = [], 0
    if buffered:
        yield b"".join(buffered)
