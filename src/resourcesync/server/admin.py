"""Operators' endpoints: health, metrics, and the state of each mirror as JSON.

They belong on an address of their own, which the public does not reach.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, final

from anyio import to_thread
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from resourcesync.errors import ResourceSyncError
from resourcesync.server.asgi import NOSNIFF, HttpRequest, answer, refuse
from resourcesync.server.caching import NO_STORE
from resourcesync.server.content_encoding import compress
from resourcesync.server.metrics import Metric, write_metrics

STATUS_PATH: Final = b"/api/status.json"
_LOG: Final = logging.getLogger(__name__)
_PATIENCE: Final = 5.0
_METRICS_TYPE: Final = "text/plain; version=0.0.4"

ReadinessCheck = Callable[[], None]
"""Function that raises a ``ResourceSyncError`` when the Source is not ready; called in a thread."""
MetricsSource = Callable[[], Iterable[Metric]]
"""Function that returns metrics; called in a thread."""


@final
class OperationsApplication:
    """The ASGI application with ``/livez``, ``/readyz`` and ``/metrics``.

    ``/livez`` answers as long as the server does anything at all; ``/readyz`` is 503 while the
    Source cannot be served, with the reason; ``/metrics`` has the metrics for Prometheus. A service
    of mirrors has its ``status``, too.
    """

    def __init__(
        self,
        *,
        look: ReadinessCheck,
        counts: Sequence[MetricsSource] = (),
        status: Callable[[], bytes] | None = None,
        patience: float = _PATIENCE,
    ) -> None:
        self._check_ready = look
        self._sources = counts
        self._status = status
        self._patience = patience
        self._busy = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as ASGI 3 requires; lifespans are not supported."""
        if scope["type"] == "http":
            await answer(self._respond, scope, receive, send)

    async def _respond(self, request: HttpRequest) -> Response:
        path = request.raw_path
        if path == b"/livez":
            return _text_response(b"live\n")
        if path == STATUS_PATH and self._status is not None:
            status = await to_thread.run_sync(self._status)
            fields = {**NO_STORE, **NOSNIFF}
            return await compress(request, Response(status, 200, fields, "application/json"))
        if path not in {b"/readyz", b"/metrics"}:
            return refuse(404, "Not found.")
        # One check at a time: frequent requests wait, and take no threads from readers.
        try:
            async with asyncio.timeout(self._patience), self._busy:
                if path == b"/metrics":
                    body = await to_thread.run_sync(
                        lambda: write_metrics(
                            figure for count in self._sources for figure in count()
                        )
                    )
                    return await compress(request, _text_response(body, _METRICS_TYPE))
                await to_thread.run_sync(self._check_ready)
                return _text_response(b"ready\n")
        except (ResourceSyncError, TimeoutError) as error:
            _LOG.warning("not ready: %s", error)
            why = error.message if isinstance(error, ResourceSyncError) else "check timed out"
            return refuse(503, f"Not ready: {why}", {"retry-after": "5"})


def _text_response(body: bytes, kind: str = "text/plain") -> Response:
    return Response(body, 200, NO_STORE, kind)
