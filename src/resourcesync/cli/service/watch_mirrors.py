"""The jobs of ``watch`` for one mirror (pull, audit, program of ``on_change``), and push."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from resourcesync import app
from resourcesync.app import mirror_home
from resourcesync.app.configured_pulls import PulledMirror, Puller, PullTarget, TargetResolver
from resourcesync.app.mirror import mirror_at
from resourcesync.app.stored_names import StoredNames
from resourcesync.app.watching.service import StateCache
from resourcesync.app.watching.watch_jobs import ChangeLine, forward_changes, record_failed_pull
from resourcesync.app.watching.watch_settings import WatchedMirror
from resourcesync.cli.commands.changes import change_fields
from resourcesync.cli.crash import write_crash_report
from resourcesync.cli.exit_codes import ExitCode, exit_code_of_pull, worst
from resourcesync.cli.json_output import json_line
from resourcesync.cli.output import CommandOutcome, Problem, problem_of
from resourcesync.cli.render.audit import conclude as conclude_audit
from resourcesync.destination.mirror_health import WORST_FIRST
from resourcesync.destination.reports import FailedRun, MirrorState, RunReport, report_fields
from resourcesync.errors import BudgetError, ResourceSyncError, StoppedError
from resourcesync.mirror_state.rows import LoggedChange
from resourcesync.model import formatting as forms
from resourcesync.model.settings import Limit
from resourcesync.ports import CancelToken, Clock
from resourcesync.server.dashboard.views import EndedPull
from resourcesync.watch.scheduler import JobKind, JobOutcome, JobStatus, MirrorJob

CONSUMER: Final = "on_change"
"""Name of the consumer whose cursor the program of ``on_change`` has."""

_MOST_WARNINGS: Final = 100
_COMPLETED: Final = frozenset(
    {ExitCode.OK, ExitCode.FINDINGS, ExitCode.PARTIAL, ExitCode.STOPPED, ExitCode.BUDGET}
)


class JobReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a job."""

    exit: ExitCode
    fields: Mapping[str, object] = msgspec.field(default_factory=dict)
    problem: Problem | None = None
    run: RunReport | None = None  # of the pull of one mirror
    failed: Mapping[str, FailedRun] = {}  # of single sets by their folders
    problems: tuple[Problem, ...] = ()  # of single sets
    warnings: tuple[Mapping[str, object], ...] = ()
    phases: tuple[Mapping[str, object], ...] = ()
    stopped: bool = False  # because the service stops


_SUMMED: Final = ("created", "updated", "deleted", "failed", "held", "received_bytes")
OnPulled = Callable[[WatchedMirror], None]

OnProgress = Callable[[str, Mapping[str, object]], None]
"""Receives the progress of a mirror's pull, on the thread of the pull."""


class WatchJobRunner:
    """A runner of jobs, each on its own thread (``watch.loop.UnitFunction``)."""

    def __init__(
        self,
        clock: Clock,
        on_pulled: OnPulled,
        on_progress: OnProgress,
        pulled: StoredNames,
        cache: StateCache,
    ) -> None:
        self._clock, self._pulled, self._cache = clock, pulled, cache
        self._on_pulled, self._on_progress = on_pulled, on_progress
        self._watched: Mapping[str, WatchedMirror] = {}
        self._resolver: TargetResolver | None = None
        self._released: dict[str, int] = {}

    def configure(self, watched: Mapping[str, WatchedMirror], chosen: TargetResolver) -> None:
        """Set the mirrors for later jobs; running jobs keep their settings."""
        self._watched, self._resolver = watched, chosen

    def release(self, mirror: str, number: int) -> None:
        """Let the next pull of a mirror delete so many copies, and no more."""
        self._released[mirror] = number

    def __call__(self, job: MirrorJob, cancel: CancelToken) -> tuple[JobOutcome, JobReport]:
        """Run a job; a bug is reported, and raises nothing."""
        mirror = self._watched.get(job.mirror)
        if mirror is None:
            return JobOutcome(status=JobStatus.DONE), JobReport(exit=ExitCode.OK, stopped=True)
        began = self._clock.now()
        outcome, report = self._run(job, mirror, cancel)
        if job.kind is JobKind.PULL:
            if outcome.status is JobStatus.FAILED:
                record_failed_pull(mirror.target, report.failed, began, self._clock)
            self._remember(mirror.target.folder, report, began)
        return outcome, report

    def _remember(self, folder: Path, report: JobReport, began: datetime) -> None:
        ended = EndedPull(started=began, ended=self._clock.now(), outcome="ok", report=report.run)
        if report.run is not None:
            self._cache.add_pull(folder, ended)
        for name, failed in report.failed.items():
            pull = replace(ended, outcome=failed.code, failed=failed)
            self._cache.add_pull(Path(name) if name else folder, pull)

    def _run(
        self, job: MirrorJob, mirror: WatchedMirror, cancel: CancelToken
    ) -> tuple[JobOutcome, JobReport]:
        try:
            match job.kind:
                case JobKind.PULL:
                    target = mirror.target
                    if number := self._released.pop(job.mirror, 0):
                        options = replace(target.options, max_delete=Limit(number))
                        target = target._replace(options=options)
                    return self._pull(mirror, target, cancel)
                case JobKind.AUDIT:
                    return self._audit(mirror, cancel)
                case JobKind.HAND_OVER:
                    return self._send_changes(mirror, cancel)
        except StoppedError:
            report = JobReport(exit=ExitCode.TERMINATED, stopped=True)
            return JobOutcome(status=JobStatus.PREEMPTED), report
        except ResourceSyncError as error:
            problem = problem_of(error, job.mirror)
            report = JobReport(exit=problem.exit, problem=problem, failed={"": FailedRun.of(error)})
            return _job_result(report)
        except Exception as error:  # noqa: BLE001 - a bug in one mirror stops no other
            problem = write_crash_report(error, ["watch", job.mirror])
            failed = FailedRun(code=problem.code, message=problem.message, hint=problem.hint)
            return _job_result(JobReport(exit=problem.exit, problem=problem, failed={"": failed}))

    def _pull(
        self, mirror: WatchedMirror, target: PullTarget, cancel: CancelToken
    ) -> tuple[JobOutcome, JobReport]:
        assert self._resolver is not None
        warnings: list[Mapping[str, object]] = []
        phases: list[Mapping[str, object]] = []

        def report(event: str, fields: Mapping[str, object]) -> None:
            if event == "progress":
                self._on_progress(target.name, fields)
            elif event == "phase":
                phases.append(fields)
            elif event == "warning" and len(warnings) < _MOST_WARNINGS:
                warnings.append(fields)

        puller = Puller(self._resolver.configuration, self._pulled, lambda: cancel.is_cancelled)
        ended = list(puller.pull(target, report))
        self._on_pulled(mirror)
        errors = {str(one.folder): one.error for one in ended if one.error is not None}
        problems = tuple(
            problem_of(error, folder).about("mirror", folder) for folder, error in errors.items()
        )
        is_several = len(ended) != 1 or bool(ended[0].of_set)
        reports = [one.report for one in ended if one.report is not None]
        exits = [*map(exit_code_of_pull, reports), *(problem.exit for problem in problems)]
        return _job_result(
            JobReport(
                exit=worst(exits),
                run=None if is_several else reports[0],
                fields=_sum_of_sets(ended) if is_several else report_fields(reports[0]),
                failed={name: FailedRun.of(error) for name, error in errors.items()},
                problems=problems,
                warnings=tuple(warnings),
                phases=tuple(phases),
            )
        )

    def _audit(self, mirror: WatchedMirror, cancel: CancelToken) -> tuple[JobOutcome, JobReport]:
        assert self._resolver is not None
        outcomes, problems = list[CommandOutcome](), list[Problem]()
        configuration, name = self._resolver.configuration, mirror.target.name
        network = configuration.network(name, {})
        folders = mirror_home.each_mirror(configuration.pulled_folder(name))
        how, rolling = mirror.audit_method, mirror.rolling
        for folder in folders:
            audited = mirror_at(folder, network)
            try:
                found = audited.audit(method=how, rolling=rolling, stop=lambda: cancel.is_cancelled)
            except ResourceSyncError as error:  # the other sets are still audited
                if len(folders) == 1 or isinstance(error, StoppedError):
                    raise
                problems.append(problem_of(error, str(folder)).about("mirror", str(folder)))
            else:
                outcomes.append(conclude_audit(found, folder, quiet=True, named=False))
        exits = [*(ended.exit for ended in outcomes), *(problem.exit for problem in problems)]
        fields = outcomes[0].fields if len(folders) == 1 else {}
        return _job_result(JobReport(exit=worst(exits), fields=fields, problems=tuple(problems)))

    def _send_changes(
        self, mirror: WatchedMirror, cancel: CancelToken
    ) -> tuple[JobOutcome, JobReport]:
        folders = mirror_home.pulled_mirrors(mirror.target.folder)
        if not mirror.on_change or not folders:
            return JobOutcome(status=JobStatus.DONE), JobReport(exit=ExitCode.OK, stopped=True)
        run = app.system.new_run_id(self._clock)
        count, why = 0, ""
        for folder in folders:
            below = "" if folder == mirror.target.folder else f"{folder.name}/"
            line = partial(_change_line, run, below)
            sent, why = self._run_program(mirror, folder, line, cancel)
            count += sent
            if why:
                break
        fields = {"changes": count}
        if not why:
            return JobOutcome(status=JobStatus.DONE), JobReport(exit=ExitCode.OK, fields=fields)
        problem = Problem(
            code="on-change",
            message=f"{mirror.on_change[0]} {why}",
            evidence=(("kept", "the program gets the same changes again"),),
            hint="see its output; to get the changes by hand:"
            f" resourcesync changes {mirror.target.name} --consumer {CONSUMER} --json",
            exit=ExitCode.PARTIAL,
        )
        report = JobReport(exit=ExitCode.PARTIAL, fields=fields, problem=problem)
        return JobOutcome(status=JobStatus.FAILED), report

    def _run_program(
        self, mirror: WatchedMirror, folder: Path, line: ChangeLine, cancel: CancelToken
    ) -> tuple[int, str]:
        try:
            with cancel.within(mirror.limit):
                sent, code = forward_changes(folder, CONSUMER, mirror.on_change, line, cancel)
        except BudgetError:
            return 0, f"was stopped: it took longer than {forms.duration(mirror.limit)}"
        return sent, f"exited with {code}" if code else ""


def _sum_of_sets(ended: Sequence[PulledMirror]) -> Mapping[str, object]:
    reports = [one.report for one in ended if one.report is not None]
    states = [MirrorState.FAILING if one.report is None else one.report.state for one in ended]
    worst_state = min(states, key=WORST_FIRST.index, default=MirrorState.NEW)
    fields = {name: sum(getattr(one, name) for one in reports) for name in _SUMMED}
    fields["refused"] = sum(one.listed.refused for one in reports)
    return {"state": worst_state.value, **fields}


def _change_line(
    run: str, below: str, change: LoggedChange, present_uri: Callable[[str], str]
) -> bytes:
    fields = change_fields(change, present_uri)
    if change.path:
        fields["path"] = f"{below}{change.path}"
    return json_line("change", run, fields)


def _job_result(report: JobReport) -> tuple[JobOutcome, JobReport]:
    reasons = filter(None, (report.problem, *report.problems))
    retry_after = max((reason.retry_after for reason in reasons), default=0.0)
    verdict = JobStatus.DONE if report.exit in _COMPLETED else JobStatus.FAILED
    if report.exit is ExitCode.LOCKED:
        verdict = JobStatus.LOCKED
    # There may be changes to send even if it applied none: other processes pull and repair too.
    return JobOutcome(status=verdict, retry_after=retry_after, changed=True), report
