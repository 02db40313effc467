"""Push as ``watch`` does it: which mirrors are subscribed, and what is told of it."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from resourcesync.cli.output import Screen
from resourcesync.errors import ResourceSyncError
from resourcesync.ports import Clock
from resourcesync.server.dashboard.views import PushStatus
from resourcesync.websub.subscription_status import SubscriptionReport, SubscriptionStatus
from resourcesync.wiring.mirrors import Network
from resourcesync.wiring.push_subscriptions import PushState, PushSubscriptions

_LOG: Final = logging.getLogger(__name__)

_SubscriptionState = tuple[SubscriptionStatus, object, str, int]


class Subscriptions:
    """The subscriptions of a service; none as long as nothing is opened.

    Args:
        screen: Where it is said how they stand.
        clock: Time.
    """

    def __init__(self, screen: Screen, clock: Clock) -> None:
        self._screen, self._clock = screen, clock
        self._push: PushSubscriptions | None = None
        self._wanted: frozenset[str] = frozenset()
        self._version = -1
        self._reported: dict[tuple[str, str], _SubscriptionState] = {}

    @contextmanager
    def opened(
        self,
        callback: str,
        listen: tuple[str, int],
        state: PushState,
        on_hint: Callable[[str], None],
    ) -> Iterator[None]:
        """Subscribe mirrors, and take their notifications, while the block runs.

        Raises:
            ConfigurationError: The address cannot be listened on, or the callback is none.
            LockedError: Another service of the same configuration runs.
            StorageError: Subscriptions cannot be remembered.
        """
        push = PushSubscriptions(
            callback=callback, listen=listen, state=state, on_hint=on_hint, clock=self._clock
        )
        with push:
            self._push = push
            try:
                yield
            finally:
                self._push = None

    @property
    def counts(self) -> dict[str, int]:
        """How many notifications came, by outcome."""
        return {} if self._push is None else self._push.counts

    def subscribe(self, asked: Mapping[str, tuple[str, Network]]) -> None:
        """Subscribe these mirrors alone; without a callback, warn that none is.

        Args:
            asked: By the mirror's name: the address of its Source, and how that is asked.

        Raises:
            StorageError: Subscriptions cannot be remembered.
        """
        self._wanted = frozenset(asked)
        if self._push is not None:
            self._push.retain(asked)
            return
        for name in asked:
            self._screen.report("warning", _no_callback_warning(name))

    def follow(self, name: str, folder: Path, network: Network) -> None:
        """Follow the channels of a mirror's Source; it is polled in any case."""
        if self._push is None:
            return
        try:
            self._push.follow(name, folder, network)
        except ResourceSyncError as error:
            _LOG.warning("push for %s: %s", name, error)

    def standings(self) -> list[SubscriptionReport]:
        """Return how all subscriptions stand.

        Raises:
            StorageError: They cannot be read.
        """
        return [] if self._push is None else self._push.standings()

    def pushed(self) -> dict[str, PushStatus]:
        """Return, for each mirror that is to be told by its Source, how that stands.

        Raises:
            StorageError: It cannot be read.
        """
        push = self._push
        if push is None:
            return {}
        found: dict[str, list[SubscriptionReport]] = {name: [] for name in self._wanted}
        for it in self.standings():
            found.setdefault(it.mirror, []).append(it)
        return {
            name: PushStatus(subscriptions=tuple(theirs), is_known=push.has_discovered(name))
            for name, theirs in found.items()
        }

    def report_changes(self) -> None:
        """Say which subscriptions stand otherwise than when it was said last."""
        if self._push is None or self._push.version == self._version:
            return
        self._version = self._push.version
        try:
            found = self.standings()
        except ResourceSyncError as error:
            _LOG.warning("push: %s", error)
            return
        now = self._clock.now()
        for it in found:
            before = self._reported.get((it.mirror, it.topic))
            if before != _subscription_state(it):
                was = {} if before is None else {"was": before[0].value}
                self._screen.report(
                    "watch.subscription", {"time": now, **subscription_fields(it), **was}
                )
        self._reported = {(it.mirror, it.topic): _subscription_state(it) for it in found}


def _subscription_state(it: SubscriptionReport) -> _SubscriptionState:
    return it.status, it.until, it.reason, it.refused


def subscription_fields(it: SubscriptionReport) -> dict[str, object]:
    """Return a subscription as the fields of its event."""
    fields: dict[str, object] = {
        "mirror": it.mirror,
        "topic": it.topic,
        "hub": it.hub,
        "state": it.status.value,
        "until": it.until,
        "taken": it.accepted,
        "last": it.last,
        "refused": it.refused,
    }
    if it.refusals:
        fields["refusals"] = {fault.value: number for fault, number in it.refusals}
    if it.reason:
        fields["reason"] = it.reason
    return fields


def _no_callback_warning(mirror: str) -> dict[str, object]:
    return {
        "code": "config",
        "message": f"`push = true` of {mirror} does nothing: `watch` has no callback",
        "mirror": mirror,
        "evidence": (("kept", "the times at which it is pulled"),),
        "hint": "write `callback` in [watch], or watch --callback, and begin anew",
    }
