"""Destination's side of push: subscriptions, their renewal, and deliveries as hints.

A notification is never data (WebSub §5, §7). An authentic one says that polling now is worthwhile,
and nothing else; scheduled polls continue regardless. Hints for mirrors are immediate, within the
rate that is acceptable to their Sources.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Final, Protocol

from msgspec.structs import replace

from resourcesync import ports
from resourcesync.discovery.uris import join
from resourcesync.model.timestamps import SECOND, to_microseconds
from resourcesync.push_state.rows import ChannelSubscription, FollowerState
from resourcesync.push_state.stores import FileFollowers
from resourcesync.websub import messages
from resourcesync.websub.channels import Channel
from resourcesync.websub.messages import HubMode, TextResponse, is_signed
from resourcesync.websub.subscription_status import (
    DeliveryFault,
    SubscriptionLedger,
    SubscriptionReport,
    SubscriptionStatus,
)
from resourcesync.websub.verification import is_challenge


class SubscriptionMessenger(Protocol):
    """A sender of requests to hubs."""

    def fetch(self, requests: Mapping[ports.FetchRequest, ChannelSubscription]) -> ports.Outcomes:
        """Send requests, each for its subscription; yield the outcomes in no order."""


class HintThrottle:
    """Rate limiter of hints to poll; a flood of them becomes one hint now and one later."""

    def __init__(
        self,
        clock: ports.Clock,
        on_hint: Callable[[str], None],
        *,
        wake: Callable[[], None],
        every: float,
        counts: Counter[str],
    ) -> None:
        self._clock, self._on_hint, self._wake = clock, on_hint, wake
        self._every, self._counts = every, counts
        self._last_sent: dict[str, float] = {}
        self._delayed: dict[str, float] = {}

    def send(self, name: str, every: float | None = None) -> None:
        """Send a hint that a mirror should poll: at once, or after the interval since the last."""
        now = self._clock.monotonic()
        last = self._last_sent.get(name)
        due = now if last is None else last + (self._every if every is None else every)
        if now < due:
            self._counts["coalesced"] += 1
            self._delayed[name] = min(due, self._delayed.get(name, due))
            self._wake()
            return
        self._last_sent[name] = now
        self._delayed.pop(name, None)
        self._counts["hinted"] += 1
        self._on_hint(name)

    def send_due(self) -> None:
        """Send the delayed hints that are due."""
        now = self._clock.monotonic()
        for name, due in list(self._delayed.items()):
            if now >= due:
                self.send(name)

    def pause(self) -> float | None:
        """Return the seconds until a delayed hint is due; ``None`` without any."""
        soonest = min(list(self._delayed.values()), default=None)
        return None if soonest is None else max(soonest - self._clock.monotonic(), 0.0)


_LOG: Final = logging.getLogger(__name__)

_HINT_EVERY: Final = 10.0
_REPLAY_EVERY: Final = 10.0
_MOST_BODIES: Final = 1_000
_CONFIRMED_WITHIN: Final = 600 * SECOND
_LONGEST_DELAY: Final = 6.0 * messages.HOUR
_FARTHEST: Final = messages.LONGEST_LEASE * SECOND
_REDIRECTS: Final = (307, 308)
_MOST_REDIRECTS: Final = 3
_AT_ONCE: Final = 16
_NOT_FOUND: Final = TextResponse(status=404, text="Not found.")
_ACCEPTED: Final = TextResponse(status=202)
_NOT_VERIFIED: Final = "the hub did not verify within ten minutes: can it reach the callback?"
_GONE: Final = TextResponse(status=410, text="Not subscribed.")
"""A hub may end a subscription for it (§7): so a former one ends, without a request to its hub."""


class Subscriber:
    """Manager of subscriptions, which turns deliveries into hints.

    ``tick`` talks to hubs and belongs to one thread; ``verify`` and ``deliver`` answer requests and
    may be called by several.
    """

    def __init__(  # noqa: PLR0913 - its ports, and the operator's choices
        self,
        store: FileFollowers,
        messenger: SubscriptionMessenger,
        clock: ports.Clock,
        *,
        callback_base: str,
        on_hint: Callable[[str], None],
        token: Callable[[], str],
        chance: Callable[[], float],
        wake: Callable[[], None] = lambda: None,
        hint_every: float = _HINT_EVERY,
    ) -> None:
        self._store = store
        self._messenger = messenger
        self._clock = clock
        self._base = callback_base if callback_base.endswith("/") else f"{callback_base}/"
        self._token = token
        self._chance = chance
        self._bodies: dict[bytes, None] = {}
        self.counts: Counter[str] = Counter()
        self._hints = HintThrottle(clock, on_hint, wake=wake, every=hint_every, counts=self.counts)
        self.ledger = SubscriptionLedger(clock)
        for subscription in store.subscriptions():  # the cause of failures may be fixed by now
            if subscription.state in {FollowerState.PENDING, FollowerState.REQUESTED}:
                store.save(replace(subscription, state=FollowerState.PENDING, due=0), subscription)
            elif subscription.base != self._base:  # its hub delivers to the former address
                store.save(replace(subscription, due=0), subscription)

    def reports(self) -> list[SubscriptionReport]:
        """Return the status of all subscriptions."""
        return self.ledger.reports(self._store.subscriptions())

    def follow(self, name: str, channels: Iterable[Channel], *, is_all: bool = True) -> None:
        """Subscribe a mirror to channels at the next tick, and end its other subscriptions."""
        wanted = {channel.topic: channel.hubs[0] for channel in channels if channel.hubs}
        known = {
            subscription.topic: subscription
            for subscription in self._store.subscriptions()
            if subscription.name == name
        }
        for topic, hub in wanted.items():
            before = known.get(topic)
            if before is None:
                self._store.save(ChannelSubscription(name=name, topic=topic, hub=hub))
            elif before.hub != hub:
                fresh = replace(before, hub=hub, state=FollowerState.PENDING, attempts=0, due=0)
                self._store.save(fresh, before)
        for topic, before in known.items():
            if is_all and topic not in wanted:
                self._store.remove(before)
        self.ledger.note_change()

    def leave(self, name: str) -> None:
        """Forget all subscriptions of a mirror: their next deliveries are refused."""
        for subscription in self._store.subscriptions():
            if subscription.name == name:
                self._store.remove(subscription)
        self.ledger.note_change()

    def tick(self) -> float:
        """Do what is due: requests to hubs, renewals, delayed hints."""
        self._hints.send_due()
        now = self._now()
        soon = now + _FARTHEST  # nothing is ever due later, unless the clock was set back
        due = [
            subscription
            for subscription in self._store.subscriptions()
            if not now < subscription.due <= soon
        ][:_AT_ONCE]
        asked = [request for request in map(self._prepare_request, due) if request is not None]
        self._send_requests(asked)
        later = [subscription.due - now for subscription in self._store.subscriptions()]
        pause = min([60.0, *(max(0, number) / SECOND for number in later)])
        owed = self._hints.pause()
        return pause if owed is None else min(pause, owed)

    def _prepare_request(self, before: ChannelSubscription) -> ChannelSubscription | None:
        lost = before.attempts
        if before.state is FollowerState.REQUESTED:
            lost += 1
            self.ledger.note_problem(before, SubscriptionStatus.PENDING, _NOT_VERIFIED)
        token, secret = self._token(), self._token()
        wait = _CONFIRMED_WITHIN + int(self._retry_seconds(lost) * SECOND)
        after = replace(
            before,
            state=FollowerState.REQUESTED,
            next_token=token,
            next_secret=secret.encode(),
            attempts=lost,
            due=self._now() + wait,
        )
        return after if self._store.save(after, before) else None

    def _send_requests(self, asked: Sequence[ChannelSubscription]) -> None:
        left = {self._request(follower.hub, follower): follower for follower in asked}
        for _ in range(_MOST_REDIRECTS + 1):
            again: dict[ports.FetchRequest, ChannelSubscription] = {}
            for outcome in self._messenger.fetch(left):
                follower = left[outcome.request]
                hub = _redirect_target(outcome)
                if hub:
                    again[self._request(hub, follower)] = follower
                elif not (
                    isinstance(outcome, ports.FetchResponse) and outcome.status in messages.SUCCESS
                ):
                    self._note_refusal(follower, outcome)
            if not again:
                return
            left = again
        for follower in left.values():
            self._note_refusal(follower, None)

    def _request(self, hub: str, follower: ChannelSubscription) -> ports.FetchRequest:
        callback, secret = self._base + follower.next_token, follower.next_secret.decode()
        body = messages.subscription_form(follower.topic, callback, secret)
        return messages.post_request(hub, body, messages.FORM)

    def _note_refusal(
        self, asked: ChannelSubscription, outcome: ports.FetchResponse | ports.FetchFailure | None
    ) -> None:
        if isinstance(outcome, ports.FetchFailure):
            _LOG.warning("the hub %s: %s", asked.hub, outcome.error)
            trouble, why = SubscriptionStatus.PENDING, outcome.error.message
        else:
            status = "too many redirects" if outcome is None else outcome.status
            _LOG.warning("the hub %s refuses a subscription: %s", asked.hub, status)
            trouble, why = SubscriptionStatus.REFUSED, f"the hub refuses it: {status}"
        self.ledger.note_problem(asked, trouble, why)
        self._request_later(asked, asked.lease_until)

    def _request_later(self, before: ChannelSubscription, lease_until: int) -> None:
        attempts = before.attempts + 1
        after = replace(
            before,
            state=FollowerState.PENDING,
            lease_until=lease_until,
            attempts=attempts,
            due=self._now() + int(self._retry_seconds(attempts) * SECOND),
        )
        self._store.save(after, before)

    def _retry_seconds(self, attempts: int) -> float:
        if not attempts:
            return 0.0
        return messages.retry_delay(attempts + 5, self._chance(), longest=_LONGEST_DELAY)

    def _now(self) -> int:
        return to_microseconds(self._clock.now())

    def verify(self, token: str, query: bytes) -> TextResponse:
        """Answer a hub's verification; confirm only our own requests (§5.3)."""
        fields = messages.read_fields(query) or {}
        mode, challenge = fields.get("hub.mode", ""), fields.get("hub.challenge", "")
        follower = self._store.find_token(token)
        if follower is None or fields.get("hub.topic") != follower.topic:
            return _NOT_FOUND
        if mode == HubMode.DENIED:
            return self._note_denial(follower, fields.get("hub.reason", ""))
        is_ours = follower.state is FollowerState.REQUESTED and token == follower.next_token
        if mode != HubMode.SUBSCRIBE or not is_ours or not is_challenge(challenge):
            return _NOT_FOUND
        if not self._confirm(follower, fields.get("hub.lease_seconds", "")):
            return _NOT_FOUND
        return TextResponse(status=200, text=challenge)

    def _confirm(self, follower: ChannelSubscription, lease: str) -> bool:
        granted = messages.bounded_lease(messages.parse_seconds(lease))
        now = self._now()
        active = replace(
            follower,
            state=FollowerState.ACTIVE,
            token=follower.next_token,
            secret=follower.next_secret,
            next_token="",
            next_secret=b"",
            base=self._base,
            lease_until=now + granted * SECOND,
            attempts=0,
            due=now + int(granted * SECOND * (0.5 + 0.3 * self._chance())),  # of the lease
        )
        if not self._store.save(active, follower):
            return False
        self.counts["confirmed"] += 1
        self.ledger.note_verified(follower)
        self._hints.send(follower.name)  # changes before the subscription are not missed
        return True

    def _note_denial(self, follower: ChannelSubscription, reason: str) -> TextResponse:
        self.counts["denied"] += 1
        _LOG.warning("the hub %s denies a subscription: %.200r", follower.hub, reason)
        why = f"the hub ended it: {reason[:200]}"
        self.ledger.note_problem(follower, SubscriptionStatus.REFUSED, why)
        if follower.state is not FollowerState.PENDING:
            self._request_later(follower, lease_until=0)
        return TextResponse(status=200)

    def knows(self, token: str) -> bool:
        """True if a delivery to a callback should be read."""
        return self._store.find_token(token) is not None

    def deliver(self, token: str, signatures: Sequence[str], body: bytes) -> TextResponse:
        """Accept a delivery; the callback alone identifies its subscription (§7)."""
        follower = self._store.find_token(token)
        if follower is None:
            self.counts["unknown"] += 1
            return _GONE
        secret = follower.secret if token == follower.token else follower.next_secret
        if not is_signed(secret, body, signatures):
            self.counts["discarded"] += 1
            self.ledger.count_refused(follower, DeliveryFault.SIGNATURE)
            return _ACCEPTED
        self.ledger.count_accepted(follower)
        every = _REPLAY_EVERY if self._record_delivery(token, body) else None
        self._hints.send(follower.name, every)
        return _ACCEPTED

    def refuse(self, token: str, fault: DeliveryFault) -> None:
        """Count a delivery whose body was refused."""
        follower = self._store.find_token(token)
        if follower is not None:
            self.ledger.count_refused(follower, fault)

    def _record_delivery(self, token: str, body: bytes) -> bool:
        digest = sha256(token.encode() + b" " + body).digest()
        is_known = digest in self._bodies
        self._bodies[digest] = None
        if len(self._bodies) > _MOST_BODIES:
            with suppress(KeyError, StopIteration, RuntimeError):  # another thread was quicker
                del self._bodies[next(iter(self._bodies))]
        return is_known


def _redirect_target(outcome: ports.FetchResponse | ports.FetchFailure) -> str:
    if not isinstance(outcome, ports.FetchResponse) or outcome.status not in _REDIRECTS:
        return ""
    target = join(outcome.request.uri, outcome.headers.get("location", "")) or ""
    is_secure = outcome.request.uri.lower().startswith("https:")
    return "" if is_secure and not target.lower().startswith("https:") else target
