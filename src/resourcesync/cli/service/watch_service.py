"""The service behind ``watch``: its settings, its signals and its reports."""

import logging
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from math import isfinite
from pathlib import Path
from random import Random
from types import FrameType
from typing import Final

from resourcesync import app
from resourcesync.app import mirror_home
from resourcesync.app.stored_names import StoredNames
from resourcesync.app.watching.push_subscriptions import PushSubscriptions
from resourcesync.app.watching.service import StateCache, serve_operators
from resourcesync.app.watching.watch_jobs import read_history
from resourcesync.app.watching.watch_settings import WatchedMirror, WatchSettings
from resourcesync.cli.exit_codes import ExitCode, Interrupted
from resourcesync.cli.output import QUIET, CommandOutcome, Screen, TextLine, problem_of
from resourcesync.cli.service.watch_mirrors import JobReport, WatchJobRunner
from resourcesync.cli.service.watch_reports import job_fields, subscription_fields
from resourcesync.cli.service.watch_status import WatchView
from resourcesync.errors import ConfigurationError, ResourceSyncError, StateError
from resourcesync.model import formatting
from resourcesync.settings import environment
from resourcesync.watch.loop import FinishedJob, WatchLoop
from resourcesync.watch.scheduler import Every, JobKind, MirrorHistory, Scheduler
from resourcesync.websub.subscription_status import SubscriptionReport

_LOG: Final = logging.getLogger(__name__)
_TURN_SECONDS: Final = 30.0
_STUCK_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 5.0
_PARTS: Final = 3


class _SignalFlags:
    def __init__(self, wake: Callable[[], None]) -> None:
        self.stop = False
        self.reload = False
        self._wake = wake

    def handle(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self.reload = True
        elif self.stop and number == signal.SIGINT:
            raise Interrupted  # the second Ctrl-C: do not wait for the grace
        else:
            self.stop = True
        self._wake()


@contextmanager
def _handling_signals(signals: _SignalFlags) -> Iterator[None]:
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, signals.handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _WatchService:
    def __init__(self, settings: WatchSettings, screen: Screen) -> None:
        self._screen, self._settings = screen, settings
        self._clock = app.system.SystemClock()
        supervisor, self._watchdog = environment.read_service()
        self._supervisor = app.system.Supervisor(supervisor)
        pulled = StoredNames(settings.configuration.state_file("pulled"))
        cache = self._cache = StateCache()
        self._reported: dict[tuple[str, str], SubscriptionReport] = {}
        self._version = -1
        self._folders: dict[str, Path] = {}
        self._looked = self._clock.monotonic()
        self.runs = 0  # finished pulls
        scheduler, most = Scheduler(Random()), settings.service.parallel  # noqa: S311 - jitter
        self._work = WatchJobRunner(
            self._clock,
            self._subscribe,
            lambda mirror, fields: self._view.show_progress(mirror, fields),  # noqa: PLW0108 - it is made later
            pulled,
            cache,
        )
        self.watch = WatchLoop(scheduler, self._work, self._report_done, self._clock, most)
        self._view = WatchView(
            lambda: (self._settings.names, self._settings.configuration),  # a reload replaces both
            self._clock,
            cache,
            self.watch.next_pull,
            self.watch.running,
        )
        self._warned: dict[str, frozenset[str]] = {}

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Receive notifications, and serve the operators' pages, while the block runs."""
        chosen = self._settings.service
        with ExitStack() as stack:
            if chosen.callback:
                push = PushSubscriptions(
                    callback=chosen.callback,
                    listen=chosen.listen,
                    state=self._settings.push_state(),
                    on_hint=self.watch.hint,
                    clock=self._clock,
                )
                self._view.push = stack.enter_context(push)
            if chosen.admin is not None:
                view, token = self._view, self._settings.operator_token()
                shown = view, view.status, view.figures, self._check_health
                operator = (token, self._operate) if token else None
                uri = stack.enter_context(serve_operators(chosen.admin, *shown, operator))
                self._screen.report("admin", {"uri": uri})
            yield

    def _operate(self, action: str, name: str, number: int) -> bool:
        watched = self._view.watched_name(name)
        if watched and action == "release":
            self._release(watched, name, number)
        if watched and action in {"pull", "release"}:
            self.watch.pull_now(watched)
        elif watched:
            configuration, is_paused = self._settings.configuration, action == "pause"
            if is_paused and watched in configuration:
                configuration.check_present(watched)  # not in the place of a disk that is away
            mirror_home.pause(self._folders[watched], is_paused=is_paused)
            self.watch.pause(watched, is_paused=is_paused)
        return bool(watched)

    def _release(self, watched: str, name: str, number: int) -> None:
        found = self._view.mirror(name)
        is_whole = found and Path(found.summary.seen.folder) == self._folders[watched]
        held = found.summary.status.held if found and is_whole else 0  # not of one of several sets
        if number != held or not held:
            what = f"{formatting.counted(held, 'deletion')} can be released here"
            raise ConfigurationError(f"{what}, and {formatting.count(number)} confirmed")
        self._work.release(watched, number)

    def _check_health(self) -> None:
        late = self._clock.monotonic() - self.watch.beat
        if late > _STUCK_SECONDS:
            raise StateError(f"the loop is stuck for {late:.0f} s")

    def _subscribe(self, mirror: WatchedMirror) -> None:
        push, name = self._view.push, mirror.target.name
        if push is None or not mirror.wanted.accepts_hints:
            return
        network = self._settings.configuration.network(name, {})
        try:
            push.follow(name, mirror.target.folder, network)
        except ResourceSyncError as error:
            _LOG.warning("push for %s: %s", name, error)

    def apply(self, settings: WatchSettings) -> None:
        """Apply new settings; after a mistake in them, change nothing."""
        watched, chosen = settings.watched_mirrors()
        requested = {
            name: (mirror.target.address or "", settings.configuration.network(name, {}))
            for name, mirror in watched.items()
            if mirror.wanted.accepts_hints
        }
        push = self._view.push
        if push is not None:
            push.retain(requested)
        for name, (_, network) in requested.items():
            if push is None:
                warning = {
                    "code": "config",
                    "message": f"`push = true` of {name} has no effect: `watch` has no callback",
                    "mirror": name,
                    "evidence": (("kept", "its schedule"),),
                    "hint": "set `callback` in [watch], or use watch --callback, and restart",
                }
                self._screen.report("warning", warning)
            else:
                push.follow_soon(name, watched[name].target.folder, network)
        self._settings = settings
        self._folders = {name: mirror.target.folder for name, mirror in watched.items()}
        self._work.configure(watched, chosen)
        self._view.intervals = {
            name: mirror.wanted.pull.seconds
            for name, mirror in watched.items()
            if isinstance(mirror.wanted.pull, Every)
        }
        past = {name: self._read_history(name) for name in watched}
        self.watch.configure({name: mirror.wanted for name, mirror in watched.items()}, past)
        self._screen.report("watch", {"mirrors": list(watched)})

    def _read_history(self, name: str) -> MirrorHistory:
        folder = self._folders[name]
        try:
            return self._cache.apart(str(folder), partial(read_history, folder))
        except ResourceSyncError:  # each pull reports it
            return MirrorHistory()

    def run_loop(self, signals: _SignalFlags, read_settings: Callable[[], WatchSettings]) -> None:
        pulse = self._watchdog / _PARTS if self._watchdog else _TURN_SECONDS
        self._supervisor.notify(READY=1, STATUS=self._status())
        while not signals.stop:
            self.watch.run_once(pulse)
            self._record_external_pulls()
            self._report_subscriptions()
            self._supervisor.notify(WATCHDOG=1, STATUS=self._status())
            if signals.reload:
                signals.reload = False
                self._reload(read_settings)

    def _report_subscriptions(self) -> None:
        push = self._view.push
        if push is None or push.version == self._version:
            return
        self._version = push.version
        try:
            found = {(report.mirror, report.topic): report for report in push.standings()}
        except ResourceSyncError as error:
            _LOG.warning("push: %s", error)
            return
        for key, report in found.items():
            before = self._reported.get(key)
            if before is None or _standing(before) != _standing(report):
                was = {} if before is None else {"was": before.status.value}
                fields = {"time": self._clock.now(), **subscription_fields(report), **was}
                self._screen.report("watch.subscription", fields)
        self._reported = found

    def _record_external_pulls(self) -> None:
        if self._clock.monotonic() - self._looked < _LOOK_SECONDS:
            return
        for name in self.watch.failing():
            self.watch.record_external_pull(name, self._read_history(name))
        self._looked = self._clock.monotonic()

    def finish(self) -> None:
        self._supervisor.notify(STOPPING=1)
        self.watch.finish(self._settings.service.grace)

    def _reload(self, read_settings: Callable[[], WatchSettings]) -> None:
        self._supervisor.notify(RELOADING=1, MONOTONIC_USEC=int(self._clock.monotonic() * 1e6))
        try:
            self.apply(read_settings())
        except ResourceSyncError as error:  # the former settings stay
            problem = problem_of(error)
            evidence = (*problem.evidence, ("kept", "the previous configuration"))
            self._screen.problem(problem._replace(evidence=evidence))
        self.watch.retry()
        self._supervisor.notify(READY=1, STATUS=self._status())

    def _status(self) -> str:
        names = len(self._settings.names)
        busy = ", ".join(f"{job.kind.value} {job.mirror}" for job in list(self.watch.running())[:3])
        return f"{names} mirrors, {self.runs} runs; now: {busy or 'waiting'}"

    def _report_done(self, done: FinishedJob) -> None:
        report = done.report
        self._view.end_progress(done.job.mirror)
        if not isinstance(report, JobReport) or report.stopped:
            return
        self.runs += done.job.kind is JobKind.PULL
        now, mirror = self._clock.now(), done.job.mirror
        for problem in report.problems:
            self._screen.problem(problem.about("mirror", mirror))
        if done.job.kind is JobKind.PULL:
            self._report_warnings(mirror, report.warnings)
        if done.job.kind is JobKind.HAND_OVER and not (report.exit or report.fields.get("changes")):
            return  # no program ran: there was no change to send, as after most pulls
        kind = done.job.kind.value.replace(" ", "-")
        fields = job_fields(done, report, now, done.next_due if isfinite(done.next_due) else None)
        planned = self._view.planned(mirror)
        if planned is not None and planned.is_paused:
            fields |= {"again": None, "paused": True}
        self._view.count(kind, fields, done.seconds)
        for phase in report.phases:
            self._screen.report("phase", {**phase, "mirror": mirror})
        self._screen.report(f"watch.{kind}", fields)

    def _report_warnings(self, mirror: str, warnings: Sequence[Mapping[str, object]]) -> None:
        before = self._warned.get(mirror, frozenset())
        self._warned[mirror] = frozenset(str(warning.get("message")) for warning in warnings)
        for warning in warnings:
            if warning.get("message") not in before:
                self._screen.report("warning", {"mirror": mirror, **warning})


def _standing(report: SubscriptionReport) -> tuple[object, ...]:
    return report.status, report.until, report.reason, report.refused


def run_service(
    first: WatchSettings, read_settings: Callable[[], WatchSettings], screen: Screen
) -> CommandOutcome:
    """Keep mirrors in sync until a signal to stop."""
    watching = _WatchService(first, screen)
    signals = _SignalFlags(watching.watch.wake)
    with _handling_signals(signals), watching.listening():
        watching.apply(first)
        watching.run_loop(signals, read_settings)
        watching.finish()
    line = TextLine("cleanly; a restart continues where it left off.", "Stopped", QUIET)
    return CommandOutcome(exit=ExitCode.OK, closing=(line,), fields={"runs": watching.runs})
