"""How our subscriptions stand: what operators are told of them.

Deliveries are counted since this program began; a subscription itself is remembered longer.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.ports import Clock
from resourcesync.ports.subscriptions import ChannelSubscription, FollowerState


class SubscriptionStatus(StrEnum):
    """What a subscription is to an operator."""

    VERIFIED = "verified"
    PENDING = "pending"
    REFUSED = "refused"
    ENDING = "ending"


class DeliveryFault(StrEnum):
    """Why a delivery was refused."""

    SIGNATURE = "signature"
    """It is not signed as agreed."""
    SIZE = "size"
    """It is longer than a notification may be."""
    BODY = "body"
    """It came too slowly, or was cut short."""
    ENDED = "ended"
    """It came to a former callback, as happens after each renewal, or is of what is being ended."""


class SubscriptionProblem(StrEnum):
    """What keeps a subscription from being verified, or renewed."""

    AWAY = "away"
    """The hub does not answer, or does not ask back."""
    NO = "no"
    """The hub answers that it will not."""
    DENIED = "denied"
    """The hub says that it ended it (WebSub §5.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionReport:
    """A subscription of a mirror to a channel, as it stands.

    Attributes:
        mirror: The mirror.
        topic: The channel.
        hub: Where it is subscribed.
        status: How it stands.
        until: When its lease ends, UTC; ``None`` before it was verified.
        reason: What went wrong with the last request for it, in words; empty for nothing.
        accepted: Deliveries that were signed as agreed.
        last: When the last of them came, UTC.
        refusals: Why others were not taken, and how many of each.
    """

    mirror: str
    topic: str
    hub: str
    status: SubscriptionStatus
    until: datetime | None = None
    reason: str = ""
    accepted: int = 0
    last: datetime | None = None
    refusals: tuple[tuple[DeliveryFault, int], ...] = ()

    @property
    def refused(self) -> int:
        """How many deliveries were refused; not those that came to a former callback."""
        return sum(number for fault, number in self.refusals if fault is not DeliveryFault.ENDED)

    @property
    def late(self) -> int:
        """How many came to a former callback."""
        return dict(self.refusals).get(DeliveryFault.ENDED, 0)


@dataclass(slots=True)
class _SubscriptionCounts:
    accepted: int = 0
    last: datetime | None = None
    problem: SubscriptionProblem | None = None
    reason: str = ""
    refusals: Counter[DeliveryFault] = field(default_factory=Counter)


class SubscriptionLedger:
    """Counts what becomes of subscriptions; asked and told by several threads.

    Attributes:
        version: Grows when something is to be told anew. A delivery that was taken is not; one
            that was refused is the first, the second, the fourth time, and so on: a flood of them
            is told of a few times.

    Args:
        clock: Time.
    """

    def __init__(self, clock: Clock) -> None:
        self.version = 0
        self._clock = clock
        self._rows: dict[tuple[str, str], _SubscriptionCounts] = {}

    def count_accepted(self, follower: ChannelSubscription) -> None:
        """Count a delivery that was signed as agreed."""
        row = self._row(follower)
        row.accepted, row.last = row.accepted + 1, self._clock.now()

    def count_refused(self, follower: ChannelSubscription, fault: DeliveryFault) -> None:
        """Count a delivery that was refused."""
        refusals = self._row(follower).refusals
        refusals[fault] += 1
        if fault is not DeliveryFault.ENDED and not refusals[fault] & (refusals[fault] - 1):
            self.version += 1

    def note_problem(
        self, follower: ChannelSubscription, trouble: SubscriptionProblem, why: str
    ) -> None:
        """Note what keeps a subscription from being verified."""
        row = self._row(follower)
        row.problem, row.reason = trouble, why
        self.version += 1

    def note_verified(self, follower: ChannelSubscription) -> None:
        """Note that a hub verified a subscription."""
        row = self._row(follower)
        row.problem, row.reason = None, ""
        self.version += 1

    def note_change(self) -> None:
        """Note that a subscription is wanted, or is no longer."""
        self.version += 1

    def reports(self, followers: Iterable[ChannelSubscription]) -> list[SubscriptionReport]:
        """Return how all subscriptions stand, and forget those that are no more."""
        now = to_microseconds(self._clock.now())
        found = sorted(followers, key=_key)
        for key in set(self._rows) - set(map(_key, found)):
            self._rows.pop(key, None)
        return [
            _report(subscription, self._rows.get(_key(subscription), _SubscriptionCounts()), now)
            for subscription in found
        ]

    def _row(self, follower: ChannelSubscription) -> _SubscriptionCounts:
        return self._rows.setdefault(_key(follower), _SubscriptionCounts())


def _key(follower: ChannelSubscription) -> tuple[str, str]:
    return follower.name, follower.topic


def _report(
    subscription: ChannelSubscription, row: _SubscriptionCounts, now: int
) -> SubscriptionReport:
    return SubscriptionReport(
        mirror=subscription.name,
        topic=subscription.topic,
        hub=subscription.hub,
        status=_status(subscription, row, now),
        until=from_microseconds(subscription.lease_until) if subscription.lease_until else None,
        reason=row.reason,
        accepted=row.accepted,
        last=row.last,
        refusals=tuple(sorted(row.refusals.copy().items())),
    )


def _status(
    subscription: ChannelSubscription, row: _SubscriptionCounts, now: int
) -> SubscriptionStatus:
    if subscription.state is FollowerState.LEAVING:
        return SubscriptionStatus.ENDING
    is_in_use = bool(subscription.token) and subscription.lease_until > now
    if is_in_use and row.problem is not SubscriptionProblem.DENIED:
        return SubscriptionStatus.VERIFIED  # a renewal that fails takes nothing away before its end
    return (
        SubscriptionStatus.PENDING
        if row.problem in {None, SubscriptionProblem.AWAY}
        else SubscriptionStatus.REFUSED
    )
