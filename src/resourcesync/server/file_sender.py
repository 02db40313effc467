"""Sender of files: whole states only, and validators only for stable states."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from anyio import to_thread

from resourcesync.errors import OriginalChangedError, StorageError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock
from resourcesync.server.conditions import ResponseValidators, evaluate_preconditions
from resourcesync.server.content_encoding import Coding, Encoder
from resourcesync.server.exchange import (
    CHUNK,
    Headers,
    HttpExchange,
    HttpReply,
    HttpRequest,
    refuse,
)
from resourcesync.server.files import FORBIDDEN, FileState, OpenFile, ServedFolder
from resourcesync.server.paths import Names
from resourcesync.server.ranges import ByteRange, chunk_ranges, is_complete
from resourcesync.server.representations import (
    InMemoryRepresentation,
    build_reply,
    file_validators,
    with_body,
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

    async def send(self, exchange: HttpExchange, place: ServedLocation) -> bool:
        """Send the file at ``place``, or a refusal; return whether the file exists.

        Raises:
            OriginalChangedError: It changed while it was sent; the server cuts the connection.
            StorageError: It can no longer be read; the same.
        """
        try:
            return await self._send(exchange, place)
        except StorageError as error:
            if exchange.has_started:
                raise
            await exchange.send(storage_error_reply(error))
            return True

    async def _send(self, exchange: HttpExchange, place: ServedLocation) -> bool:
        for _ in range(_TRIES):
            opened = place.folder.open(place.names)
            if opened is None and place.is_known:
                raise StorageError("a copy is missing")
            if opened is None:
                return False
            with opened:
                condition, validators = await self._wait_until_stable(opened)
                coding = self._choose(exchange.request, place, condition, validators)
                if coding is not None:
                    seen = _StableFile(condition, validators)
                    is_sent = await self._send_encoded(exchange, place, opened, seen, coding)
                else:
                    reply = build_reply(exchange.request, condition.size, validators, place.headers)
                    is_sent = await _send_plain(exchange, reply, opened, condition)
                if is_sent:
                    return True
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

    async def _send_encoded(
        self,
        exchange: HttpExchange,
        place: ServedLocation,
        opened: OpenFile,
        seen: "_StableFile",
        coding: Coding,
    ) -> bool:
        """Send a document in a coding; return whether it remained unchanged meanwhile."""
        validators = coding.validators_for(seen.validators)
        headers = (*place.headers, *coding.headers)
        if evaluate_preconditions(exchange.request.fields, validators) != "send":
            await exchange.send(build_reply(exchange.request, 0, validators, headers))
            return True
        where = (id(place.folder), place.names)
        body = await self._encoder.encode(opened, seen.condition, coding, where)
        if body is None:
            return False
        encoded = InMemoryRepresentation(body=body, validators=validators, headers=headers)
        await exchange.send(encoded.reply_to(exchange.request))
        return True

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


class _StableFile(NamedTuple):
    """A state of a file."""

    condition: FileState
    validators: ResponseValidators


async def _send_plain(
    exchange: HttpExchange, reply: HttpReply, opened: OpenFile, condition: FileState
) -> bool:
    """Send a file as it is; return whether it remained unchanged meanwhile."""
    pieces = reply.pieces
    if not pieces or exchange.request.method == "HEAD":
        await exchange.send(reply)
        return True
    if sum([piece.length for piece in pieces if isinstance(piece, ByteRange)]) > _INLINE_BYTES:
        await _stream(exchange, reply, opened, condition)
        return True
    chunks = [
        piece if isinstance(piece, bytes) else opened.read(piece.start, piece.length)
        for piece in pieces
    ]
    if not all(map(is_complete, pieces, chunks)) or not _is_same(opened.stat(), condition):
        return False
    await exchange.send(with_body(reply, chunks[0] if len(chunks) == 1 else b"".join(chunks)))
    return True


async def _stream(
    exchange: HttpExchange, reply: HttpReply, opened: OpenFile, condition: FileState
) -> None:
    """Send long pieces in chunks.

    Raises:
        OriginalChangedError: The file changed; the last bytes were not sent.
    """
    steps = chunk_ranges(reply.pieces, CHUNK)
    async with exchange.watch_disconnect() as gone:
        step = next(steps, None)
        while step is not None:
            following = next(steps, None)
            chunk = await _read_chunk(opened, step)
            is_last = following is None
            if not is_complete(step, chunk) or (is_last and not _is_same(opened.stat(), condition)):
                raise OriginalChangedError("a file changed while it was sent")
            if not exchange.has_started:
                await exchange.start(reply)
            if gone.done():
                return
            await exchange.send_chunk(chunk, more=not is_last)
            step = following


async def _read_chunk(opened: OpenFile, step: ByteRange | bytes) -> bytes:
    return step if isinstance(step, bytes) else await _read(opened, step.start, step.length)


async def _read(opened: OpenFile, start: int, length: int) -> bytes:
    """Read at once from the cache of the system; use a thread for the disk."""
    chunk = opened.read_now(start, length)
    return await to_thread.run_sync(opened.read, start, length) if chunk is None else chunk


def _is_same(now: FileState, before: FileState) -> bool:
    # Not changed_ns: new permissions or a new name leave the bytes unchanged.
    return (now.size, now.modified_ns) == (before.size, before.modified_ns)


def storage_error_reply(error: StorageError) -> HttpReply:
    """Return the answer for a file that exists, or may exist, and cannot be read now."""
    _LOG.warning("%s", error)
    if error.code == FORBIDDEN:
        return refuse(403, "This server may not read it.")
    return refuse(503, "It cannot be read now.", (b"retry-after", b"5"))
