"""Sender of files: whole states only, and validators only for stable states.

Starlette's ``FileResponse`` opens a file again after it has looked at it, and sends what is there.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Final, final

import msgspec
from anyio import to_thread
from starlette.responses import Response

from resourcesync.errors import OriginalChangedError, StorageError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock
from resourcesync.server.asgi import CHUNK, ChunkedResponse, Headers, HttpRequest, refuse
from resourcesync.server.conditions_and_ranges import (
    InMemoryRepresentation,
    ResponseValidators,
    evaluate_preconditions,
    file_validators,
    plan_response,
)
from resourcesync.server.content_encoding import GZIP_HEADERS, Encoder, gzip_validators
from resourcesync.server.entry_fields import EntryFields
from resourcesync.server.files import FORBIDDEN, FileState, Names, OpenFile, ServedFolder

_LOG: Final = logging.getLogger(__name__)

_INLINE_BYTES: Final = 64 * 1024
"""Size up to which a file is read at once, in the loop: a thread would cost more than the read."""
_TRIES: Final = 3
_STABLE_AFTER_NS: Final = 20_000_000
"""Two writes within one tick of the system's clock leave the same times; no tick is longer."""

_MOST_STATES: Final = 4096
"""Number of states whose validators are cached; each takes half a kilobyte."""


class ServedLocation(msgspec.Struct, frozen=True, kw_only=True):
    """Location of an answer, and the fields that belong to it.

    If it ``is_known``, its absence is a fault. ``entry`` is the path of a resource in the tree, and
    what follows the base in its address (empty where the path gives it); ``None`` for a document.
    """

    folder: ServedFolder
    names: Names
    headers: Headers
    is_encodable: bool = False  # a content coding may be applied
    is_known: bool = False
    entry: tuple[str, str] | None = None


@final
class FileSender:
    """Sender of the files of locations."""

    __slots__ = ("_clock", "_encoder", "_entries", "_old")

    def __init__(self, clock: Clock, entries: EntryFields | None = None) -> None:
        self._clock = clock
        self._entries = entries
        self._encoder = Encoder()
        # A state that is old stays old, so its validators never change.
        self._old: dict[FileState, ResponseValidators] = {}

    async def respond(self, request: HttpRequest, place: ServedLocation) -> Response | None:
        """Return the response with the file at ``place``; ``None`` when there is none.

        If the file changes while it is sent, the response raises an ``OriginalChangedError``, and
        the server cuts the connection.
        """
        for _ in range(_TRIES):
            opened = place.folder.open(place.names)
            if opened is None:
                if place.is_known:
                    raise StorageError("a copy is missing")
                return None
            request.at_end(opened.close)
            condition = opened.found
            validators = self._old.get(condition)
            if validators is None:
                condition, validators = await self._wait_until_stable(opened)
            response = await self._opened_response(request, place, opened, condition, validators)
            if response is not None:
                return response
        raise StorageError("a served file changes as fast as it is read")

    async def _opened_response(
        self,
        request: HttpRequest,
        place: ServedLocation,
        opened: OpenFile,
        condition: FileState,
        validators: ResponseValidators,
    ) -> Response | None:
        if place.is_encodable:
            field = request.fields.get("accept-encoding", "")
            is_gzipped = self._encoder.is_gzipped(field, condition.size, validators)
            if is_gzipped is not None:
                return await self._encoded_response(
                    request, place, opened, condition, validators, gzip=is_gzipped
                )
        response = plan_response(request, condition.size, validators, place.headers)
        if place.entry is not None and self._entries is not None:
            self._entries.add(response, request, place.entry, condition)
        span = response.span
        if span is None:
            return response
        if len(span) > _INLINE_BYTES:
            await _start_stream(response, span, opened, condition)
            return response
        return response if _fill(response, span, opened, condition) else None

    async def _encoded_response(
        self,
        request: HttpRequest,
        place: ServedLocation,
        opened: OpenFile,
        condition: FileState,
        validators: ResponseValidators,
        *,
        gzip: bool,
    ) -> Response | None:
        """Return the response with a whole document; ``None`` when it changed meanwhile."""
        headers = place.headers
        if gzip:
            validators, headers = gzip_validators(validators), (*headers, *GZIP_HEADERS)
        if evaluate_preconditions(request.fields, validators) != "send":
            return plan_response(request, 0, validators, headers)
        where = (id(place.folder), place.names)
        body = await self._encoder.encode(opened, condition, where, gzip=gzip)
        if body is None:
            return None
        encoded = InMemoryRepresentation(body=body, validators=validators, headers=headers)
        return encoded.response_to(request)

    async def _wait_until_stable(self, opened: OpenFile) -> tuple[FileState, ResponseValidators]:
        """Inspect a file, a few milliseconds later when it was only just written."""
        condition = opened.found
        for _ in range(_TRIES):
            now = to_microseconds(self._clock.now()) * 1000
            age = now - condition.changed_ns
            if age >= _STABLE_AFTER_NS:
                validators = file_validators(condition, now)
                if validators.is_strong_date:
                    self._remember(condition, validators)
                return condition, validators
            if age < 0:
                break
            await asyncio.sleep((_STABLE_AFTER_NS - age) / 1e9)
            condition = opened.stat()
        return condition, ResponseValidators()

    def _remember(self, condition: FileState, validators: ResponseValidators) -> None:
        if len(self._old) >= _MOST_STATES:
            del self._old[next(iter(self._old))]
        self._old[condition] = validators


async def _start_stream(
    response: ChunkedResponse, span: range, opened: OpenFile, condition: FileState
) -> None:
    """Read the first chunk of a long response; the others are read while it is sent."""
    chunks = stream(opened, span, lambda: opened.is_unchanged(condition))
    response.fill(await anext(chunks))  # a fault of it comes before the response starts
    response.chunks = chunks


def _fill(response: ChunkedResponse, span: range, opened: OpenFile, condition: FileState) -> bool:
    body = opened.read(span.start, len(span))
    response.fill(body)
    return len(body) == len(span) and (not body or opened.is_unchanged(condition))


async def stream(
    opened: OpenFile,
    span: range,
    is_intact: Callable[[], bool],
    watch: Callable[[bytes], None] = lambda _: None,
) -> AsyncIterator[bytes]:
    """Yield a span of a file in chunks."""
    chunk = b""
    for start in range(span.start, span.stop, CHUNK):
        if chunk:
            yield chunk
        length = min(CHUNK, span.stop - start)
        chunk = await _read(opened, start, length)
        watch(chunk)
        if len(chunk) != length:
            raise OriginalChangedError("a file changed while it was sent")
    if not is_intact():
        raise OriginalChangedError("a file changed while it was sent")
    yield chunk


async def _read(opened: OpenFile, start: int, length: int) -> bytes:
    """Read at once from the cache of the system; use a thread for the disk."""
    chunk = opened.read_now(start, length)
    return await to_thread.run_sync(opened.read, start, length) if chunk is None else chunk


def storage_error_response(error: StorageError) -> Response:
    """Return the answer for a file that exists, or may exist, and cannot be read now."""
    _LOG.warning("%s", error)
    if error.code == FORBIDDEN:
        return refuse(403, "This server may not read it.")
    return refuse(503, "It cannot be read now.", {"retry-after": "5"})
