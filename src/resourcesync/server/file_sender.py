"""Sender of files: whole states only, and validators only for stable states.

Starlette's ``FileResponse`` opens a file again after it has looked at it, and sends what is there.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

from anyio import to_thread
from starlette.responses import Response

from resourcesync.errors import OriginalChangedError, StorageError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock
from resourcesync.server.asgi import CHUNK, Headers, HttpRequest, refuse
from resourcesync.server.content_encoding import Coding, Encoder
from resourcesync.server.files import FORBIDDEN, FileState, Names, OpenFile, ServedFolder
from resourcesync.server.representations import (
    InMemoryRepresentation,
    ResponseValidators,
    chunk_ranges,
    evaluate_preconditions,
    file_validators,
    plan_response,
)

_LOG: Final = logging.getLogger(__name__)

_INLINE_BYTES: Final = 64 * 1024
"""Size up to which a file is read at once, in the loop: a thread would cost more than the read."""
_TRIES: Final = 3
_STABLE_AFTER_NS: Final = 20_000_000
"""Two writes within one tick of the system's clock leave the same times; no tick is longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedLocation:
    """Location of an answer, and the fields that belong to it.

    Attributes:
        folder: The folder.
        names: Its path in the folder.
        headers: Fields of an answer that has it, such as the media type.
        is_encodable: True if a content coding may be applied.
        is_known: True if it must exist: its absence is a fault.
    """

    folder: ServedFolder
    names: Names
    headers: Headers
    is_encodable: bool = False
    is_known: bool = False


@final
class FileSender:
    """Sender of the files of locations."""

    __slots__ = ("_clock", "_encoder")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._encoder = Encoder()

    async def respond(self, request: HttpRequest, place: ServedLocation) -> Response | None:
        """Return the response with the file at ``place``; ``None`` when there is none.

        If the file changes while it is sent, the response raises an ``OriginalChangedError``, and
        the server cuts the connection.

        Raises:
            StorageError: It cannot be read now, or must exist and does not.
        """
        for _ in range(_TRIES):
            opened = place.folder.open(place.names)
            if opened is None and place.is_known:
                raise StorageError("a copy is missing")
            if opened is None:
                return None
            request.at_end(opened.close)
            condition, validators = await self._wait_until_stable(opened)
            coding = self._choose(request, place, condition, validators)
            if coding is None:
                response = await _plain_response(request, place, opened, condition, validators)
            else:
                response = await self._encoded_response(
                    request, place, opened, condition, (coding, validators)
                )
            if response is not None:
                return response
        raise StorageError("a served file changes as fast as it is read")

    def _choose(
        self,
        request: HttpRequest,
        place: ServedLocation,
        condition: FileState,
        validators: ResponseValidators,
    ) -> Coding | None:
        if not place.is_encodable:
            return None
        field = request.fields.get("accept-encoding", "")
        return self._encoder.choose(field, condition.size, validators)

    async def _encoded_response(
        self,
        request: HttpRequest,
        place: ServedLocation,
        opened: OpenFile,
        condition: FileState,
        how: tuple[Coding, ResponseValidators],
    ) -> Response | None:
        """Return the response in a coding; ``None`` when the document changed meanwhile."""
        coding, validators = how[0], how[0].validators_for(how[1])
        headers = (*place.headers, *coding.headers)
        if evaluate_preconditions(request.fields, validators) != "send":
            return plan_response(request, 0, validators, headers)
        where = (id(place.folder), place.names)
        body = await self._encoder.encode(opened, condition, coding, where)
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
                return condition, file_validators(condition, now)
            if age < 0:
                break
            await asyncio.sleep((_STABLE_AFTER_NS - age) / 1e9)
            condition = opened.stat()
        return condition, ResponseValidators()


async def _plain_response(
    request: HttpRequest,
    place: ServedLocation,
    opened: OpenFile,
    condition: FileState,
    validators: ResponseValidators,
) -> Response | None:
    """Return the response with a file as it is; ``None`` when it changed meanwhile."""
    response = plan_response(request, condition.size, validators, place.headers)
    pieces = response.pieces
    if not pieces:
        return response
    length = sum(map(len, pieces))
    if length > _INLINE_BYTES:
        chunks = stream(opened, pieces, lambda: _is_same(opened.stat(), condition))
        response.fill([await anext(chunks)])  # a fault of it comes before the response starts
        response.chunks = chunks
        return response
    parts = [
        piece if isinstance(piece, bytes) else opened.read(piece.start, len(piece))
        for piece in pieces
    ]
    response.fill(parts)
    is_whole = sum(map(len, parts)) == length and _is_same(opened.stat(), condition)
    return response if is_whole else None


def _ignore(chunk: bytes) -> None:
    del chunk


async def stream(
    opened: OpenFile,
    pieces: Sequence[range | bytes],
    is_intact: Callable[[], bool],
    watch: Callable[[bytes], None] = _ignore,
) -> AsyncIterator[bytes]:
    """Yield the pieces of a file in chunks.

    Args:
        opened: The file.
        pieces: The pieces.
        is_intact: Returns true if all chunks are bytes of one state; called before the last one is
            yielded.
        watch: Called with each chunk.

    Raises:
        OriginalChangedError: The file changed; the last bytes were not yielded.
        StorageError: It cannot be read.
    """
    chunk = b""
    for step in chunk_ranges(pieces, CHUNK):
        if chunk:
            yield chunk
        chunk = step if isinstance(step, bytes) else await _read(opened, step.start, len(step))
        watch(chunk)
        if len(chunk) != len(step):
            raise OriginalChangedError("a file changed while it was sent")
    if not is_intact():
        raise OriginalChangedError("a file changed while it was sent")
    yield chunk


async def _read(opened: OpenFile, start: int, length: int) -> bytes:
    """Read at once from the cache of the system; use a thread for the disk."""
    chunk = opened.read_now(start, length)
    return await to_thread.run_sync(opened.read, start, length) if chunk is None else chunk


def _is_same(now: FileState, before: FileState) -> bool:
    # Not changed_ns: new permissions or a new name leave the bytes unchanged.
    return (now.size, now.modified_ns) == (before.size, before.modified_ns)


def storage_error_response(error: StorageError) -> Response:
    """Return the answer for a file that exists, or may exist, and cannot be read now."""
    _LOG.warning("%s", error)
    if error.code == FORBIDDEN:
        return refuse(403, "This server may not read it.")
    return refuse(503, "It cannot be read now.", {"retry-after": "5"})
