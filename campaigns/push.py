"""A hub with very many subscribers, some of which hang: nobody waits for them, nothing is lost."""

import resource
import time
from collections.abc import Callable
from statistics import median
from typing import Any, Final

from campaigns.outcome import Asked, Campaign, Outcome
from campaigns.receivers import Receivers
from tests.support.servers.hubs import RunningHub, payload, running_hub

_ROUNDS: Final = 5
_HANGING: Final = 5
_LOSS: Final = 0.05
_PATIENCE: Final = 120.0
_SLOWEST: Final = 10.0
"""Seconds within which each that answers must have each notification: a hanging one takes 10."""


def run(asked: Asked) -> Outcome:
    """Subscribe, notify with some that hang, then with losses."""
    outcome = Outcome()
    names = ("per_peer", "per_origin", "most_intents", "pings")
    rules: dict[str, Any] = dict.fromkeys(names, 10**9)
    with (
        Receivers(asked.seed) as receivers,
        running_hub(asked.folder / "hub.db", **rules) as hub,
    ):
        _subscribe(hub, receivers, asked.size, outcome)
        alone = _rounds(hub, receivers, asked.size, 0)
        for number in range(_HANGING):
            hub.subscribe(receivers.hanging(number))
        _await(lambda: hub.subscribed() == asked.size + _HANGING)
        beside = _rounds(hub, receivers, asked.size, _ROUNDS)
        _tell(outcome, "", alone)
        _tell(outcome, f", {_HANGING} others hang", beside)
        outcome.require(receivers.hung >= _HANGING, "none hung: nothing was proven")
        outcome.require(max(beside) < _SLOWEST * 0.9, "those that answer waited for others")
        _lose(hub, receivers, asked.size, outcome)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    outcome.add("peak memory, MiB, receivers included", round(peak))
    return outcome


def _subscribe(hub: RunningHub, receivers: Receivers, size: int, outcome: Outcome) -> None:
    began = time.monotonic()
    for number in range(size):
        hub.subscribe(receivers.callback(number), secret="it")
    _await(lambda: hub.subscribed() == size)
    outcome.add("subscribers, verified", size)
    outcome.add("seconds to subscribe them", round(time.monotonic() - began, 1))


def _rounds(hub: RunningHub, receivers: Receivers, size: int, first: int) -> list[float]:
    """Notify some times; return the seconds that each delivery took."""
    found = []
    for minute in range(first, first + _ROUNDS):
        receivers.came.clear()
        began = time.monotonic()
        hub.submit(payload(minute=minute))
        _await(lambda: len(receivers.came) == size)
        found += [item[0][0] - began for item in receivers.came.values()]
    return found


def _lose(hub: RunningHub, receivers: Receivers, size: int, outcome: Outcome) -> None:
    receivers.loss = _LOSS
    receivers.came.clear()
    last = 2 * _ROUNDS + 9
    for minute in range(2 * _ROUNDS, last + 1):
        hub.submit(payload(f"https://museum.example/{minute}", minute=minute))
        time.sleep(0.1)
    wanted = f"https://museum.example/{last}".encode()
    complete = _await(
        lambda: (
            len(receivers.came) == size
            and all(wanted in item[-1][1] for item in list(receivers.came.values()))
        )
    )
    outcome.require(complete, "a subscriber never heard of the last change")
    uris = [f"https://museum.example/{number}<".encode() for number in range(2 * _ROUNDS, last + 1)]
    missed = sum(
        not any(uri in body for _, body in item) for item in receivers.came.values() for uri in uris
    )
    outcome.add("deliveries answered 503", receivers.lost)
    outcome.add("notifications that a subscriber never got", missed)
    outcome.require(not missed, "a notification was lost")
    outcome.require(receivers.lost or size < 30, "none was lost on the way: nothing was proven")


def _tell(outcome: Outcome, how: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    outcome.add(f"median delivery, ms{how}", round(median(ordered) * 1000))
    outcome.add(f"slowest delivery, ms{how}", round(ordered[-1] * 1000))
    outcome.require(ordered[-1] < _SLOWEST, f"a delivery took {ordered[-1]:.1f} s{how}")


def _await(told: Callable[[], bool]) -> bool:
    end = time.monotonic() + _PATIENCE
    while not told():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


CAMPAIGN: Final = Campaign(run=run, size=500, unit="subscribers")
