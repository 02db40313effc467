"""The service behind ``watch``: its settings, its signals and its reports."""

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from types import FrameType
from typing import Final

from msgspec import structs

from resourcesync.app import machine
from resourcesync.app.watching import service
from resourcesync.app.watching.push_subscriptions import PushState
from resourcesync.app.watching.watch_jobs import AuditOptions, last_good_pull, read_history
from resourcesync.cli.configured_mirrors import MirrorConfiguration, values_of
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.log_file import check_log
from resourcesync.cli.output import CommandOutcome, Screen, problem_of
from resourcesync.cli.pull_run import PullTarget, TargetResolver
from resourcesync.cli.render_watch import WatchFigures, job_fields
from resourcesync.cli.signals import Interrupted
from resourcesync.cli.status_formats import Labels
from resourcesync.cli.watch_mirrors import (
    JobReport,
    Subscriptions,
    WatchedMirror,
    WatchJobRunner,
)
from resourcesync.cli.watch_pages import WatchPages
from resourcesync.errors import ConfigurationError, ResourceSyncError, StateError, StorageError
from resourcesync.settings import environment
from resourcesync.settings.mirror import ScheduleSettings, ServiceSettings
from resourcesync.settings.schema import make
from resourcesync.settings.tables import SettingValue
from resourcesync.watch.loop import FinishedJob, NextPull
from resourcesync.watch.scheduler import (
    Cron,
    Every,
    JobKind,
    MirrorHistory,
    MirrorSchedule,
    Timetable,
)

DEFAULT_INTERVAL: Final = 3_600.0
"""Seconds between two pulls of a named mirror without a schedule."""

_TURN_SECONDS: Final = 30.0
_CHECK_SECONDS: Final = 5.0
_STUCK_SECONDS: Final = 120.0
_PARTS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """The settings of the service.

    Attributes:
        configuration: The configuration file.
        names: The mirrors, by name or folder.
        every: Default seconds between two pulls; ``None`` for ``DEFAULT_INTERVAL``.
        service: The settings for all mirrors together.
    """

    configuration: MirrorConfiguration
    names: tuple[str, ...]
    every: float | None = None
    service: ServiceSettings = field(default_factory=ServiceSettings)

    def watched_mirrors(self) -> tuple[dict[str, WatchedMirror], TargetResolver]:
        """Return the mirrors, and the resolver for their pulls.

        Raises:
            ConfigurationError: A table has a mistake.
        """
        chosen = TargetResolver(self.configuration, {})
        return {name: self._watched_mirror(name, chosen) for name in self.names}, chosen

    def problems(self) -> Iterator[ConfigurationError]:
        """Yield the mistakes for which `watched_mirrors` refuses a mirror."""
        chosen = TargetResolver(self.configuration, {})
        for name in self.names:
            try:
                self._watched_mirror(name, chosen)
            except ConfigurationError as error:
                yield error

    def push_state(self) -> PushState:
        """Return the place of the subscriptions of this configuration."""
        file = self.configuration.file
        return PushState(
            folder=self.service.state or environment.state_folder(),
            configuration=None if file is None else file.path,
            mirrors=frozenset((*self.configuration.names, *self.names)),
        )

    def _watched_mirror(self, name: str, chosen: TargetResolver) -> WatchedMirror:
        schedule = make(ScheduleSettings, values_of(self._settings(name)))
        sample = schedule.audit_sample
        if sample is not None and not sample.percent:
            raise self._mistake(name, "audit_sample", "must be a share of the files, such as 15%")
        if schedule.on_change_limit < 1:
            raise self._mistake(name, "on_change_limit", "must be at least 1s")
        share = sample.percent / 100 if sample is not None and sample.percent else 1.0
        return WatchedMirror(
            target=self._with_job_share(chosen.target(name)),
            wanted=MirrorSchedule(
                pull=self._timetable(name, schedule),
                audit=Every(schedule.audit_every) if schedule.audit_every else None,
                hands_over=bool(schedule.on_change),
                accepts_hints=schedule.push,
            ),
            on_change=schedule.on_change,
            limit=schedule.on_change_limit,
            audit=AuditOptions(
                method=schedule.audit_method,
                share=min(share, 1.0),
                oldest_first=schedule.audit_oldest_first,
            ),
        )

    def _settings(self, name: str) -> Mapping[str, SettingValue]:
        if name in self.configuration.names:
            return self.configuration.mirror(name).settings
        return self.configuration.defaults

    def _timetable(self, name: str, schedule: ScheduleSettings) -> Timetable:
        if schedule.cron:
            try:
                return Cron(schedule.cron)
            except ConfigurationError as error:
                raise self._mistake(name, "cron", error.message, hint=error.hint) from error
        every = (self.every or DEFAULT_INTERVAL) if schedule.every is None else schedule.every
        if every < 1:
            raise self._mistake(name, "every", "must be at least 1s")
        return Every(every)

    def _mistake(self, name: str, key: str, reason: str, *, hint: str = "") -> ConfigurationError:
        file = self.configuration.file
        table = ("mirror", name)
        if file is not None and key in file.table(*table):
            return file.key_error(table, key, reason, hint=hint)
        return ConfigurationError(f"`{key}` of {name} {reason}", hint=hint)

    def _with_job_share(self, target: PullTarget) -> PullTarget:
        """Return the target with its share of all requests, or less if it has a lower limit."""
        share = max(self.service.jobs // self.service.parallel, 1)
        own = target.network.jobs
        jobs = share if own is None else min(own, share)
        return target._replace(network=structs.replace(target.network, jobs=jobs))


def watch_problems(configuration: MirrorConfiguration) -> Iterator[ResourceSyncError]:
    """Yield the mistakes for which ``watch`` refuses an otherwise valid configuration."""
    log = configuration.log.get("file")
    if log is not None:
        try:
            check_log(Path(log.value))
        except StorageError as error:
            yield error
    names = configuration.names
    yield from WatchSettings(configuration=configuration, names=names).problems()


class _SignalFlags:
    """The requests of signals: to stop, or to read the configuration again."""

    def __init__(self) -> None:
        self.stop = False
        self.reload = False

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Record a signal; the loop was woken up already."""
        if number == signal.SIGHUP:
            self.reload = True
        elif self.stop and number == signal.SIGINT:
            raise Interrupted  # the second Ctrl-C: do not wait for the grace
        else:
            self.stop = True


@contextmanager
def _handling_signals(signals: _SignalFlags, wake_up: int) -> Iterator[None]:
    """Record signals and wake up the loop, within the block; none of them raises."""
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, signals.handle) for number in numbers}
    old = signal.set_wakeup_fd(wake_up, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(old)
        for number, handler in before.items():
            signal.signal(number, handler)


class _WatchService:
    """The loop of ``watch``, with its reports, pages and metrics.

    Args:
        settings: The first settings.
        screen: Shows the reports.
    """

    def __init__(self, settings: WatchSettings, screen: Screen) -> None:
        self._screen, self._settings = screen, settings
        self._clock = machine.system_clock()
        self._supervisor, self._watchdog = machine.supervisor()
        self._work = WatchJobRunner(self._clock, self._subscribe)
        self._push = Subscriptions(screen, self._clock)
        self._runs = 0
        self.watch = service.open_loop(
            self._work, self._report_done, self._clock, settings.service.parallel
        )
        self._intervals: Mapping[Labels, float] = {}
        self._figures = WatchFigures(
            lambda: (self._settings.names, self._settings.configuration),
            lambda: self._intervals,
            self._push,
            self._planned,
        )
        self._pages = WatchPages(
            lambda: (self._settings.names, self._settings.configuration),
            self._clock,
            self._push.pushed,
            self._planned,
        )
        self._checked_at = 0.0
        self._warned: dict[str, frozenset[str]] = {}

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Receive notifications, and serve the operators' pages, while the block runs.

        Raises:
            ConfigurationError: An address cannot be listened on.
            LockedError: Another service of the same configuration runs.
            StorageError: Subscriptions cannot be stored.
        """
        chosen = self._settings.service
        with ExitStack() as stack:
            if chosen.callback:
                state = self._settings.push_state()
                opened = self._push.opened(chosen.callback, chosen.listen, state, self._hint)
                stack.enter_context(opened)
            if chosen.admin is not None:
                uri = stack.enter_context(
                    service.serve_operators(
                        chosen.admin,
                        self._pages,
                        self._figures.status,
                        self._figures.figures,
                        self._check_health,
                    )
                )
                self._screen.report("admin", {"uri": uri})
            yield

    def _hint(self, mirror: str) -> None:
        """Handle a notification: the mirror is due."""
        self._pages.notice(mirror)
        self.watch.hint(mirror)

    def _planned(self, mirror: str) -> NextPull | None:
        """Return the next pull of a mirror; may be called on any thread."""
        return self.watch.next_pull(mirror)

    def _check_health(self) -> None:
        """Raise if the loop is stuck."""
        late = self._clock.monotonic() - self.watch.beat
        if late > _STUCK_SECONDS:
            raise StateError(f"the loop is stuck for {late:.0f} s")

    def _subscribe(self, mirror: WatchedMirror) -> None:
        """Follow the channels of a mirror's Source; it is polled in any case."""
        if mirror.wanted.accepts_hints:
            name = mirror.target.name
            network = self._settings.configuration.network(name, {})
            self._push.follow(name, mirror.target.folder, network)

    def apply(self, settings: WatchSettings) -> None:
        """Apply new settings; after a mistake in them, change nothing.

        Raises:
            ConfigurationError: A table has a mistake, or a secret cannot be read.
            StorageError: Subscriptions cannot be stored.
        """
        watched, chosen = settings.watched_mirrors()
        requested = {
            name: (mirror.target.address or "", settings.configuration.network(name, {}))
            for name, mirror in watched.items()
            if mirror.wanted.accepts_hints
        }
        self._push.subscribe(requested)
        self._settings = settings
        self._work.configure(watched, chosen)
        self._intervals = {
            (("mirror", name),): mirror.wanted.pull.seconds
            for name, mirror in watched.items()
            if isinstance(mirror.wanted.pull, Every)
        }
        past = {name: self._read_history(mirror.target.folder) for name, mirror in watched.items()}
        self.watch.configure({name: mirror.wanted for name, mirror in watched.items()}, past)
        self._screen.report("watch", {"mirrors": list(watched)})

    def _read_history(self, folder: Path) -> MirrorHistory:
        try:
            return read_history(folder)
        except ResourceSyncError:  # each pull reports it
            return MirrorHistory()

    def run_loop(self, signals: _SignalFlags, read_settings: Callable[[], WatchSettings]) -> None:
        """Run until a signal to stop."""
        pulse = self._watchdog / _PARTS if self._watchdog else _TURN_SECONDS
        self._supervisor.notify(READY=1, STATUS=self._status())
        while not signals.stop:
            self.watch.run_once(min(pulse, _CHECK_SECONDS) if self.watch.failing() else pulse)
            self._check_external_pulls()
            self._push.report_changes()
            self._supervisor.notify(WATCHDOG=1, STATUS=self._status())
            if signals.reload:
                signals.reload = False
                self._reload(read_settings)

    def _check_external_pulls(self) -> None:
        """Record good pulls by other processes, of mirrors that wait after a failure."""
        now = self._clock.monotonic()
        if now - self._checked_at < _CHECK_SECONDS:
            return
        self._checked_at = now
        for name, failed in self.watch.failing().items():
            try:
                moment = last_good_pull(self._settings.configuration.folder(name), failed)
            except ResourceSyncError:  # the next pull reports it
                continue
            if moment is not None:
                self.watch.record_pull(name, moment)

    def finish(self) -> None:
        """Stop all work cleanly, within the grace."""
        self._supervisor.notify(STOPPING=1)
        self.watch.finish(self._settings.service.grace)

    def _reload(self, read_settings: Callable[[], WatchSettings]) -> None:
        moment = int(self._clock.monotonic() * 1e6)
        self._supervisor.notify(RELOADING=1, MONOTONIC_USEC=moment)
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
        busy = ", ".join(f"{job.kind.value} {job.mirror}" for job in self.watch.running[:3])
        return f"{names} mirrors, {self._runs} runs; now: {busy or 'waiting'}"

    def _report_done(self, done: FinishedJob) -> None:
        report = done.report
        if not isinstance(report, JobReport) or report.stopped:
            return
        self._runs += done.job.kind is JobKind.PULL
        now = self._clock.now()
        mirror = done.job.mirror
        for problem in report.problems:
            evidence = (("mirror", mirror), *problem.evidence)
            self._screen.problem(problem._replace(evidence=evidence))
        if done.job.kind is JobKind.PULL:
            warnings = report.warnings
            before = self._warned.get(mirror, frozenset())
            self._warned[mirror] = frozenset(str(warning.get("message")) for warning in warnings)
            for warning in warnings:
                if warning.get("message") not in before:
                    self._screen.report("warning", {"mirror": mirror, **warning})
        kind = done.job.kind.value.replace(" ", "-")
        fields = job_fields(done, report, now, done.next_due if isfinite(done.next_due) else None)
        self._figures.count(kind, fields, done.seconds)
        if done.job.kind is JobKind.HAND_OVER and not (report.exit or report.fields.get("changes")):
            return  # there was no change to send, as after most pulls
        self._pages.count(kind, fields)
        self._screen.report(f"watch.{kind}", fields)

    @property
    def runs(self) -> int:
        """Number of finished pulls."""
        return self._runs


def run_service(
    first: WatchSettings, read_settings: Callable[[], WatchSettings], screen: Screen
) -> CommandOutcome:
    """Keep mirrors in sync until a signal to stop.

    Args:
        first: The first settings.
        read_settings: Reads the settings again.
        screen: Shows the reports.

    Raises:
        ConfigurationError: A table has a mistake.
    """
    signals = _SignalFlags()
    watching = _WatchService(first, screen)
    try:
        with _handling_signals(signals, watching.watch.wake_up.fileno()), watching.listening():
            watching.apply(first)
            watching.run_loop(signals, read_settings)
            watching.finish()
    finally:
        watching.watch.close()
    line = TextLine("cleanly; a restart continues where it left off.", "Stopped", QUIET)
    return CommandOutcome(exit=ExitCode.OK, closing=(line,), fields={"runs": watching.runs})
