"""WebSub over HTTP: a hub with its worker thread, and the callbacks of a subscriber.

The hub takes ``POST`` at its own address. A form is a request to subscribe; anything else is a
submission of a publisher.

At a callback, ``GET`` verifies a subscription and ``POST`` delivers. The last part of the path is
the token of one subscription, and all that identifies it. All other requests are refused, and no
body is read that belongs to no subscription.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Final, final

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from resourcesync.errors import ResourceSyncError, StoppedError, StorageError
from resourcesync.ports import Clock, Messenger
from resourcesync.push_state.stores import FileHub
from resourcesync.server import asgi
from resourcesync.server.caching import NO_STORE
from resourcesync.server.metrics import Metric, counter, gauge
from resourcesync.websub.delivery import OUTCOMES, Deliveries
from resourcesync.websub.hub import Hub, HubRules
from resourcesync.websub.messages import FORM, MOST_FORM, MOST_PAYLOAD, TextResponse
from resourcesync.websub.subscriber import Subscriber
from resourcesync.websub.subscription_status import DeliveryFault

_LOG: Final = logging.getLogger(__name__)

BODY_SECONDS: Final = 10.0
"""Seconds in which the body of a request has to arrive."""
_BODIES: Final = 16
"""Number of bodies that are read at a time: each may take a MiB."""
_LONGEST_SLEEP: Final = 60.0
_AFTER_FAULT: Final = 5.0
_PLAIN: Final = "text/plain; charset=utf-8"
_LONGEST_TOKEN: Final = 128
_TOO_LONG: Final = 413


@final
class HubApplication:
    """The ASGI application of a hub, and the thread that verifies and delivers for it.

    ``path`` is where it is mounted in the application of the Source, such as ``/hub``.
    """

    def __init__(
        self,
        store: FileHub,
        clock: Clock,
        rules: Callable[[], HubRules],
        deliveries: Deliveries,
        messenger: Messenger,
        on_end: Callable[[], None],
    ) -> None:
        self.store, self.deliveries, self.path = store, deliveries, ""
        self._hub = Hub(store, clock, rules, wake=self._wake)
        self._messenger, self._on_end = messenger, on_end
        self._bodies = asyncio.Semaphore(_BODIES)
        self._wake_event = threading.Event()
        self._is_stopped = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as ASGI 3 requires."""
        await asgi.answer_any(self._answer, scope, receive, send)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Deliver while the block runs, first the unfinished work of the last time."""
        thread = threading.Thread(target=self._deliver, name="resourcesync-hub", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_stopped = True
            self.deliveries.stop()
            self._wake_event.set()
            thread.join()
            self._on_end()
            self.store.close()

    def figures(self) -> Iterator[Metric]:
        """Yield the number of subscriptions, and the outcomes of deliveries and requests."""
        subscribed = float(self.store.count_subscriptions())
        what = "Subscriptions to the channels of this Source."
        yield gauge("subscriptions", what, {(): subscribed})
        yield counter(
            "notifications_total",
            "Deliveries and subscription requests since the start, by outcome.",
            {
                (("direction", "out"), ("outcome", outcome)): self.deliveries.counts[outcome]
                for outcome in OUTCOMES
            },
        )

    def _wake(self) -> None:
        self.deliveries.wake()
        self._wake_event.set()

    def _deliver(self) -> None:
        while not self._is_stopped:
            try:
                for outcome in self._messenger.fetch(self.deliveries.requests()):
                    self.deliveries.record_outcome(outcome)
                nap = self.deliveries.pause()
            except StoppedError:
                nap = 0.0
            except Exception as error:  # noqa: BLE001 - one fault must not end all deliveries
                is_bug = not isinstance(error, ResourceSyncError)
                level = logging.ERROR if is_bug else logging.WARNING
                text = "the hub pauses for %g s: %s"
                _LOG.log(level, text, _AFTER_FAULT, error, exc_info=is_bug)
                nap = _AFTER_FAULT
                try:
                    self.deliveries.give_up()
                except StorageError as error:
                    _LOG.warning("the hub cannot store how deliveries ended: %s", error)
            self._wake_event.wait(min(nap, _LONGEST_SLEEP))
            self._wake_event.clear()

    async def _answer(self, request: Request) -> Response:
        if asgi.path_within(request.scope) not in {b"", b"/"}:
            return asgi.refuse(404, "Not found.")
        if request.method != "POST":
            return asgi.refuse(405, "This is a hub: use POST.", {"allow": "POST"})
        fields = request.headers
        media_type = fields.get("content-type", "")
        is_form = media_type.partition(";")[0].strip().lower() == FORM
        most = MOST_FORM if is_form else MOST_PAYLOAD
        async with self._bodies:
            body = await asgi.read_body(request, most=most, seconds=BODY_SECONDS)
        if is_form:
            peer = request.client.host if request.client else ""
            return await _run_in_thread(lambda: self._hub.handle_form(body, peer))
        link, signatures = ", ".join(fields.getlist("link")), fields.getlist("x-hub-signature")
        return await _run_in_thread(lambda: self._hub.submit(body, media_type, link, signatures))


async def _run_in_thread(ask: Callable[[], TextResponse]) -> Response:
    """Return the response of a function, run in a worker thread; 503 when the store fails."""
    try:
        return _text_response(await to_thread.run_sync(ask))
    except StorageError as error:
        _LOG.warning("%s", error)
        return asgi.refuse(503, "It cannot be stored now.", {"retry-after": "30"})


def _text_response(found: TextResponse) -> Response:
    retry = {} if found.retry_after is None else {"retry-after": str(found.retry_after)}
    # As bytes, since a challenge is repeated exactly.
    return Response(
        found.text.encode(), found.status, {**asgi.NOSNIFF, **NO_STORE, **retry}, _PLAIN
    )


@final
class CallbackApplication:
    """The ASGI application of a subscriber, to be mounted at its ``callback_base``."""

    def __init__(self, subscriber: Subscriber) -> None:
        self._subscriber = subscriber
        self._bodies = asyncio.Semaphore(_BODIES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as ASGI 3 requires."""
        await asgi.answer_any(self._answer, scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        subscriber = self._subscriber
        token = asgi.path_within(request.scope).removeprefix(b"/").decode("latin-1")
        if not token or len(token) > _LONGEST_TOKEN:
            return asgi.refuse(404, "Not found.", asgi.CLOSE)
        if request.method == "GET":
            query: bytes = request.scope.get("query_string", b"")
            return await _run_in_thread(lambda: subscriber.verify(token, query))
        if request.method != "POST":
            return asgi.refuse(405, "GET and POST only.", {"allow": "GET, POST"}, asgi.CLOSE)
        if not await to_thread.run_sync(subscriber.knows, token):
            # Deliveries to a former subscription get 410, which ends it; their bodies are not read.
            return await _run_in_thread(lambda: subscriber.deliver(token, (), b""))
        async with self._bodies:
            try:
                body = await asgi.read_body(request, most=MOST_PAYLOAD, seconds=BODY_SECONDS)
            except HTTPException as refusal:
                is_long = refusal.status_code == _TOO_LONG
                fault = DeliveryFault.SIZE if is_long else DeliveryFault.BODY
                await to_thread.run_sync(subscriber.refuse, token, fault)
                raise
            signatures = request.headers.getlist("x-hub-signature")
            return await _run_in_thread(lambda: subscriber.deliver(token, signatures, body))
