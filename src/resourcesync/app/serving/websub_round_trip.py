"""A test of the whole way of a notification on this machine: hub, subscriber and delivery."""

import secrets
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import SystemRandom
from typing import Final

import msgspec
from starlette.types import Receive, Scope, Send

from resourcesync.adapters.http import CurlFetcher
from resourcesync.adapters.hub import FileFollowers
from resourcesync.app.hubs import new_token, open_hub, open_messenger
from resourcesync.app.serving.applications import LateApplication
from resourcesync.errors import SourceUnavailableError
from resourcesync.ports import Clock
from resourcesync.ports.subscriptions import FollowerState
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.server.websub import CallbackApplication, HubApplication
from resourcesync.websub import publisher
from resourcesync.websub.channels import Channel
from resourcesync.websub.hub import HubRules
from resourcesync.websub.publisher import Notice
from resourcesync.websub.subscriber import Subscriber

_PATIENCE: Final = 15.0


class RoundTrip(msgspec.Struct, frozen=True, kw_only=True):
    """Durations of the steps, in seconds.

    Attributes:
        subscribed: From the request until the hub had verified it.
        accepted: From the submission until the hub had stored it.
        delivered: From the submission until the subscriber knew that it should poll.
    """

    subscribed: float
    accepted: float
    delivered: float


def try_round_trip(topic: str, body: bytes, clock: Clock) -> RoundTrip:
    """Subscribe to a topic at a hub of our own on loopback, and send it a notification.

    Nothing leaves this machine, and nothing is stored.

    Args:
        topic: The channel.
        body: The notification.
        clock: Time.

    Raises:
        SourceUnavailableError: A step took more than 15 seconds.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="resourcesync-")))
        late = LateApplication()
        base = stack.enter_context(ServerThread(late)).uri
        key = secrets.token_bytes()
        rules = HubRules(address=f"{base}hub", topics=frozenset({topic}), key=key)
        hub = open_hub(folder / "hub.db", lambda: rules, clock, look=lambda _: None, private=True)
        hinted = threading.Event()
        followers = FileFollowers(folder / "push.db")
        stack.callback(followers.close)
        messenger = open_messenger(clock, private=True)
        stack.callback(messenger.close)
        subscriber = _subscriber(followers, messenger, clock, f"{base}push/", hinted.set)
        hub.application.start()
        stack.callback(hub.application.end)
        late.application = _HubAndSubscriber(hub.application, CallbackApplication(subscriber))

        began = clock.monotonic()
        subscriber.follow("test", [Channel(topic=topic, hubs=(rules.address,))])
        subscriber.tick()
        _wait_for(
            hinted, "the hub did not verify the subscription"
        )  # the confirmation is a hint too
        assert [subscription.state for subscription in followers.subscriptions()] == [
            FollowerState.ACTIVE
        ]
        subscribed = clock.monotonic() - began

        hinted.clear()
        began = clock.monotonic()
        [outcome] = publisher.send_notices(
            messenger, [Notice(hub=rules.address, topic=topic, body=body)], key
        )
        accepted = clock.monotonic() - began
        if outcome.problem or outcome.is_plain:
            raise SourceUnavailableError("the hub did not accept the notification", uri=topic)
        _wait_for(hinted, "the notification was not delivered")
        delivered = clock.monotonic() - began
    return RoundTrip(subscribed=subscribed, accepted=accepted, delivered=delivered)


def _subscriber(
    followers: FileFollowers,
    messenger: CurlFetcher,
    clock: Clock,
    callback_base: str,
    on_hint: Callable[[], None],
) -> Subscriber:
    return Subscriber(
        followers,
        messenger,
        clock,
        callback_base=callback_base,
        on_hint=lambda _: on_hint(),
        token=new_token,
        chance=SystemRandom().random,
        hint_every=0.0,
    )


def _wait_for(event: threading.Event, message: str) -> None:
    if not event.wait(_PATIENCE):
        raise SourceUnavailableError(
            message,
            evidence=(("waited", f"{_PATIENCE:g} s"),),
            hint="check that programs may connect to 127.0.0.1 on this machine",
        )


class _HubAndSubscriber:
    """The hub, and the subscriber below ``/push``."""

    def __init__(self, hub: HubApplication, callbacks: CallbackApplication) -> None:
        self._hub = hub
        self._callbacks = callbacks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an ASGI 3 request."""
        prefix = "/" + scope["path"].split("/", 2)[1]
        application = self._callbacks if prefix == "/push" else self._hub
        await application({**scope, "root_path": prefix}, receive, send)
