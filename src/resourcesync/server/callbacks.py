"""Where hubs reach a subscriber: ``GET`` asks whether a subscription is wanted, ``POST`` delivers.

The last part of the path is the token of one subscription, and all that identifies it. Nothing
else is answered here, and no body is read that belongs to no subscription.
"""

import asyncio
from collections.abc import Callable
from typing import Final, final

from anyio import to_thread
from starlette.types import Receive, Scope, Send

from resourcesync.server.bodies import announces_too_long, header_values, read_body
from resourcesync.server.exchange import HttpReply, refuse
from resourcesync.server.hub import run_in_thread, send_reply
from resourcesync.server.lifespans import serve_lifespan
from resourcesync.server.mounting import path_within
from resourcesync.websub.messages import MOST_PAYLOAD
from resourcesync.websub.standing import DeliveryFault
from resourcesync.websub.subscriber import Subscriber

_BODY_SECONDS: Final = 10.0
_BODIES: Final = 16
"""Deliveries that are read at a time: each may take a MiB."""
_CLOSE: Final = (b"connection", b"close")
_LONGEST_TOKEN: Final = 128
_TOO_LONG: Final = 413


def _nothing() -> None:
    """Do nothing."""


@final
class CallbackApplication:
    """The ASGI application of a subscriber, to be mounted at its ``callback_base``.

    Args:
        subscriber: What answers.
        start, end: Called at the start and the end of the server.
    """

    def __init__(
        self,
        subscriber: Subscriber,
        start: Callable[[], None] = _nothing,
        end: Callable[[], None] = _nothing,
    ) -> None:
        self._subscriber = subscriber
        self._start = start
        self._end = end
        self._bodies = asyncio.Semaphore(_BODIES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as ASGI 3 asks."""
        if scope["type"] == "lifespan":
            await serve_lifespan(receive, send, self._start, self._end)
        elif scope["type"] == "http":
            await send_reply(send, await self._answer(scope, receive))
        else:
            await send({"type": "websocket.close"})

    async def _answer(self, scope: Scope, receive: Receive) -> HttpReply:
        token = path_within(scope).removeprefix(b"/").decode("latin-1")
        if not token or len(token) > _LONGEST_TOKEN:
            return refuse(404, "Not found.", _CLOSE)
        if scope["method"] == "GET":
            query: bytes = scope.get("query_string", b"")
            return await run_in_thread(lambda: self._subscriber.verify(token, query))
        if scope["method"] != "POST":
            return refuse(405, "GET and POST only.", (b"allow", b"GET, POST"), _CLOSE)
        if not await to_thread.run_sync(self._subscriber.knows, token):
            # A former subscription is told so, which ends it; its body is not read.
            return await run_in_thread(lambda: self._subscriber.deliver(token, (), b""))
        if announces_too_long(scope, MOST_PAYLOAD):
            await to_thread.run_sync(self._subscriber.refuse, token, DeliveryFault.SIZE)
            return refuse(413, f"At most {MOST_PAYLOAD} bytes.", _CLOSE)
        async with self._bodies:
            body = await read_body(receive, most=MOST_PAYLOAD, seconds=_BODY_SECONDS)
            if isinstance(body, HttpReply):
                fault = DeliveryFault.SIZE if body.status == _TOO_LONG else DeliveryFault.BODY
                await to_thread.run_sync(self._subscriber.refuse, token, fault)
                return body
            signatures = header_values(scope, b"x-hub-signature")
            return await run_in_thread(lambda: self._subscriber.deliver(token, signatures, body))
