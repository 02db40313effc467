"""What ``watch`` tells operators: figures for Prometheus, and its state as JSON."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final

import msgspec

from resourcesync import __version__
from resourcesync.cli.configured import MirrorConfiguration
from resourcesync.cli.json_output import json_line
from resourcesync.cli.notes import CollectingScreen
from resourcesync.cli.status import StatusCheck, read_statuses
from resourcesync.cli.status_formats import CheckedMirror, Labels, LagLimits, mirror_figures
from resourcesync.cli.watch_push import Subscriptions, subscription_fields
from resourcesync.cli.watch_words import next_pull_fields
from resourcesync.server.metrics import Metric
from resourcesync.watch.loop import NextPull
from resourcesync.websub.subscription_status import SubscriptionReport, SubscriptionStatus

_CHANGES: Final = ("created", "updated", "deleted")


class WatchFigures:
    """Counts what ``watch`` did, and reads what its mirrors say of themselves.

    Args:
        names: Gives the mirrors, and the configuration that names them.
        intervals: Gives the seconds between two pulls of mirrors that have an interval.
        push: Knows the subscriptions, and how many notifications came; ``None``: there are none.
        planned: Gives the next pull of a mirror.
    """

    def __init__(
        self,
        names: Callable[[], tuple[tuple[str, ...], MirrorConfiguration]],
        intervals: Callable[[], Mapping[Labels, float]],
        push: Subscriptions | None = None,
        planned: Callable[[str], NextPull | None] = lambda _: None,
    ) -> None:
        self._planned = planned
        self._names, self._intervals, self._push = names, intervals, push
        self._runs: Counter[Labels] = Counter()
        self._changes: Counter[Labels] = Counter()
        self._received: Counter[Labels] = Counter()
        self._seconds: dict[Labels, float] = {}
        self._accuracy: dict[Labels, float] = {}
        self._last: dict[str, Mapping[str, object]] = {}

    def count(self, kind: str, fields: Mapping[str, Any], seconds: float) -> None:
        """Count an errand that ended.

        Args:
            kind: ``pull``, ``audit`` or ``hand-on``.
            fields: Of its event.
            seconds: How long it took.
        """
        mirror = (("mirror", str(fields["mirror"])),)
        self._runs[(*mirror, ("kind", kind), ("exit", str(fields["exit"])))] += 1
        self._last[f"{fields['mirror']} {kind}"] = fields
        if kind == "audit" and "accuracy" in fields:
            self._accuracy[mirror] = float(fields["accuracy"])
        elif kind == "audit" and fields["exit"] == 0:
            self._accuracy.pop(mirror, None)  # it is not known any more
        if kind != "pull":
            return
        self._seconds[mirror] = seconds
        for name in _CHANGES:
            self._changes[(*mirror, ("change", name))] += int(fields.get(name, 0))
        self._received[mirror] += int(fields.get("bytes", 0))

    def figures(self) -> Iterator[Metric]:
        """Yield all figures."""
        yield _gauge("build_info", "The version of this program.", {(("version", __version__),): 1})
        yield from mirror_figures(self._read_mirrors()[0])
        yield _counter("runs_total", "Runs that ended, by exit code.", self._runs)
        yield _counter("changes_total", "Changes that pulls brought.", self._changes)
        yield _counter("fetch_bytes_total", "Bytes that pulls received.", self._received)
        yield _gauge("pull_duration_seconds", "How long the last pull took.", self._seconds)
        yield _gauge(
            "audit_accuracy_ratio",
            "Share of the copies that the last audit found right.",
            self._accuracy,
        )
        yield _gauge("mirror_interval_seconds", "Time between two pulls.", self._intervals())
        hints: dict[Labels, float] = {
            (("direction", "in"), ("outcome", it)): n for it, n in self._counts().items()
        }
        yield _counter("notifications_total", "Notifications that came.", hints)
        yield from _subscription_figures(self._standings())

    def status(self) -> bytes:
        """Return the mirrors as ``status --json`` tells them, and how their last runs ended."""
        _, mirrors = self._read_mirrors()
        lines = [msgspec.json.decode(json_line("mirror", "", it)) for it in mirrors]
        ended = [
            msgspec.json.decode(json_line("ended", "", it)) for it in list(self._last.values())
        ]
        pushed = [subscription_fields(it) for it in self._standings()]
        told = [msgspec.json.decode(json_line("watch.subscription", "", it)) for it in pushed]
        plans = [msgspec.json.decode(json_line("next", "", it)) for it in self._plans()]
        return msgspec.json.encode(
            {"v": 1, "mirrors": lines, "next": plans, "ended": ended, "subscriptions": told}
        )

    def _plans(self) -> Iterator[dict[str, object]]:
        for name in self._names()[0]:
            planned = self._planned(name)
            if planned is not None:
                yield next_pull_fields(name, planned)

    def _counts(self) -> Mapping[str, int]:
        return {} if self._push is None else self._push.counts

    def _standings(self) -> Sequence[SubscriptionReport]:
        return () if self._push is None else self._push.standings()

    def _read_mirrors(self) -> tuple[list[CheckedMirror], list[Mapping[str, object]]]:
        names, configuration = self._names()
        seen: list[CheckedMirror] = []
        mirrors: list[Mapping[str, object]] = []
        for name in names:
            notes = CollectingScreen()
            found = read_statuses(
                (name,), configuration, notes, StatusCheck(is_requested=False, limits=LagLimits())
            )
            seen += found.mirrors
            mirrors += notes.mirrors
            mirrors += ({"mirror": name, "code": it.code} for it in notes.problems)
        return seen, mirrors


def _subscription_figures(found: Sequence[SubscriptionReport]) -> Iterator[Metric]:
    """Yield the figures of subscriptions; their addresses would be too many labels."""
    standing: Counter[Labels] = Counter()
    deliveries: Counter[Labels] = Counter()
    ends: dict[Labels, float] = {}
    last: dict[Labels, float] = {}
    for it in found:
        mirror = (("mirror", it.mirror),)
        for state in SubscriptionStatus:
            standing[(*mirror, ("state", state.value))] += it.status is state
        deliveries[(*mirror, ("outcome", "taken"))] += it.accepted
        for fault, number in it.refusals:
            deliveries[(*mirror, ("outcome", fault.value))] += number
        if it.until is not None:
            ends[mirror] = min(ends.get(mirror, inf), it.until.timestamp())
        if it.last is not None:
            last[mirror] = max(last.get(mirror, 0.0), it.last.timestamp())
    yield _gauge("mirror_subscriptions", "Subscriptions to channels of its Source.", standing)
    yield _gauge("mirror_lease_end_timestamp_seconds", "When the first of its leases ends.", ends)
    yield _gauge("mirror_last_delivery_timestamp_seconds", "When it was last told by a hub.", last)
    yield _counter(
        "mirror_deliveries_total", "Deliveries of hubs, by what became of them.", deliveries
    )


def _gauge(name: str, what: str, values: Mapping[Labels, float]) -> Metric:
    return Metric(
        name=f"resourcesync_{name}", kind="gauge", help_text=what, values=tuple(values.items())
    )


def _counter(name: str, what: str, values: Mapping[Labels, float]) -> Metric:
    return Metric(
        name=f"resourcesync_{name}",
        kind="counter",
        help_text=what,
        values=tuple(sorted(values.items())),
    )
