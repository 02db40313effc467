"""Rows of the state of a hub and of a subscriber. Pure.

Times are whole microseconds since 1970-01-01T00:00:00Z, as they are stored. A row that is read by
itself has its fields in the order of its columns.
"""

from enum import StrEnum
from urllib.parse import urlsplit

import msgspec


class SubscriptionIntent(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A request that the receiver has yet to confirm.

    ``since`` is the number of the topic's newest payload when this was read: the receiver gets all
    later ones, so that none published while it answers is missed. An empty secret signs nothing.
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

    @property
    def origin(self) -> str:
        """Return scheme, host and port of the callback, as one text."""
        parts = urlsplit(self.callback)
        return f"{parts.scheme}://{parts.netloc}".lower()

    def __repr__(self) -> str:
        asked = f"topic={self.topic!r}, callback={self.callback!r}"
        return f"SubscriptionIntent(number={self.number!r}, mode={self.mode!r}, {asked})"


class Subscription(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A receiver that is subscribed to a topic.

    ``origin`` is the callback's scheme, host and port, ``delivered`` the number of the last payload
    that it has, ``attempts`` the deliveries that failed since the last good one.
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


class Payload(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A payload that was published for a topic."""

    number: int
    media_type: str
    body: bytes


class DeliveryOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a delivery.

    ``delivered`` is 0 when the subscription ``number`` got nothing; ``due`` is the time of the next
    try, if there is more to deliver; ``is_over`` says that the receiver refuses further ones.
    """

    number: int
    delivered: int = 0
    attempts: int = 0
    due: int = 0
    is_over: bool = False


class TopicSubscriber(msgspec.Struct, frozen=True):
    """A subscriber as far as it may be shown: a callback is a secret of its receiver."""

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


class ChannelSubscription(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A subscription of ours to a channel, for one mirror.

    ``token`` is the last part of the callback in use and ``base`` the address above it, ``secret``
    what signs its deliveries; ``next_token`` and ``next_secret`` are those that are requested now.
    ``lease_until`` is 0 before it was confirmed.
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
