"""The loop that synchronizes mirrors: it starts due jobs and receives their outcomes."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final

import msgspec

from resourcesync.ports import CancelToken, Clock
from resourcesync.watch import scheduler
from resourcesync.watch.scheduler import JobKind, JobStatus, MirrorJob, Now

_logger = logging.getLogger(__name__)

_STEP: Final = 5.0
_HEARING: Final = 3.0
"""Seconds in which work that goes on finds out that it is to stop."""
_TURN: Final = 0.5
_LONGEST_WAIT: Final = 3_600.0

JobRunner = Callable[[MirrorJob, CancelToken], tuple[scheduler.JobOutcome, object]]
"""Runs a job in a thread of its own until it is cancelled; returns its outcome, and a report."""

OnJobEnd = Callable[["FinishedJob"], None]
"""Receives each finished job, on the thread of the loop."""


class FinishedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A finished job, and the report that its work returned.

    ``next_due`` is the next run, in seconds since 1970 (``inf`` if unknown); ``failures`` are those
    in a row, this one included, and ``recovered`` those that a success ended.
    """

    job: MirrorJob
    report: object
    next_due: float
    failures: int
    recovered: int = 0
    seconds: float


class WatchLoop:
    """Synchronizes mirrors until it is asked to stop.

    All that happens comes as a message to the thread of the loop, which alone uses the scheduler:
    any thread, and any signal handler, may send one.
    """

    def __init__(
        self, rota: scheduler.Scheduler, work: JobRunner, tell: OnJobEnd, clock: Clock, most: int
    ) -> None:
        self.beat = clock.monotonic()
        self._rota, self._work, self._tell = rota, work, tell
        self._clock, self._most = clock, most
        self._messages: SimpleQueue[Callable[[Now], object]] = SimpleQueue()
        self._threads: dict[MirrorJob, tuple[threading.Thread, CancelToken, float]] = {}
        self._unrecovered: Counter[MirrorJob] = Counter()
        self._ahead: float | None = None

    def configure(
        self,
        wanted: Mapping[str, scheduler.MirrorSchedule],
        past: Mapping[str, scheduler.MirrorHistory],
    ) -> None:
        """Replace the configuration; on the thread of the loop only."""
        self._rota.configure(wanted, past, self._now())

    def retry(self) -> None:
        """Retry now what waits after a failure; on the thread of the loop only."""
        self._rota.retry(self._now())

    def failing(self) -> list[str]:
        """Return the mirrors that wait after a failed pull; on the thread of the loop only."""
        return self._rota.failing()

    def record_external_pull(self, mirror: str, past: scheduler.MirrorHistory) -> None:
        """Record what another process pulled; on the thread of the loop only."""
        self._rota.record_external_pull(mirror, past, self._now())

    def next_pull(self, mirror: str) -> scheduler.NextPull | None:
        """Return the next pull of a mirror; on any thread. ``None`` for an unknown mirror."""
        return self._rota.next_pull(mirror, self._clock.now().timestamp() - self._clock.monotonic())

    def hint(self, mirror: str) -> None:
        """Report, on any thread, that a mirror's Source calls for a pull."""
        self._messages.put(lambda _: self._rota.hint(mirror))

    def pull_now(self, mirror: str) -> None:
        """Request, on any thread, a pull of a mirror now."""
        self._messages.put(lambda now: self._rota.pull_now(mirror, now))

    def pause(self, mirror: str, *, is_paused: bool) -> None:
        """Start, from any thread, no pull and no audit of a mirror, or resume it."""
        self._messages.put(lambda _: self._rota.pause(mirror, is_paused=is_paused))

    def wake(self) -> None:
        """Let the loop look around at once."""
        self._messages.put(lambda _: None)

    def running(self) -> dict[MirrorJob, float]:
        """Return the running jobs, and for how many seconds each runs; on any thread."""
        now = self._clock.monotonic()
        return {job: now - began for job, (_, _, began) in list(self._threads.items())}

    def run_once(self, longest: float = _LONGEST_WAIT) -> None:
        """Start what is due, then wait for a message, at most ``longest`` seconds."""
        now = self._now()
        ahead = now.wall - now.steady
        if self._ahead is not None and abs(ahead - self._ahead) > _STEP:
            _logger.warning("the clock was set by %+.0f seconds", ahead - self._ahead)
            self._rota.recompute(now)
        self._ahead = ahead
        for job in self._rota.begin(now, *self._free_places()):
            self._start(job)
        work, hand_overs = self._free_places()
        for mirror in self._rota.preempt(now, work):
            _logger.info("the pull of %s stops for other mirrors, and resumes later", mirror)
            self._threads[MirrorJob(mirror=mirror, kind=JobKind.PULL)][1].cancel()
        due = self._rota.next_moment(work=work > 0, tell=hand_overs > 0) - now.steady
        self._receive(max(0.0, min(due, longest)))

    def _start(self, job: MirrorJob) -> None:
        cancel = CancelToken(self._clock)
        name = f"resourcesync-{job.kind.value.replace(' ', '-')}-{job.mirror}"
        thread = threading.Thread(target=self._do, args=(job, cancel), name=name, daemon=True)
        self._threads[job] = thread, cancel, self._clock.monotonic()
        thread.start()

    def _free_places(self) -> tuple[int, int]:
        telling = sum(job.kind is JobKind.HAND_OVER for job in self._threads)
        return self._most - len(self._threads) + telling, self._most - telling

    def finish(self, grace: float) -> bool:
        """Ask all work to stop, and wait for it; return True if all of it stopped."""
        for _, cancel, _ in self._threads.values():
            cancel.cancel()
        until = self._clock.monotonic() + grace
        deaf = self._clock.monotonic() + min(grace, _HEARING)
        while self._threads and (left := until - self._clock.monotonic()) > 0:
            is_any_ending = any(cancel.is_heard for _, cancel, _ in self._threads.values())
            if self._clock.monotonic() >= deaf and not is_any_ending:
                break
            self._receive(min(left, _TURN))
        for job in self._threads:
            _logger.warning(
                "the %s of %s did not stop: it is abandoned", job.kind.value, job.mirror
            )
        return not self._threads

    def _now(self) -> Now:
        self.beat = self._clock.monotonic()
        return Now(self._clock.now().timestamp(), self.beat)

    def _do(self, job: MirrorJob, cancel: CancelToken) -> None:
        try:
            ended, report = self._work(job, cancel)
        except Exception as error:  # the work reports its own failures; this is a fault of ours
            _logger.exception("%s of %s", job.kind.value, job.mirror)
            ended, report = scheduler.JobOutcome(status=JobStatus.FAILED), error
        self._messages.put(lambda now: self._end(job, ended, report, now))

    def _receive(self, seconds: float) -> None:
        with suppress(Empty):
            message = self._messages.get(timeout=seconds)
            while True:
                message(self._now())
                message = self._messages.get_nowait()

    def _end(self, job: MirrorJob, ended: scheduler.JobOutcome, report: object, now: Now) -> None:
        thread, _, began = self._threads.pop(job)
        thread.join()
        due = self._rota.record_end(job, ended, now)
        self._tell(
            FinishedJob(
                job=job,
                report=report,
                next_due=now.wall + (due - now.steady),
                failures=self._rota.failures(job.mirror, job.kind),
                recovered=self._unrecovered[job] if ended.status is JobStatus.DONE else 0,
                seconds=now.steady - began,
            )
        )
        if ended.status is JobStatus.DONE:
            del self._unrecovered[job]
        self._unrecovered[job] += ended.status is JobStatus.FAILED  # also across a ``SIGHUP``
