"""Operators' endpoints: health, metrics, and the state of each mirror as JSON.

They belong on an address of their own, which the public does not reach.
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
        status: Returns the state of the mirrors as JSON; called in a thread.
        others: The application for all other paths: health, metrics, pages.
    """

    def __init__(self, status: Callable[[], bytes], others: ASGIApp) -> None:
        self._status = status
        self._fallback = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as ASGI 3 requires."""
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
"""Function that raises a ``ResourceSyncError`` when the Source is not ready; called in a thread."""
MetricsSource = Callable[[], Iterable[Metric]]
"""Function that returns metrics; called in a thread."""


@final
class OperationsApplication:
    """The ASGI application with ``/livez``, ``/readyz`` and ``/metrics``.

    ``/livez`` answers as long as the server does anything at all; ``/readyz`` is 503 while the
    Source cannot be served, with the reason; ``/metrics`` has the metrics for Prometheus.

    Args:
        look: The readiness check of the Source.
        counts: The sources of metrics.
        patience: Seconds that a check has.
    """

    def __init__(
        self,
        *,
        look: ReadinessCheck,
        counts: Sequence[MetricsSource] = (),
        patience: float = _PATIENCE,
    ) -> None:
        self._check_ready = look
        self._sources = counts
        self._patience = patience
        self._busy: asyncio.Lock | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as ASGI 3 requires; lifespans are not supported."""
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
        # One check at a time: frequent requests wait, and take no threads from readers.
        self._busy = self._busy or asyncio.Lock()
        try:
            async with asyncio.timeout(self._patience), self._busy:
                if path == b"/metrics":
                    return _text_reply(await to_thread.run_sync(self._write_metrics), _METRICS_TYPE)
                await to_thread.run_sync(self._check_ready)
                return _text_reply(b"ready\n")
        except (ResourceSyncError, TimeoutError) as error:
            _LOG.warning("not ready: %s", error)
            why = error.message if isinstance(error, ResourceSyncError) else "check timed out"
            return refuse(503, f"Not ready: {why}", (b"retry-after", b"5"))

    def _write_metrics(self) -> bytes:
        return write_metrics(figure for count in self._sources for figure in count())


def _text_reply(
    body: bytes, kind: tuple[bytes, bytes] = (b"content-type", b"text/plain")
) -> HttpReply:
    length = (b"content-length", b"%d" % len(body))
    return HttpReply(status=200, headers=(kind, length, _NO_STORE), body=body)
