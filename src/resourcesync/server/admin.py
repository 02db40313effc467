"""What operators of mirrors see: health, figures, the state of each mirror as JSON.

What those who run a server ask it: whether it lives, whether it can serve, its figures.

It belongs on an address of its own, which the public does not reach.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, final

from anyio import to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from resourcesync.errors import ResourceSyncError
from resourcesync.server.exchange import (
    HttpExchange,
    HttpReply,
    HttpRequest,
    refuse,
    refuse_request,
)
from resourcesync.server.metrics import Metric, write_metrics
from resourcesync.server.mounts import path_within

STATUS_PATH: Final = b"/api/status.json"
_HEADERS: Final = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


@final
class AdminApplication:
    """The ASGI application of an operator's address; the public does not reach it.

    Args:
        status: Gives the state of the mirrors as JSON; called in a thread.
        others: Answers all other paths: health, figures, pages.
    """

    def __init__(self, status: Callable[[], bytes], others: ASGIApp) -> None:
        self._status = status
        self._fallback = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as ASGI 3 asks."""
        if scope["type"] != "http" or path_within(scope) != STATUS_PATH:
            await self._fallback(scope, receive, send)
            return
        exchange = HttpExchange(HttpRequest.read(scope, STATUS_PATH), receive, send)
        refused = refuse_request(exchange.request)
        await exchange.send(refused or await self._status_reply())

    async def _status_reply(self) -> HttpReply:
        body = await to_thread.run_sync(self._status)
        length = (b"content-length", b"%d" % len(body))
        return HttpReply(status=200, headers=(*_HEADERS, length), body=body)


_LOG: Final = logging.getLogger(__name__)

_PATIENCE: Final = 5.0
_METRICS_TYPE: Final = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
_NO_STORE: Final = (b"cache-control", b"no-store")

ReadinessCheck = Callable[[], None]
"""Raises a ``ResourceSyncError`` when the Source cannot be served; called in a thread."""
MetricsSource = Callable[[], Iterable[Metric]]
"""Gives figures; called in a thread."""


@final
class OperationsApplication:
    """The ASGI application with ``/livez``, ``/readyz`` and ``/metrics``.

    ``/livez`` answers as long as the server does anything at all; ``/readyz`` is 503 while the
    Source cannot be served, and says why; ``/metrics`` has the figures for Prometheus.

    Args:
        look: Tells whether the Source can be served.
        counts: Give the figures, each its own.
    """

    def __init__(self, *, look: ReadinessCheck, counts: Sequence[MetricsSource] = ()) -> None:
        self._check_ready = look
        self._sources = counts
        self._busy: asyncio.Lock | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as ASGI 3 asks; it knows no lifespan."""
        if scope["type"] != "http":
            return
        path = path_within(scope)
        exchange = HttpExchange(HttpRequest.read(scope, path), receive, send)
        await exchange.send(refuse_request(exchange.request) or await self._answer(path))

    async def _answer(self, path: bytes) -> HttpReply:
        if path == b"/livez":
            return _text_reply(b"live\n")
        if path not in {b"/readyz", b"/metrics"}:
            return refuse(404, "Not found.")
        # One at a time: who asks too often waits, and takes no threads from the readers.
        self._busy = self._busy or asyncio.Lock()
        try:
            async with asyncio.timeout(_PATIENCE), self._busy:
                if path == b"/metrics":
                    return _text_reply(await to_thread.run_sync(self._write_metrics), _METRICS_TYPE)
                await to_thread.run_sync(self._check_ready)
                return _text_reply(b"ready\n")
        except (ResourceSyncError, TimeoutError) as error:
            _LOG.warning("not ready: %s", error)
            why = error.message if isinstance(error, ResourceSyncError) else "it takes too long"
            return refuse(503, f"Not ready: {why}", (b"retry-after", b"5"))

    def _write_metrics(self) -> bytes:
        return write_metrics(figure for count in self._sources for figure in count())


def _text_reply(
    body: bytes, kind: tuple[bytes, bytes] = (b"content-type", b"text/plain")
) -> HttpReply:
    length = (b"content-length", b"%d" % len(body))
    return HttpReply(status=200, headers=(kind, length, _NO_STORE), body=body)
