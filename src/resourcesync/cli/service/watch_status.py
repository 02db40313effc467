"""The mirrors of a service: their statuses and its knowledge, for pages, metrics and JSON."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from resourcesync import __version__
from resourcesync.app.configured_mirrors import MirrorConfiguration
from resourcesync.app.watching import watch_jobs
from resourcesync.app.watching.push_subscriptions import PushSubscriptions
from resourcesync.app.watching.service import StateCache
from resourcesync.cli.commands.status import StatusCheck, StatusResult, read_statuses
from resourcesync.cli.json_output import VERSION, json_row, json_text
from resourcesync.cli.output import Screen, problem_of
from resourcesync.cli.render.status import Unreadable, mirror_metrics, notes_of
from resourcesync.cli.service.watch_reports import CHANGES, subscription_fields
from resourcesync.destination.mirror_health import CheckedMirror
from resourcesync.destination.reports import MirrorState, MirrorStatus
from resourcesync.errors import ResourceSyncError
from resourcesync.ports import Clock
from resourcesync.server.dashboard import views
from resourcesync.server.metrics import Labels, Metric, counter, gauge
from resourcesync.settings.mirror import FreshnessSettings
from resourcesync.watch.scheduler import JobKind, MirrorJob, NextPull
from resourcesync.websub.subscription_status import SubscriptionReport, SubscriptionStatus

_BUILD: Final[Mapping[Labels, float]] = {(("version", __version__), ("command", "watch")): 1}


class WatchView:
    """What a service knows of its mirrors: for its pages (``Views``), metrics and JSON."""

    def __init__(
        self,
        names: Callable[[], tuple[tuple[str, ...], MirrorConfiguration]],
        clock: Clock,
        cache: StateCache | None = None,
        planned: Callable[[str], NextPull | None] = lambda _: None,
        running: Callable[[], Mapping[MirrorJob, float]] = dict,
    ) -> None:
        self._names, self._clock, self.planned, self._running = names, clock, planned, running
        self._cache = StateCache() if cache is None else cache
        self.push: PushSubscriptions | None = None
        self.intervals: Mapping[str, float] = {}  # seconds between two pulls
        self._progress: dict[str, tuple[int, int]] = {}
        self._runs: Counter[Labels] = Counter()
        self._changes: Counter[Labels] = Counter()
        self._received: Counter[Labels] = Counter()
        self._seconds: dict[Labels, float] = {}
        self._last: dict[str, Mapping[str, object]] = {}

    def show_progress(self, mirror: str, fields: Mapping[str, object]) -> None:
        """Record the progress of a running pull, by the fields of its event."""
        self._progress[mirror] = int(str(fields["done"])), int(str(fields["total"] or 0))

    def end_progress(self, mirror: str) -> None:
        """Forget the progress of a mirror's pull: it ended, or gave way to others."""
        self._progress.pop(mirror, None)

    def now(self) -> datetime:
        """Return the present moment, UTC."""
        return self._clock.now()

    def watched_name(self, name: str) -> str:
        """Return the name by which a mirror of the pages is watched; empty for an unknown one."""
        names, configuration = self._names()
        if name in names:
            return name
        path = Path(name)
        for watched in names:
            with suppress(ResourceSyncError):  # the overview says so
                if configuration.folder(watched) in {path, path.parent}:
                    return watched
        return ""

    def mirrors(self) -> Sequence[views.MirrorSummary]:
        """Return all mirrors; an unreadable one with its error."""
        return list(self._each(self._names()[0]))

    def mirror(self, name: str) -> views.MirrorDetail | None:
        """Return one mirror and its recent past."""
        watched = self.watched_name(name)
        each = self._each((watched,) if watched else ())
        summary = next((found for found in each if found.name == name), None)
        if summary is None:
            return None
        folder = Path(summary.seen.folder)
        seen = views.MirrorDetail(summary=summary, now=self.now(), runs=self._cache.pulls(folder))
        if summary.error:
            return seen
        try:
            return self._cache.apart(str(folder), partial(watch_jobs.read_detail, folder, seen))
        except ResourceSyncError as error:
            mirror = Unreadable(name, problem_of(error), folder=str(folder))
            return replace(seen, summary=replace(_unreadable(mirror), next=summary.next))

    def _each(self, names: Sequence[str]) -> Iterator[views.MirrorSummary]:
        running = self._running_jobs()
        pushed = {} if self.push is None else self.push.statuses()
        for watched, found in self._read(names).items():
            planned = self.planned(watched)
            next_pull = "" if planned is None else views.next_pull_text(planned, self.now())
            known = (
                views.MirrorSummary(seen=seen, notes=tuple(notes_of(seen, next_pull)))
                for seen in found.mirrors
            )
            for summary in (*map(_unreadable, found.unreadable), *known):
                yield replace(
                    summary, push=pushed.get(watched), next=planned, running=running.get(watched)
                )

    def _running_jobs(self) -> dict[str, views.RunningJob]:
        now, found = self.now(), dict[str, views.RunningJob]()
        for job, seconds in self._running().items():
            if job.kind is JobKind.HAND_OVER:
                continue
            is_pull = job.kind is JobKind.PULL
            done, total = self._progress.get(job.mirror, (0, 0)) if is_pull else (0, 0)
            since = now - timedelta(seconds=seconds)
            found[job.mirror] = views.RunningJob(
                kind=job.kind.value, since=since, done=done, total=total
            )
        return found

    def _read(self, names: Sequence[str]) -> dict[str, StatusResult]:
        configuration = self._names()[1]
        check = StatusCheck(
            is_requested=False,
            limits=FreshnessSettings(),
            read=self._cache.status,
            apart=self._cache.apart,
        )
        return {name: read_statuses((name,), configuration, Screen(), check) for name in names}

    def count(self, kind: str, fields: Mapping[str, Any], seconds: float) -> None:
        """Count a finished job."""
        mirror = (("mirror", str(fields["mirror"])),)
        self._runs[(*mirror, ("kind", kind), ("exit", str(fields["exit"])))] += 1
        self._last[f"{fields['mirror']} {kind}"] = fields
        if kind != "pull":
            return
        self._seconds[mirror] = seconds
        for name in CHANGES:
            self._changes[(*mirror, ("change", name))] += int(fields.get(name, 0))
        self._received[mirror] += int(fields.get("received_bytes", 0))

    def figures(self) -> Iterator[Metric]:
        """Yield all metrics."""
        yield gauge("build_info", "Version of this program, and the running command.", _BUILD)
        read = self._read(self._names()[0])
        seen = {name: found.mirrors for name, found in read.items()}
        yield from mirror_metrics(
            [mirror for found in read.values() for mirror in found.mirrors],
            [mirror for found in read.values() for mirror in found.unreadable],
        )
        yield counter("runs_total", "Runs that ended, by exit code.", self._runs)
        yield counter("changes_total", "Changes that pulls applied.", self._changes)
        yield counter("fetch_bytes_total", "Bytes that pulls received.", self._received)
        times = {of: value for of, value in tuple(self._seconds.items()) if of[0][1] in read}
        yield gauge("pull_duration_seconds", "Duration of the last pull.", times)
        yield gauge("mirror_interval_seconds", "Time between two pulls.", self._intervals_of(seen))
        hints: dict[Labels, float] = {
            (("direction", "in"), ("outcome", name)): n
            for name, n in (() if self.push is None else self.push.counts.items())
        }
        yield counter("notifications_total", "Notifications received.", hints)
        yield from _subscription_figures(self._standings())

    def status(self) -> bytes:
        """Return the mirrors as in ``status --json``, and the results of their last runs."""
        names = self._names()[0]
        ended = [row for row in list(self._last.values()) if row["mirror"] in names]
        found = self._read(names).values()
        mirrors = [json_row("mirror", "", fields) for each in found for fields in each.fields()]
        pushed = [subscription_fields(standing) for standing in self._standings()]
        rows = {
            "mirrors": mirrors,
            "next": [
                json_row("next", "", _next_pull_fields(name, planned))
                for name in names
                if (planned := self.planned(name)) is not None
            ],
            "ended": [json_row("ended", "", fields) for fields in ended],
            "subscriptions": [json_row("watch.subscription", "", fields) for fields in pushed],
        }
        return json_text({"v": VERSION, **rows}).encode()

    def _standings(self) -> Sequence[SubscriptionReport]:
        return () if self.push is None else self.push.standings()

    def _intervals_of(self, seen: Mapping[str, Sequence[CheckedMirror]]) -> Mapping[Labels, float]:
        return {
            (("mirror", mirror.status.mirror),): self.intervals[name]
            for name, mirrors in seen.items()
            if name in self.intervals
            for mirror in mirrors
        }


def _unreadable(mirror: Unreadable) -> views.MirrorSummary:
    problem = mirror.problem
    hint = (f"next   {problem.hint}",) if problem.hint else ()
    status = MirrorStatus(mirror=mirror.name, source="", state=MirrorState.FAILING)
    return views.MirrorSummary(
        seen=CheckedMirror(status, folder=mirror.folder),
        error=problem.message,
        notes=(problem.message, *hint),
    )


def _next_pull_fields(mirror: str, planned: "NextPull") -> dict[str, object]:
    return {
        "mirror": mirror,
        "at": None if planned.time is None else datetime.fromtimestamp(planned.time, UTC),
        "reason": planned.reason.value.replace(" ", "_"),
        "tries": planned.failures,
    }


def _subscription_figures(found: Sequence[SubscriptionReport]) -> Iterator[Metric]:
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
    yield gauge("mirror_subscriptions", "Subscriptions to channels of its Source.", standing)
    yield gauge("mirror_lease_end_timestamp_seconds", "Time of the end of its first lease.", ends)
    yield gauge("mirror_last_delivery_timestamp_seconds", "Time of the last delivery.", last)
    yield counter("mirror_deliveries_total", "Deliveries of hubs, by outcome.", deliveries)
