"""Push: the state that it stores, and the sender of its messages.

Times are whole microseconds since 1970-01-01T00:00:00Z, as they are stored.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from resourcesync.ports.fetcher import FetchFailure, FetchRequest, FetchResponse


class Messenger(Protocol):
    """Sends many messages at a time; one that is slow holds up no other."""

    def fetch(
        self, requests: Iterable[FetchRequest | None]
    ) -> Iterator[FetchResponse | FetchFailure]:
        """Send what is to be sent; yield each outcome as it comes, in no order.

        ``None`` says that there is nothing for the moment; it asks again soon while others are in
        flight. What ``requests`` raises passes, and gives up what is in flight.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionIntent:
    """A wish that a receiver has yet to confirm.

    Attributes:
        number: Its number in the store.
        mode: ``subscribe`` or ``unsubscribe``.
        topic, callback: For what, and for whom.
        secret: Signs deliveries; empty for none.
        lease: Seconds.
        echo: What the receiver wants to see again.
        asked: When it was asked.
        attempts: How often the receiver was asked in vain.
        since: The number of the topic's newest payload when this was read. The receiver is told
            what comes after it: what is published while it answers is not missed.
    """

    number: int = 0
    mode: str
    topic: str
    callback: str
    secret: bytes = field(repr=False)
    lease: int
    echo: str
    requested: int
    attempts: int = 0
    since: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A receiver that is to be told of a topic.

    Attributes:
        number: Its number in the store.
        topic, callback: Of what, and where.
        origin: The callback's scheme, host and port.
        secret: Signs deliveries; empty for none.
        expires: When its lease ends.
        delivered: The number of the last payload that it has.
        attempts: Deliveries that failed since the last good one.
    """

    number: int
    topic: str
    callback: str
    origin: str
    secret: bytes = field(repr=False)
    expires: int
    delivered: int
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Something that was told of a topic.

    Attributes:
        number: Its number in the store; later ones have greater numbers.
        media_type: Its ``Content-Type``.
        body: Its bytes.
    """

    number: int
    media_type: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOutcome:
    """How a delivery ended.

    Attributes:
        number: The subscription's.
        delivered: The number of the last payload it has now; 0 when it got none.
        attempts: Deliveries that failed since the last good one.
        due: When to try again, if there is more for it.
        is_over: True if the receiver wants no more.
    """

    number: int
    delivered: int = 0
    attempts: int = 0
    due: int = 0
    is_over: bool = False


class HubStore(Protocol):
    """What a hub remembers, durably; for several threads at a time."""

    def latest(self) -> int:
        """Return the latest moment that was stored, 0 at first."""
        ...

    def add_intent(self, intent: SubscriptionIntent) -> None:
        """Remember a wish; those of one receiver for one topic are confirmed in their order."""
        ...

    def count_intents(self) -> int:
        """Return how many wishes wait to be confirmed."""
        ...

    def count_subscriptions(self, topic: str | None = None) -> int:
        """Return how many subscriptions there are, to one topic or in all."""
        ...

    def find(self, topic: str, callback: str) -> Subscription | None:
        """Return one subscription."""
        ...

    def has_intent(self, topic: str, callback: str) -> bool:
        """True if a wish of that receiver waits to be confirmed."""
        ...

    def due_intents(self, now: int, most: int, busy: Collection[int]) -> list[SubscriptionIntent]:
        """Return the first wish of each receiver that may be asked now, but for the busy ones."""
        ...

    def confirm(self, intent: SubscriptionIntent, expires: int) -> None:
        """Subscribe, or end a subscription, as was wished."""
        ...

    def postpone(self, intent: SubscriptionIntent, due: int) -> None:
        """Ask the receiver again later."""
        ...

    def forget(self, intent: SubscriptionIntent) -> None:
        """Forget a wish."""
        ...

    def accept(self, topic: str, payload: Payload, digest: bytes, now: int) -> bool:
        """Store what is to be told, durably; ``False`` when it was told lately already."""
        ...

    def due_deliveries(
        self, now: int, most: int, *, busy: Collection[int], full: Collection[str], late: bool
    ) -> list[Subscription]:
        """Return subscriptions that lack a payload and may be told now.

        Args:
            now: The moment.
            most: Number of at most.
            busy: The numbers of those that are being told.
            full: The origins that are being told enough at a time.
            late: True if to give those whose last delivery failed, or the others.
        """
        ...

    def payloads(self, topic: str, after: int) -> Sequence[Payload]:
        """Return what is kept of a topic after a number, oldest first."""
        ...

    def record_outcomes(self, outcomes: Iterable[DeliveryOutcome]) -> None:
        """Remember how deliveries ended, all or none."""
        ...

    def prune(self, now: int, oldest_intent: int) -> None:
        """End leases that are over, forget old wishes and what everybody has; store the moment."""
        ...

    def next_due(self, now: int) -> int | None:
        """Return the next moment, later than ``now``, at which something may be done."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSubscriber:
    """Who is told of a topic, as far as others may know: a callback is a secret of its receiver.

    Attributes:
        topic: The topic.
        origin: Scheme, host and port of the callback.
        expires: When the lease ends, in microseconds.
        is_owed: True if something is still to be delivered.
        attempts: Deliveries that failed since the last good one.
    """

    topic: str
    origin: str
    expires: int
    has_pending_delivery: bool = False
    attempts: int = 0


class FollowerState(StrEnum):
    """How far a subscription of ours is."""

    PENDING = "wanted"
    REQUESTED = "asked"
    ACTIVE = "active"
    LEAVING = "leaving"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSubscription:
    """A subscription of ours to a channel, for one mirror.

    Attributes:
        name: The mirror.
        topic: The channel.
        hub: Where it is subscribed.
        state: How far it is.
        token: The last part of the callback that is in use; empty before the first.
        secret: What signs its deliveries.
        next_token, next_secret: Those that are asked for now.
        former_token: The one before, whose deliveries are no longer wanted.
        lease_until: When the hub will end it; 0 before it was confirmed.
        attempts: Requests in a row that led to nothing.
        due: When the next thing is to be done.
        base: The address below which the callback in use lies; empty where it is not known.
    """

    name: str
    topic: str
    hub: str
    state: FollowerState = FollowerState.PENDING
    token: str = field(default="", repr=False)
    secret: bytes = field(default=b"", repr=False)
    next_token: str = field(default="", repr=False)
    next_secret: bytes = field(default=b"", repr=False)
    previous_token: str = field(default="", repr=False)
    lease_until: int = 0
    attempts: int = 0
    due: int = 0
    base: str = ""


class SubscriberStore(Protocol):
    """What a subscriber remembers, durably; for several threads at a time."""

    def subscriptions(self) -> list[ChannelSubscription]:
        """Return all subscriptions."""
        ...

    def find_token(self, token: str) -> ChannelSubscription | None:
        """Return the subscription that has a token, in use, asked for or former."""
        ...

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
        ...

    def remove(self, follower: ChannelSubscription) -> None:
        """Forget a subscription."""
        ...
