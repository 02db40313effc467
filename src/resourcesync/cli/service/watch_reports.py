"""The output of ``watch``: a line and fields for each job, metrics, and its state as JSON."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Any, Final

from resourcesync import __version__
from resourcesync.app.watching.service import StateCache
from resourcesync.cli import formatting as forms
from resourcesync.cli.commands.status import StatusCheck, StatusResult, read_statuses
from resourcesync.cli.configured_mirrors import MirrorConfiguration
from resourcesync.cli.formatting import DETAIL, NORMAL, QUIET, TextLine
from resourcesync.cli.json_output import VERSION, json_row, json_text
from resourcesync.cli.output import CollectingScreen
from resourcesync.cli.render.status_formats import (
    CheckedMirror,
    Labels,
    mirror_figures,
)
from resourcesync.cli.service.watch_mirrors import Subscriptions, subscription_fields
from resourcesync.server.metrics import Metric
from resourcesync.settings.mirror import FreshnessSettings
from resourcesync.watch.loop import NextPull
from resourcesync.websub.subscription_status import SubscriptionReport, SubscriptionStatus

if TYPE_CHECKING:
    from resourcesync.cli.service.watch_mirrors import JobReport
    from resourcesync.watch.loop import FinishedJob, NextPull


_COUNTS: Final = (
    "resources",
    "created",
    "updated",
    "deleted",
    "failed",
    "refused",
    "held",
    "requests",
    "bytes",
    "changes",
    "accuracy",
)
_BUILD: Final[Mapping[Labels, float]] = {(("version", __version__), ("command", "watch")): 1}
_CHANGES: Final = ("created", "updated", "deleted")


def job_fields(
    done: "FinishedJob", report: "JobReport", now: datetime, following: float | None
) -> dict[str, object]:
    """Return a finished job as the fields of its event."""
    fields: dict[str, object] = {
        "time": now,
        "mirror": done.job.mirror,
        "exit": int(report.exit),
        "seconds": round(done.seconds, 3),
        "tries": done.failures,
        "again": None if following is None else datetime.fromtimestamp(following, UTC),
    }
    if done.recovered:
        fields["recovered"] = done.recovered
    for name in ("state", *_COUNTS):
        if isinstance(report.fields.get(name), int | float | str):
            fields[name] = report.fields[name]
    if report.problem is not None:
        problem = report.problem
        fields |= {"code": problem.code, "message": problem.message, "hint": problem.hint}
        if report.uri:
            fields["uri"] = report.uri
    return fields


def render_event(event: str, fields: Mapping[str, Any]) -> Iterator[TextLine]:
    """Yield the line of an event."""
    match event:
        case "watch":
            names = fields["mirrors"]
            yield TextLine(
                f"{forms.counted(len(names), 'mirror')}: {forms.some(names)}", "Watching"
            )
        case "admin":
            yield TextLine(fields["uri"], "Admin")
        case "watch.pull" | "watch.audit" | "watch.hand-on":
            yield _job_line(event.removeprefix("watch."), fields)
        case "watch.subscription":
            yield _subscription_line(fields)
        case _:
            return


def _subscription_line(fields: Mapping[str, Any]) -> TextLine:
    state, is_bad = fields["state"], "reason" in fields
    said = {
        "verified": f"notifications until {forms.moment(fields['until'] or fields['time'])}",
        "pending": f"requested notifications from {fields['hub']}",
        "refused": f"no notifications from {fields['hub']}",
        "ending": f"requested the end of notifications from {fields['hub']}",
    }[state]
    parts = [_stamp(fields["time"]), fields["mirror"], said]
    if is_bad:
        parts.append(fields["reason"])
    if fields["refused"]:
        many = forms.counted(fields["refused"], "notification")
        parts.append(f"{many} refused: {', '.join(sorted({*fields['refusals']} - {'ended'}))}")
    is_news = state == "verified" and fields.get("was") != state
    level = QUIET if is_bad or fields["refused"] else NORMAL if is_news else DETAIL
    return TextLine("  ".join(parts), level=level)


def _job_line(kind: str, fields: Mapping[str, Any]) -> TextLine:
    parts = [_stamp(fields["time"]), fields["mirror"], *result_parts(kind, fields)]
    if fields.get("paused"):
        parts.append("paused")
    elif fields["again"] is not None:
        which = f"retry {fields['tries']} at" if fields["tries"] else "next"
        parts.append(f"{which} {_time_of_day(fields['again'], fields['time'])}")
    if fields["exit"]:
        parts.append(f"exit {fields['exit']}")
    if fields.get("hint"):
        parts.append(f"next: {fields['hint']}")
    return TextLine("  ".join(parts), level=_level(kind, fields))


def _level(kind: str, fields: Mapping[str, Any]) -> int:
    """Return the level of a line: pulls without changes or a recovery only with ``-v``."""
    if fields["exit"]:
        return QUIET
    news = (*_CHANGES, "refused", "recovered")
    is_news = kind != "pull" or any(fields.get(name) for name in news)
    return NORMAL if is_news else DETAIL


def result_parts(kind: str, fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the result of a job, in a few words."""
    if "code" in fields:
        uri, message = fields.get("uri", ""), fields["message"]
        yield f"{kind}: {fields['code']}: {message}" + (f" ({uri})" if uri not in message else "")
        return
    if kind == "hand-on":
        yield f"sent {forms.counted(fields.get('changes', 0), 'change')} to the program"
        yield from _recovery(fields)
        return
    yield f"audit: {_audit_state(fields)}" if kind == "audit" else str(fields.get("state", "done"))
    yield from _recovery(fields)
    changes = sum(fields.get(name, 0) for name in _CHANGES)
    if changes:
        yield forms.counted(changes, "change")
    if fields.get("bytes"):
        yield forms.size(fields["bytes"])
    for name in ("failed", "refused"):
        if fields.get(name):
            yield f"{forms.count(fields[name])} {name}"
    if fields.get("held"):
        yield f"{forms.counted(fields['held'], 'deletion')} held"


def _recovery(fields: Mapping[str, Any]) -> Iterator[str]:
    if fields.get("recovered"):
        yield f"after {forms.counted(fields['recovered'], 'failure')}"


def next_pull_text(planned: "NextPull", now: datetime) -> str:
    """Return the time and the reason of a mirror's next pull, in a few words."""
    reason = f"retry {planned.failures}" if planned.reason == "retry" else planned.reason.value
    if planned.time is None:
        return reason
    moment = datetime.fromtimestamp(planned.time, UTC)
    when = _time_of_day(moment, now) if moment > now else "now"
    return when if planned.reason == "scheduled" else f"{when} ({reason})"


def next_pull_fields(mirror: str, planned: "NextPull") -> dict[str, object]:
    """Return the next pull of a mirror as fields."""
    return {
        "mirror": mirror,
        "at": None if planned.time is None else datetime.fromtimestamp(planned.time, UTC),
        "reason": planned.reason.value.replace(" ", "_"),
        "tries": planned.failures,
    }


def _audit_state(fields: Mapping[str, Any]) -> str:
    return "in sync" if not fields["exit"] else "not in sync"


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _time_of_day(again: datetime, now: datetime) -> str:
    is_today = again.date() == now.date()
    return again.strftime("%H:%M:%SZ" if is_today else "%Y-%m-%dT%H:%MZ")


def watch_check(cache: StateCache) -> StatusCheck:
    """Return how a service reads its mirrors: none delays another one."""
    limits = FreshnessSettings()
    return StatusCheck(is_requested=False, limits=limits, read=cache.status, apart=cache.apart)


class WatchFigures:
    """The metrics of ``watch`` and of its mirrors."""

    def __init__(
        self,
        names: Callable[[], tuple[tuple[str, ...], MirrorConfiguration]],
        intervals: Callable[[], Mapping[Labels, float]],
        push: Subscriptions | None = None,
        planned: Callable[[str], NextPull | None] = lambda _: None,
        cache: StateCache | None = None,
    ) -> None:
        self._planned = planned
        self._cache = StateCache() if cache is None else cache
        self._names, self._intervals, self._push = names, intervals, push
        self._runs: Counter[Labels] = Counter()
        self._changes: Counter[Labels] = Counter()
        self._received: Counter[Labels] = Counter()
        self._seconds: dict[Labels, float] = {}
        self._accuracy: dict[Labels, float] = {}
        self._last: dict[str, Mapping[str, object]] = {}

    def count(self, kind: str, fields: Mapping[str, Any], seconds: float) -> None:
        """Count a finished job."""
        mirror = (("mirror", str(fields["mirror"])),)
        self._runs[(*mirror, ("kind", kind), ("exit", str(fields["exit"])))] += 1
        self._last[f"{fields['mirror']} {kind}"] = fields
        if kind == "audit" and "accuracy" in fields:
            self._accuracy[mirror] = float(fields["accuracy"])
        elif kind == "audit" and fields["exit"] == 0:
            self._accuracy.pop(mirror, None)  # it is no longer known
        if kind != "pull":
            return
        self._seconds[mirror] = seconds
        for name in _CHANGES:
            self._changes[(*mirror, ("change", name))] += int(fields.get(name, 0))
        self._received[mirror] += int(fields.get("bytes", 0))

    def figures(self) -> Iterator[Metric]:
        """Yield all metrics."""
        yield _gauge("build_info", "Version of this program, and the running command.", _BUILD)
        read = self._read_mirrors()
        seen = {name: found.mirrors for name, found in read.items()}
        yield from mirror_figures(
            [mirror for found in read.values() for mirror in found.mirrors],
            [mirror for found in read.values() for mirror in found.unreadable],
        )
        yield _counter("runs_total", "Runs that ended, by exit code.", self._runs)
        yield _counter("changes_total", "Changes that pulls applied.", self._changes)
        yield _counter("fetch_bytes_total", "Bytes that pulls received.", self._received)
        yield _gauge(
            "pull_duration_seconds", "Duration of the last pull.", self._watched(self._seconds)
        )
        yield _gauge(
            "audit_accuracy_ratio",
            "Share of the copies that the last audit found right.",
            self._watched(self._accuracy),
        )
        yield _gauge("mirror_interval_seconds", "Time between two pulls.", self._intervals_of(seen))
        hints: dict[Labels, float] = {
            (("direction", "in"), ("outcome", name)): n for name, n in self._counts().items()
        }
        yield _counter("notifications_total", "Notifications received.", hints)
        yield from _subscription_figures(self._standings())

    def status(self) -> bytes:
        """Return the mirrors as in ``status --json``, and the results of their last runs."""
        names = self._names()[0]
        ended = [row for row in list(self._last.values()) if row["mirror"] in names]
        found = self._read_mirrors().values()
        mirrors = [json_row("mirror", "", fields) for each in found for fields in each.fields()]
        pushed = [subscription_fields(standing) for standing in self._standings()]
        rows = {
            "mirrors": mirrors,
            "next": [json_row("next", "", plan) for plan in self._plans()],
            "ended": [json_row("ended", "", fields) for fields in ended],
            "subscriptions": [json_row("watch.subscription", "", fields) for fields in pushed],
        }
        return json_text({"v": VERSION, **rows}).encode()

    def _watched(self, values: Mapping[Labels, float]) -> Mapping[Labels, float]:
        """Return the values of the mirrors that are watched now; a reload may remove some."""
        names = self._names()[0]
        return {labels: value for labels, value in tuple(values.items()) if labels[0][1] in names}

    def _plans(self) -> Iterator[dict[str, object]]:
        for name in self._names()[0]:
            planned = self._planned(name)
            if planned is not None:
                yield next_pull_fields(name, planned)

    def _counts(self) -> Mapping[str, int]:
        return {} if self._push is None else self._push.counts

    def _standings(self) -> Sequence[SubscriptionReport]:
        return () if self._push is None else self._push.standings()

    def _intervals_of(self, seen: Mapping[str, Sequence[CheckedMirror]]) -> Mapping[Labels, float]:
        """Return the intervals of mirrors by their own labels: each set of a mirror has one."""
        known = self._intervals()
        return {
            (("mirror", mirror.status.folder),): known[label]
            for name, mirrors in seen.items()
            if (label := (("mirror", name),)) in known
            for mirror in mirrors
        }

    def _read_mirrors(self) -> dict[str, StatusResult]:
        """Return the mirrors by the names that are watched."""
        names, configuration = self._names()
        check = watch_check(self._cache)
        return {
            name: read_statuses((name,), configuration, CollectingScreen(), check) for name in names
        }


def _subscription_figures(found: Sequence[SubscriptionReport]) -> Iterator[Metric]:
    """Yield the metrics of subscriptions; their addresses would be too many labels."""
    standing: Counter[Labels] = Counter()
    deliveries: Counter[Labels] = Counter()
    ends: dict[Labels, float] = {}
    last: dict[Labels, float] = {}
    for report in found:
        mirror = (("mirror", report.mirror),)
        for state in SubscriptionStatus:
            standing[(*mirror, ("state", state.value))] += report.status is state
        deliveries[(*mirror, ("outcome", "taken"))] += report.accepted
        for fault, number in report.refusals:
            deliveries[(*mirror, ("outcome", fault.value))] += number
        if report.until is not None:
            ends[mirror] = min(ends.get(mirror, inf), report.until.timestamp())
        if report.last is not None:
            last[mirror] = max(last.get(mirror, 0.0), report.last.timestamp())
    yield _gauge("mirror_subscriptions", "Subscriptions to channels of its Source.", standing)
    yield _gauge("mirror_lease_end_timestamp_seconds", "Time of the end of its first lease.", ends)
    yield _gauge("mirror_last_delivery_timestamp_seconds", "Time of the last delivery.", last)
    yield _counter("mirror_deliveries_total", "Deliveries of hubs, by outcome.", deliveries)


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
