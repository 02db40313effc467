"""WebSub over HTTP: a hub with its worker thread, and the callbacks of a subscriber.

The hub takes ``POST`` at its own address, and for clients of PubSubHubbub 0.3 at ``/subscribe`` and
``/publish`` below it. A form is a request to subscribe or a ping; anything else is a submission of
a publisher.

At a callback, ``GET`` verifies a subscription and ``POST`` delivers. The last part of the path is
the token of one subscription, and all that identifies it. All other requests are refused, and no
body is read that belongs to no subscription.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Final, final

from anyio import to_thread
from starlette.types import Receive, Scope, Send

from resourcesync.errors import ResourceSyncError, StoppedError, StorageError
from resourcesync.ports.subscriptions import Messenger
from resourcesync.server.exchange import (
    HttpReply,
    announces_too_long,
    header_values,
    read_body,
    refuse,
)
from resourcesync.server.mounts import path_within, serve_lifespan
from resourcesync.websub.delivery import Deliveries
from resourcesync.websub.hub import Hub, Submission
from resourcesync.websub.messages import FORM, MOST_FORM, MOST_PAYLOAD, TextResponse
from resourcesync.websub.subscriber import Subscriber
from resourcesync.websub.subscription_status import DeliveryFault

_LOG: Final = logging.getLogger(__name__)

_PATHS: Final = frozenset({b"", b"/", b"/publish", b"/subscribe"})
BODY_SECONDS: Final = 10.0
"""Seconds in which the body of a request has to arrive."""
_BODIES: Final = 16
"""Number of bodies that are read at a time: each may take a MiB."""
_WAIT_SECONDS: Final = 10.0
_WAIT_STEP: Final = 0.05
_LONGEST_SLEEP: Final = 60.0
_AFTER_FAULT: Final = 5.0
_ACCEPTED: Final = 202
_NO_CONTENT: Final = 204
_PLAIN: Final = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
)


@final
class HubWorker:
    """Thread that verifies and delivers for a hub.

    Args:
        deliveries: The pending verifications and deliveries.
        messenger: The messenger; used by this thread alone.
    """

    def __init__(self, deliveries: Deliveries, messenger: Messenger) -> None:
        self._deliveries = deliveries
        self._messenger = messenger
        self._wake_event = threading.Event()
        self._is_stopped = False
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Signal new work."""
        self._deliveries.wake()
        self._wake_event.set()

    def start(self) -> None:
        """Start: first with the unfinished work of the last time."""
        self._thread = threading.Thread(target=self._run, name="resourcesync-hub", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Cancel requests in flight, and end; the store retains the unfinished work."""
        self._is_stopped = True
        self._deliveries.stop()
        self._wake_event.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._is_stopped:
            try:
                for outcome in self._messenger.fetch(self._deliveries.requests()):
                    self._deliveries.record_outcome(outcome)
                nap = self._deliveries.pause()
            except StoppedError:
                nap = 0.0
            except ResourceSyncError as error:
                _LOG.warning("the hub pauses for %g s: %s", _AFTER_FAULT, error)
                nap = _AFTER_FAULT
                self._abandon()
            except Exception:  # noqa: BLE001 - one fault must not end all deliveries
                _LOG.exception("the hub pauses for %g s", _AFTER_FAULT)
                nap = _AFTER_FAULT
                self._abandon()
            self._wake_event.wait(min(nap, _LONGEST_SLEEP))
            self._wake_event.clear()

    def _abandon(self) -> None:
        try:
            self._deliveries.give_up()
        except StorageError as error:
            _LOG.warning("the hub cannot store how deliveries ended: %s", error)


@final
class HubApplication:
    """The ASGI application of a hub, to be mounted at its address.

    Args:
        hub: The hub.
        worker: The worker; started and ended with the application.
        on_end: Called after the end.
    """

    def __init__(self, hub: Hub, worker: HubWorker, on_end: Callable[[], None]) -> None:
        self._hub = hub
        self._worker = worker
        self._on_end = on_end
        self._bodies = asyncio.Semaphore(_BODIES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as ASGI 3 requires."""
        if scope["type"] == "lifespan":
            await serve_lifespan(receive, send, self.start, self.end)
        elif scope["type"] == "http":
            await send_reply(send, await self._answer(scope, receive))
        else:
            await send({"type": "websocket.close"})

    def start(self) -> None:
        """Start to deliver, as the start of the server does."""
        self._worker.start()

    def end(self) -> None:
        """Cancel requests in flight, as the end of the server does; the store retains them."""
        self._worker.stop()
        self._on_end()

    async def _answer(self, scope: Scope, receive: Receive) -> HttpReply:
        if path_within(scope) not in _PATHS:
            return refuse(404, "Not found.")
        if scope["method"] != "POST":
            return refuse(405, "This is a hub: use POST.", (b"allow", b"POST"))
        media_type = "".join(header_values(scope, b"content-type")[:1])
        is_form = media_type.partition(";")[0].strip().lower() == FORM
        most = MOST_FORM if is_form else MOST_PAYLOAD
        if announces_too_long(scope, most):
            return refuse(413, f"At most {most} bytes.", (b"connection", b"close"))
        async with self._bodies:
            body = await read_body(receive, most=most, seconds=BODY_SECONDS)
        if isinstance(body, HttpReply):
            return body
        if is_form:
            return await self._answer_form(body, scope)
        submission = Submission(
            body=body,
            media_type=media_type,
            link=", ".join(header_values(scope, b"link")),
            signatures=header_values(scope, b"x-hub-signature"),
        )
        return await run_in_thread(lambda: self._hub.submit(submission))

    async def _answer_form(self, body: bytes, scope: Scope) -> HttpReply:
        peer = (scope.get("client") or ("", 0))[0]
        reply = await run_in_thread(lambda: self._hub.handle_form(body, peer))
        if reply.status != _ACCEPTED:
            return reply
        for _ in range(int(_WAIT_SECONDS / _WAIT_STEP)):
            found = await to_thread.run_sync(self._hub.outcome, body)
            if found is not None:
                return reply_of(found)
            await asyncio.sleep(_WAIT_STEP)
        return reply


async def run_in_thread(ask: Callable[[], TextResponse]) -> HttpReply:
    """Return the reply of a function, run in a worker thread; 503 when the store fails."""
    try:
        return reply_of(await to_thread.run_sync(ask))
    except StorageError as error:
        _LOG.warning("%s", error)
        return refuse(503, "It cannot be stored now.", (b"retry-after", b"30"))


def reply_of(found: TextResponse) -> HttpReply:
    """Return an answer as HTTP: plain text that no browser takes for anything else."""
    body = found.text.encode()  # exactly, since a challenge is repeated byte by byte
    headers = [*_PLAIN]
    if found.status != _NO_CONTENT:
        headers.append((b"content-length", str(len(body)).encode()))
    if found.retry_after is not None:
        headers.append((b"retry-after", str(found.retry_after).encode()))
    return HttpReply(status=found.status, headers=tuple(headers), body=body)


async def send_reply(send: Send, reply: HttpReply) -> None:
    """Send a whole reply."""
    await send(
        {"type": "http.response.start", "status": reply.status, "headers": list(reply.headers)}
    )
    await send({"type": "http.response.body", "body": reply.body})


"""Number of deliveries that are read at a time: each may take a MiB."""
_CLOSE: Final = (b"connection", b"close")
_LONGEST_TOKEN: Final = 128
_TOO_LONG: Final = 413


def _nothing() -> None:
    """Do nothing."""


@final
class CallbackApplication:
    """The ASGI application of a subscriber, to be mounted at its ``callback_base``.

    Args:
        subscriber: The subscriber.
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
        """Answer a request as ASGI 3 requires."""
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
            # Deliveries to a former subscription get 410, which ends it; their bodies are not read.
            return await run_in_thread(lambda: self._subscriber.deliver(token, (), b""))
        if announces_too_long(scope, MOST_PAYLOAD):
            await to_thread.run_sync(self._subscriber.refuse, token, DeliveryFault.SIZE)
            return refuse(413, f"At most {MOST_PAYLOAD} bytes.", _CLOSE)
        async with self._bodies:
            body = await read_body(receive, most=MOST_PAYLOAD, seconds=BODY_SECONDS)
            if isinstance(body, HttpReply):
                fault = DeliveryFault.SIZE if body.status == _TOO_LONG else DeliveryFault.BODY
                await to_thread.run_sync(self._subscriber.refuse, token, fault)
                return body
            signatures = header_values(scope, b"x-hub-signature")
            return await run_in_thread(lambda: self._subscriber.deliver(token, signatures, body))
