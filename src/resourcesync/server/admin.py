"""What operators of mirrors see: health, figures, the state of each mirror as JSON."""

from collections.abc import Callable
from typing import Final, final

from anyio import to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from resourcesync.server.exchange import HttpExchange, HttpReply, HttpRequest, refuse_request
from resourcesync.server.mounting import path_within

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
