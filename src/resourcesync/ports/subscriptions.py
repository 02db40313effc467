"""Push: the state that it stores, and the sender of its messages.

Times are whole microseconds since 1970-01-01T00:00:00Z, as they are stored.
"""

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from typing import Protocol

import msgspec

from resourcesync.ports.fetcher import FetchFailure, FetchRequest, FetchResponse


class Messenger(Protocol):
    """A sender of many messages at a time; a slow one delays no other."""

    def fetch(
        self, requests: Iterable[FetchRequest | None]
    ) -> Iterator[FetchResponse | FetchFailure]:
        """Send the requests; yield each outcome as it arrives, in no order.

        ``None`` says that there is nothing for the moment; it asks again soon while others are in
        flight. What ``requests`` raises passes, and gives up what is in flight.
        """


class SubscriptionIntent(msgspec.Struct, frozen=True, kw_only=True):
    """A request that the receiver has yet to confirm.

    Attributes:
        number: Its number in the store.
        mode: ``subscribe`` or ``unsubscribe``.
        topic, callback: The topic, and the receiver's address.
        secret: Signs deliveries; empty for none.
        lease: Seconds.
        requested: Time of the request.
        attempts: Number of verifications that failed.
        since: The number of the topic's newest payload when this was read. The receiver gets all
            later ones: none published while it answers is missed.
    """

    number: int = 0
    mode: str
    topic: str
    callback: str
    secret: bytes
    lease: int
    requested: int = 0
    attempts: int = 0
    since: int = 0

    def __repr__(self) -> str:
        asked = f"topic={self.topic!r}, callback={self.callback!r}"
        return f"SubscriptionIntent(number={self.number!r}, mode={self.mode!r}, {asked})"


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver that is subscribed to a topic.

    Attributes:
        number: Its number in the store.
        topic, callback: The topic, and the receiver's address.
        origin: The callback's scheme, host and port.
        secret: Signs deliveries; empty for none.
        expires: End of its lease.
        delivered: The number of the last payload that it has.
        attempts: Deliveries that failed since the last good one.
    """

    number: int
    topic: str
    callback: str
    origin: str
    secret: bytes
    expires: int
    delivered: int
    attempts: int

    def __repr__(self) -> str:
        return (
            f"Subscription(number={self.number!r}, topic={self.topic!r},"
            f" callback={self.callback!r}, expires={self.expires!r}, delivered={self.delivered!r})"
        )


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """A payload that was published for a topic.

    Attributes:
        number: Its number in the store; later ones have greater numbers.
        media_type: Its ``Content-Type``.
        body: Its bytes.
    """

    number: int
    media_type: str
    body: bytes


class DeliveryOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a delivery.

    Attributes:
        number: The subscription's.
        delivered: The number of the last payload it has now; 0 when it got none.
        attempts: Deliveries that failed since the last good one.
        due: Time of the next try, if there is more to deliver.
        is_over: True if the receiver refuses further deliveries.
    """

    number: int
    delivered: int = 0
    attempts: int = 0
    due: int = 0
    is_over: bool = False


class HubStore(Protocol):
    """The durable state of a hub; for several threads at a time."""

    def latest(self) -> int:
        """Return the latest moment that was stored, 0 at first."""

    def add_intent(self, intent: SubscriptionIntent) -> None:
        """Store a request; those of one receiver for one topic are confirmed in their order."""

    def count_intents(self) -> int:
        """Return the number of requests to confirm."""

    def count_subscriptions(self, topic: str | None = None) -> int:
        """Return the number of subscriptions, to one topic or in all."""

    def due_intents(self, now: int, most: int, busy: Collection[int]) -> list[SubscriptionIntent]:
        """Return the first due request of each receiver that is not busy."""

    def confirm(self, intent: SubscriptionIntent, expires: int) -> None:
        """Subscribe, or end a subscription, as was wished."""

    def postpone(self, intent: SubscriptionIntent, due: int) -> None:
        """Verify the receiver's intent again later."""

    def forget(self, intent: SubscriptionIntent) -> None:
        """Remove a request."""

    def accept(self, topic: str, payload: Payload, digest: bytes, now: int) -> bool:
        """Store a payload durably; ``False`` if it was published recently."""

    def due_deliveries(
        self, now: int, most: int, *, busy: Collection[int], full: Collection[str], late: bool
    ) -> list[Subscription]:
        """Return subscriptions that lack a payload and are due.

        Args:
            now: The moment.
            most: Number of at most.
            busy: The numbers of those with a delivery in flight.
            full: The origins with the most deliveries at a time.
            late: True to return those whose last delivery failed, False for the rest.
        """

    def next_payload(self, topic: str, after: int) -> Payload:
        """Return the first stored payload of a topic after a number; the caller knows of one."""

    def record_outcomes(self, outcomes: Iterable[DeliveryOutcome]) -> None:
        """Remember how deliveries ended, all or none."""

    def prune(self, now: int, oldest_intent: int) -> None:
        """End expired leases, remove old requests and delivered payloads; store the moment."""

    def next_due(self, now: int) -> int | None:
        """Return the next moment, later than ``now``, at which something may be done."""


class TopicSubscriber(msgspec.Struct, frozen=True, kw_only=True):
    """A subscriber as far as it may be shown: a callback is a secret of its receiver.

    Attributes:
        topic: The topic.
        origin: Scheme, host and port of the callback.
        expires: End of the lease, in microseconds.
        has_pending_delivery: True if a delivery is pending.
        attempts: Deliveries that failed since the last good one.
    """

    topic: str
    origin: str
    expires: int
    has_pending_delivery: bool = False
    attempts: int = 0


class FollowerState(StrEnum):
    """The state of a subscription of ours."""

    PENDING = "wanted"
    REQUESTED = "asked"
    ACTIVE = "active"


class ChannelSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription of ours to a channel, for one mirror.

    Attributes:
        name: The mirror.
        topic: The channel.
        hub: The hub of the subscription.
        state: Its state.
        token: The last part of the callback that is in use; empty before the first.
        secret: The secret that signs its deliveries.
        next_token, next_secret: Those that are requested now.
        lease_until: End of the lease; 0 before it was confirmed.
        attempts: Requests in a row that failed.
        due: Time of the next step.
        base: The address above the callback in use; empty if unknown.
    """

    name: str
    topic: str
    hub: str
    state: FollowerState = FollowerState.PENDING
    token: str = ""
    secret: bytes = b""
    next_token: str = ""
    next_secret: bytes = b""
    lease_until: int = 0
    attempts: int = 0
    due: int = 0
    base: str = ""

    def __repr__(self) -> str:
        return (
            f"ChannelSubscription(name={self.name!r}, topic={self.topic!r}, hub={self.hub!r},"
            f" state={self.state!r}, attempts={self.attempts!r}, due={self.due!r})"
        )


class SubscriberStore(Protocol):
    """The durable state of a subscriber; for several threads at a time."""

    def subscriptions(self) -> list[ChannelSubscription]:
        """Return all subscriptions."""

    def find_token(self, token: str) -> ChannelSubscription | None:
        """Return the subscription with a token: in use, or requested."""

    def save(
        self, follower: ChannelSubscription, before: ChannelSubscription | None = None
    ) -> bool:
        """Store a subscription in the place of the one of that name and topic.

        Args:
            follower: As it is now.
            before: As it must still be; ``None`` stores it in any case.

        Returns:
            True if it was stored.
        """

    def remove(self, follower: ChannelSubscription) -> None:
        """Forget a subscription."""
