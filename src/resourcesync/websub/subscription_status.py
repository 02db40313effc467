"""Status of our subscriptions, for operators.

Deliveries are counted since the start of this process; the subscriptions are stored.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

import msgspec

from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.ports import Clock
from resourcesync.push_state.rows import ChannelSubscription


class SubscriptionStatus(StrEnum):
    """Status of a subscription for an operator."""

    VERIFIED = "verified"
    PENDING = "pending"
    REFUSED = "refused"


class DeliveryFault(StrEnum):
    """Reason why a delivery was refused."""

    SIGNATURE = "signature"
    """Its signature is missing or invalid."""
    SIZE = "size"
    """The payload is longer than a notification may be."""
    BODY = "body"
    """The body came too slowly, or was cut short."""


class SubscriptionReport(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription of a mirror to a channel, its status, and its deliveries.

    ``until`` is the end of its lease, ``reason`` the failure of the last request for it, and
    ``last`` the time of the last accepted delivery, all UTC.
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
        """Return the number of refused deliveries."""
        return sum(number for _, number in self.refusals)


class _SubscriptionCounts(msgspec.Struct):
    accepted: int = 0
    last: datetime | None = None
    problem: SubscriptionStatus | None = None
    reason: str = ""
    refusals: Counter[DeliveryFault] = msgspec.field(default_factory=Counter)


class SubscriptionLedger:
    """Counts of events of subscriptions; thread-safe.

    ``version`` grows when there is something new to report. An accepted delivery is not; a refused
    one is the first, the second, the fourth time, and so on, so that a flood of them is reported
    rarely.
    """

    def __init__(self, clock: Clock) -> None:
        self.version = 0
        self._clock = clock
        self._rows: dict[tuple[str, str], _SubscriptionCounts] = {}

    def count_accepted(self, follower: ChannelSubscription) -> None:
        """Count an accepted delivery."""
        row = self._row(follower)
        row.accepted, row.last = row.accepted + 1, self._clock.now()

    def count_refused(self, follower: ChannelSubscription, fault: DeliveryFault) -> None:
        """Count a refused delivery."""
        refusals = self._row(follower).refusals
        refusals[fault] += 1
        if not refusals[fault] & (refusals[fault] - 1):
            self.version += 1

    def note_problem(
        self, follower: ChannelSubscription, trouble: SubscriptionStatus, why: str
    ) -> None:
        """Record what a subscription is until it is verified, and why."""
        row = self._row(follower)
        row.problem, row.reason = trouble, why
        self.version += 1

    def note_verified(self, follower: ChannelSubscription) -> None:
        """Record that a hub verified a subscription."""
        row = self._row(follower)
        row.problem, row.reason = None, ""
        self.version += 1

    def note_change(self) -> None:
        """Record that a subscription is wanted, or no longer."""
        self.version += 1

    def reports(self, followers: Iterable[ChannelSubscription]) -> list[SubscriptionReport]:
        """Return the status of all subscriptions, and forget the ended ones."""
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
    status = row.problem or SubscriptionStatus.PENDING
    if subscription.token and subscription.lease_until > now:
        status = SubscriptionStatus.VERIFIED  # it remains valid until its end if a renewal fails
    return SubscriptionReport(
        mirror=subscription.name,
        topic=subscription.topic,
        hub=subscription.hub,
        status=status,
        until=from_microseconds(subscription.lease_until) if subscription.lease_until else None,
        reason=row.reason,
        accepted=row.accepted,
        last=row.last,
        refusals=tuple(sorted(row.refusals.copy().items())),
    )
