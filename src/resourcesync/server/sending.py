"""Sends files: whole states only, and validators only for states that have settled."""

import asyncio
import logging
from typing import Final, final

from anyio import to_thread

from resourcesync.errors import OriginalChangedError, StorageError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock
from resourcesync.server.conditions import Validators
from resourcesync.server.exchange import Exchange, Headers, Reply, refuse
from resourcesync.server.files import FORBIDDEN, Condition, Folder, OpenFile
from resourcesync.server.paths import Names
from resourcesync.server.representations import answer, describe, with_body
from resourcesync.values import dataclass

_LOG: Final = logging.getLogger(__name__)

_CHUNK: Final = 256 * 1024
_INLINE: Final = 64 * 1024
"""Up to this size a file is read at once, in the loop: a thread would cost more than the read."""
_TRIES: Final = 3
_SETTLING_NS: Final = 20_000_000
"""Two writes within one tick of the system's clock leave the same times; no tick is longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the answer to a path lies, and the fields that belong to it.

    Attributes:
        folder: Where it lies.
        names: Its path there.
        headers: Fields of an answer that has it, such as the media type.
    """

    folder: Folder
    names: Names
    headers: Headers


@final
class Sender:
    """Sends what is at a place."""

    __slots__ = ("_clock",)

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def send(self, exchange: Exchange, place: Place) -> bool:
        """Send what is at ``place``, or why that cannot be; say whether anything is there.

        Raises:
            OriginalChangedError: It changed while it was sent; the server cuts the connection.
            StorageError: It can no longer be read; the same.
        """
        try:
            return await self._send(exchange, place)
        except StorageError as error:
            if exchange.has_started:
                raise
            await exchange.send(_excuse(error))
            return True

    async def _send(self, exchange: Exchange, place: Place) -> bool:
        for _ in range(_TRIES):
            opened = place.folder.open(place.names)
            if opened is None:
                return False
            with opened:
                condition, validators = await self._settle(opened)
                reply = answer(exchange.request, condition.size, validators, place.headers)
                span = reply.span
                if span is None or exchange.request.method == "HEAD":
                    await exchange.send(reply)
                    return True
                if span.length > _INLINE:
                    await _stream(exchange, reply, opened, condition)
                    return True
                body = opened.read(span.start, span.length)
                if len(body) == span.length and _is_same(opened.look(), condition):
                    await exchange.send(with_body(reply, body))
                    return True
        raise StorageError("a served file changes as fast as it is read")

    async def _settle(self, opened: OpenFile) -> tuple[Condition, Validators]:
        """Look at a file, a few milliseconds later when it was only just written."""
        condition = opened.found
        for _ in range(_TRIES):
            now = to_microseconds(self._clock.now()) * 1000
            age = now - condition.changed_ns
            if age >= _SETTLING_NS:
                return condition, describe(condition, now)
            if age < 0:
                break
            await asyncio.sleep((_SETTLING_NS - age) / 1e9)
            condition = opened.look()
        return condition, Validators()


async def _stream(exchange: Exchange, reply: Reply, opened: OpenFile, condition: Condition) -> None:
    """Send a long span in chunks that a worker thread reads.

    Raises:
        OriginalChangedError: The file is not what it was; the last bytes were not sent.
    """
    assert reply.span is not None
    start, stop = reply.span.start, reply.span.stop
    async with exchange.watched() as gone:
        chunk = await to_thread.run_sync(opened.read, start, min(_CHUNK, stop - start))
        await exchange.start(reply)
        while not gone.done():
            start += len(chunk)
            if not chunk or (start >= stop and not _is_same(opened.look(), condition)):
                raise OriginalChangedError("a file changed while it was sent")
            await exchange.go_on(chunk, more=start < stop)
            if start >= stop:
                return
            chunk = await to_thread.run_sync(opened.read, start, min(_CHUNK, stop - start))


def _is_same(now: Condition, before: Condition) -> bool:
    # Not changed_ns: new rights or a new name are no new bytes.
    return (now.size, now.modified_ns) == (before.size, before.modified_ns)


def _excuse(error: StorageError) -> Reply:
    _LOG.warning("%s", error)
    if error.code == FORBIDDEN:
        return refuse(403, "This server may not read it.")
    return refuse(503, "It cannot be read now.", (b"retry-after", b"5"))
