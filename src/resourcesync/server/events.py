"""Stream of changes as Server-Sent Events (HTML §9.2), for clients that no notification reaches.

This is ours and no part of the specification. An event's ``id`` is the change's number in the log
of the catalogue and its time in microseconds, so a client that reconnects with ``Last-Event-ID``
misses nothing, and a log that was started over is not mistaken for the old one. Its data is one
line of JSON as an export of the catalogue has it. ``reset`` means that changes are missing: the
client must pull, and continues from that point.

One task polls the log for all clients and encodes each event once. A client that reads too slowly
is not waited for: recent events are buffered, and then its stream ends; it reconnects and reads the
rest from the log.
"""

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar, final

import msgspec
from anyio import to_thread
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from resourcesync.documents import ndjson
from resourcesync.errors import ResourceSyncError
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import to_microseconds
from resourcesync.server.asgi import (
    NO_STORE,
    NOSNIFF,
    ChunkedResponse,
    HttpRequest,
    answer,
    raw_headers,
    refuse,
    wait_for,
)
from resourcesync.server.metrics import Metric

_T = TypeVar("_T")
_LOG: Final = logging.getLogger(__name__)

_MOST_EVENTS: Final = 200
_MOST_BATCHES: Final = 64
_CACHE_BYTES: Final = 4 * 1024 * 1024
_READERS: Final = 4
_SLICE: Final = 100
_HEADERS: Final = raw_headers(
    {"content-type": "text/event-stream"},
    NO_STORE,
    {"x-accel-buffering": "no"},  # nginx passes each event on at once
    NOSNIFF,
)
_ID: Final = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")
_UNKNOWN_POSITION: Final = (-1, 0)
_HEARTBEAT: Final = b":\n\n"


class SourceChangeLog(Protocol):
    """The change log of a catalogue. Read in threads."""

    def last(self) -> tuple[int, int]:
        """Return number and time of the newest change, in microseconds; 0 when there is none."""

    def has(self, number: int, moment: int) -> bool:
        """True if the change of this number is the one of this time."""

    def after(self, number: int, most: int) -> Sequence[tuple[int, Change]] | None:
        """Return changes with their numbers; ``None`` when not all after ``number`` are known."""


class StreamTiming(msgspec.Struct, frozen=True, kw_only=True):
    """Intervals of the stream.

    Attributes:
        poll: Seconds between two polls of the log.
        heartbeat: Seconds of silence after which a client is sent a comment.
        retry: Seconds after which a client reconnects.
    """

    poll: float = 0.5
    heartbeat: float = 25.0
    retry: float = 3.0


_LogPosition = tuple[int, int]
"""Position in the log: number and time of the change before it."""


class _Batch(NamedTuple):
    """Changes of one poll: the bytes for all clients, and their end in the log."""

    last: _LogPosition
    data: bytes


@final
class EventApplication:
    """The ASGI application that streams the changes of one Source.

    Args:
        most: The most clients at a time; further ones get 503.
        pace: The intervals.
        cache: The most bytes that are stored for clients that are behind.
    """

    def __init__(
        self,
        log: SourceChangeLog,
        *,
        most: int = 300,
        pace: StreamTiming | None = None,
        cache: int = _CACHE_BYTES,
    ) -> None:
        self._log = log
        self._most = most
        self._most_cached = cache
        self._timing = pace or StreamTiming()
        self._clients: set[asyncio.Event] = set()
        self._batches: OrderedDict[_LogPosition, _Batch] = OrderedDict()
        self._cached_bytes = 0
        self._last = _UNKNOWN_POSITION
        self._poll_task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._opening = asyncio.Lock()
        self._readers = asyncio.Semaphore(_READERS)
        self._sent = 0

    @property
    def cached_bytes(self) -> int:
        """Return the number of bytes that are stored for clients that are behind."""
        return self._cached_bytes

    @property
    def clients(self) -> int:
        """Return the number of clients that follow the stream now."""
        return len(self._clients)

    def metrics(self) -> Iterator[Metric]:
        """Yield the number of followers now, and of the changes sent since the start."""
        yield Metric(
            name="resourcesync_event_clients",
            kind="gauge",
            help_text="Clients connected to the stream of changes.",
            values=(((), self.clients),),
        )
        yield Metric(
            name="resourcesync_events_total",
            kind="counter",
            help_text="Changes sent in the stream, each counted once for all clients.",
            values=(((), self._sent),),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as ASGI 3 requires; lifespans are not supported."""
        if scope["type"] == "http":
            await answer(self._respond, scope, receive, send)

    async def _respond(self, request: HttpRequest) -> Response:
        if request.raw_path not in {b"", b"/"}:
            return refuse(404, "Not found.")
        if len(self._clients) >= self._most:
            return refuse(503, "Too many clients already.", {"retry-after": "30"})
        wake, position = asyncio.Event(), None
        if not request.is_head:
            self._clients.add(wake)
            request.at_end(lambda: self._clients.discard(wake))
            try:
                await self._start_polling(request.stopping)
                position = await self._find_position(request)
            except ResourceSyncError as error:
                _LOG.warning("%s", error)
                return refuse(503, "Not available now.", {"retry-after": "5"})
        return ChunkedResponse(200, _HEADERS, chunks=self._stream(wake, position))

    async def _stream(
        self, wake: asyncio.Event, asked: _LogPosition | None
    ) -> AsyncIterator[bytes]:
        """Yield the events for one client, until the server stops."""
        position = self._last if asked is None else asked
        # An id alone is no event, but lets a client that loses the stream early resume.
        yield b"retry: %d\nid: %d-%d\n\n" % (int(self._timing.retry * 1000), *position)
        has_caught_up = asked is None
        while not self._has_ended():
            wake.clear()
            if position == self._last:
                has_caught_up = True
                if not await wait_for(wake, self._timing.heartbeat):
                    yield _HEARTBEAT
                continue
            batch = self._batches.get(position)
            if batch is None and has_caught_up:
                return  # too slow: it reads the rest from the log
            if batch is None:
                batch = await self._catch_up(position)
            yield batch.data
            position = batch.last

    async def _find_position(self, request: HttpRequest) -> _LogPosition | None:
        """Return the position that a client resumes from; ``None`` when it is new.

        A position that the log does not have leads to a reset.
        """
        field = request.fields.get("last-event-id", "")
        if not field:
            return None
        found = _ID.fullmatch(field)
        place = _UNKNOWN_POSITION if found is None else (int(found[1]), int(found[2]))
        is_known = place == self._last or place in self._batches
        return (
            place if is_known or await self._read_log(self._log.has, *place) else _UNKNOWN_POSITION
        )

    async def _catch_up(self, position: _LogPosition) -> _Batch:
        """Return the changes after ``position``, up to where all the others are."""
        last = self._last
        found = await self._read_log(self._log.after, position[0], _MOST_EVENTS)
        known = [entry for entry in found or () if entry[0] <= last[0]]
        if not known:
            return _Batch(last, b"event: reset\nid: %d-%d\ndata: {}\n\n" % last)
        return _batch(known)

    async def _read_log(self, question: Callable[..., _T], *about: int) -> _T:
        """Read the log for one client, within the limit of concurrent reads."""
        async with self._readers:
            return await to_thread.run_sync(question, *about)

    def _has_ended(self) -> bool:
        """True if polling has ended: the server stops, or an error occurred."""
        return self._stopping.is_set() or self._poll_task is None or self._poll_task.done()

    async def _start_polling(self, stopping: asyncio.Event) -> None:
        """Start the polling task, unless it runs."""
        async with self._opening:
            if self._poll_task is not None and not self._poll_task.done():
                return
            self._stopping = stopping
            self._clear_batches()
            self._last = await to_thread.run_sync(self._log.last)
            self._poll_task = asyncio.create_task(self._poll_log())

    async def _poll_log(self) -> None:
        """Poll for changes as long as there are clients; the streams end with it."""
        try:
            while self._clients and not await wait_for(self._stopping, self._timing.poll):
                try:
                    while self._clients and await self._poll_once():
                        pass
                except ResourceSyncError as error:
                    _LOG.warning("changes are not available now: %s", error)
        finally:
            for wake in self._clients:
                wake.set()

    async def _poll_once(self) -> bool:
        """Send the new changes; return whether there may be more."""
        found = await to_thread.run_sync(self._find_new, self._last)
        if found is None:
            # The log was started over: returning clients get a reset.
            self._clear_batches()
            self._last = await to_thread.run_sync(self._log.last)
        elif found:
            self._add_batch(_batch(found))
            self._sent += len(found)
        else:
            return False
        for number, wake in enumerate(tuple(self._clients)):
            wake.set()
            if number % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)  # let requests for documents run
        return found is not None and len(found) == _MOST_EVENTS

    def _find_new(self, last: _LogPosition) -> Sequence[tuple[int, Change]] | None:
        """Return the changes after ``last``; ``None`` when it is no longer in the log."""
        if self._log.last() == last:
            return ()
        return self._log.after(last[0], _MOST_EVENTS) if self._log.has(*last) else None

    def _add_batch(self, batch: _Batch) -> None:
        self._batches[self._last] = batch
        self._last = batch.last
        self._cached_bytes += len(batch.data)
        while len(self._batches) > _MOST_BATCHES or self._cached_bytes > self._most_cached:
            _, dropped = self._batches.popitem(last=False)
            self._cached_bytes -= len(dropped.data)

    def _clear_batches(self) -> None:
        self._batches.clear()
        self._cached_bytes = 0


def _batch(changes: Sequence[tuple[int, Change]]) -> _Batch:
    last = _UNKNOWN_POSITION
    parts: list[bytes] = []
    for number, change in changes:
        assert change.time is not None, "a catalogue gives each change its time"
        last = (number, to_microseconds(change.time))
        data = ndjson.write_change(number, change).rstrip(b"\n")
        parts.append(
            b"event: %s\nid: %d-%d\ndata: %s\n\n" % (change.kind.value.encode(), *last, data)
        )
    return _Batch(last, b"".join(parts))
