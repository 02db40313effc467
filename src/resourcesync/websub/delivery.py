"""Deliveries of a hub: it verifies the intent of receivers and sends them notifications.

One loop in one thread does it all: ``requests`` yields what is to be sent now, ``record_outcome``
takes the result of each. A slow receiver takes one place of many; a failed one is retried later.
Receivers that failed last time have places of their own, and those of one origin never more than a
few. Each receiver gets the notifications one after the other, in their order.

Accepted and undelivered notifications are in the store: a program that is killed at any point
continues with them after a restart. A receiver may get a payload twice, never none.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import msgspec

from resourcesync.errors import StoppedError
from resourcesync.model.timestamps import SECOND, to_microseconds
from resourcesync.ports import Clock, FetchFailure, FetchRequest, FetchResponse
from resourcesync.push_state.rows import DeliveryOutcome, Subscription
from resourcesync.push_state.stores import FileHub
from resourcesync.websub import messages
from resourcesync.websub.hub import HubRules
from resourcesync.websub.messages import MonotonicTime, sign
from resourcesync.websub.verification import PendingVerification

_LOG: Final = logging.getLogger(__name__)

OUTCOMES: Final = ("verified", "refused", "delivered", "failed", "ended")
"""Keys of ``Deliveries.counts``."""

_VERIFICATIONS: Final = 16
_MOST_ATTEMPTS: Final = 3
_INTENT_LIFETIME: Final = 600 * SECOND
"""Lifetime of a request that was not confirmed."""
_TIDY_EVERY: Final = 60 * SECOND
_GONE: Final = 410


class _PendingDelivery(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    subscription: Subscription
    last: int

    @property
    def is_late(self) -> bool:
        return self.subscription.attempts > 0


_HubJob = PendingVerification | _PendingDelivery
_T = TypeVar("_T", PendingVerification, _PendingDelivery)


class Deliveries:
    """Verification and delivery for a hub; for one thread, except ``wake`` and ``stop``."""

    def __init__(
        self,
        store: FileHub,
        clock: Clock,
        rules: Callable[[], HubRules],
        *,
        chance: Callable[[], float],
        challenge: Callable[[], str],
    ) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules
        self._chance = chance
        self._challenge = challenge
        self._time = MonotonicTime(
            to_microseconds(clock.now()), clock.monotonic(), latest=store.latest()
        )
        self._jobs: dict[FetchRequest, _HubJob] = {}
        self._waiting: deque[tuple[FetchRequest, _HubJob]] = deque()
        self._outcomes: list[DeliveryOutcome] = []
        self._is_woken = True
        self._is_stopped = False
        self._poll_at = 0
        self._tidy_at = 0
        self.counts: Counter[str] = Counter()

    def wake(self) -> None:
        """Signal new work."""
        self._is_woken = True

    def stop(self) -> None:
        """Cancel requests in flight; they are sent again after the next start."""
        self._is_stopped = True

    def pause(self) -> float:
        """Return the seconds until the next work, unless ``wake`` is called before."""
        until = min(self._poll_at, self._tidy_at)
        return 0.0 if self._is_woken else max(0.0, (until - self._now()) / SECOND)

    def requests(self) -> Iterator[FetchRequest | None]:
        """Yield requests to send now, ``None`` while there is none; end when all are done."""
        while True:
            if self._is_stopped:
                raise StoppedError("the hub is stopped")
            self._flush()
            if not self._waiting and not self.pause():
                self._queue_due()
            if self._waiting:
                request, job = self._waiting.popleft()
                self._jobs[request] = job
                yield request
            elif self._jobs:
                yield None
            elif not self._is_woken:
                return

    def record_outcome(self, outcome: FetchResponse | FetchFailure) -> None:
        """Record the outcome of a request."""
        job = self._jobs.pop(outcome.request)
        self._is_woken = True  # its slot is free
        if isinstance(job, PendingVerification):
            self._finish_verification(job, outcome)
        else:
            self._finish_delivery(job, outcome)

    def give_up(self) -> None:
        """Forget the requests in flight, after the messenger cancelled them; their work remains."""
        self._flush()
        self._jobs.clear()
        self._waiting.clear()
        self._is_woken = True

    def _now(self) -> int:
        return self._time.at(to_microseconds(self._clock.now()), self._clock.monotonic())

    def _queue_due(self) -> None:
        now = self._now()
        self._is_woken = False  # before the selection: a later wake is not missed
        if now >= self._tidy_at:
            self._store.prune(now, now - _INTENT_LIFETIME)
            self._tidy_at = now + _TIDY_EVERY
        asked = [job.intent.number for job in self._jobs_of(PendingVerification)]
        room = _VERIFICATIONS - len(asked)
        for intent in self._store.due_intents(now, max(room, 0), asked):
            asking = PendingVerification(intent=intent, challenge=self._challenge())
            self._waiting.append((asking.request(), asking))
        for late in (False, True):
            self._deliver(now, late=late)
        due = self._store.next_due(now)
        self._poll_at = self._tidy_at if due is None else due

    def _deliver(self, now: int, *, late: bool) -> None:
        under_way = [job for job in self._jobs_of(_PendingDelivery) if job.is_late is late]
        rules = self._rules()
        most = rules.at_once // 2 if late else rules.at_once
        room = most - len(under_way)
        while room > 0:
            jobs = self._jobs_of(_PendingDelivery)
            origins = Counter(job.subscription.origin for job in jobs)
            found = self._store.due_deliveries(
                now,
                room,
                busy=[job.subscription.number for job in jobs],
                full=[name for name, number in origins.items() if number >= rules.per_host],
                late=late,
            )
            if not found:
                return
            for subscription in found:
                if origins[subscription.origin] < rules.per_host:
                    origins[subscription.origin] += 1
                    room -= 1
                    self._waiting.append(self._delivery_request(subscription))

    def _delivery_request(
        self, subscription: Subscription
    ) -> tuple[FetchRequest, _PendingDelivery]:
        payload = self._store.next_payload(subscription.topic, subscription.delivered)
        rules = self._rules()
        fields = [("Link", messages.link_field(subscription.topic, [rules.address]))]
        if subscription.secret:
            fields.append((messages.SIGNATURE, sign(subscription.secret, payload.body)))
        uri, kind = subscription.callback, payload.media_type
        request = messages.post_request(uri, payload.body, kind, *fields)
        return request, _PendingDelivery(subscription=subscription, last=payload.number)

    def _jobs_of(self, kind: type[_T]) -> list[_T]:
        every = [*self._jobs.values(), *(job for _, job in self._waiting)]
        return [job for job in every if isinstance(job, kind)]

    def _finish_verification(
        self, job: PendingVerification, outcome: FetchResponse | FetchFailure
    ) -> None:
        intent = job.intent
        is_failed = isinstance(outcome, FetchFailure) and outcome.error.transient
        if is_failed and intent.attempts + 1 < _MOST_ATTEMPTS:
            wait = messages.retry_delay(intent.attempts + 1, self._chance())
            self._store.postpone(intent, self._now() + int(wait * SECOND))
            return
        if job.is_confirmed_by(outcome):
            self.counts["verified"] += 1
            self._store.confirm(intent, self._now() + intent.lease * SECOND)
            self._waiting.clear()  # selected again: one that left must get nothing more
            return
        self.counts["refused"] += 1
        _LOG.info("a receiver did not confirm its request to %s", intent.mode)
        self._store.forget(intent)

    def _finish_delivery(
        self, job: _PendingDelivery, outcome: FetchResponse | FetchFailure
    ) -> None:
        subscription = job.subscription
        status = outcome.status if isinstance(outcome, FetchResponse) else 0
        ended = DeliveryOutcome(number=subscription.number, delivered=job.last)
        if status in messages.SUCCESS:
            self.counts["delivered"] += 1
        elif status == _GONE:
            self.counts["ended"] += 1
            ended = DeliveryOutcome(number=subscription.number, is_over=True)
        else:
            self.counts["failed"] += 1
            attempts = subscription.attempts + 1
            wait = max(messages.retry_delay(attempts, self._chance()), _retry_after(outcome))
            due = self._now() + int(wait * SECOND)
            ended = DeliveryOutcome(number=subscription.number, attempts=attempts, due=due)
        self._outcomes.append(ended)

    def _flush(self) -> None:
        if self._outcomes:
            self._store.record_outcomes(self._outcomes)
            self._outcomes.clear()


def _retry_after(outcome: FetchResponse | FetchFailure) -> float:
    said = outcome.headers.get("retry-after", "") if isinstance(outcome, FetchResponse) else ""
    return float(min(messages.parse_seconds(said), messages.HOUR))
