"""The loop that synchronizes mirrors: it starts due jobs and receives their outcomes."""

import logging
import select
import socket
import threading
from collections.abc import Callable, Mapping
from math import ceil, isfinite
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

import msgspec

from resourcesync.ports import Clock
from resourcesync.ports.cancellation import CancelToken
from resourcesync.watch.scheduler import (
    JobKind,
    JobOutcome,
    JobStatus,
    MirrorHistory,
    MirrorJob,
    MirrorSchedule,
    Now,
    PullReason,
    Scheduler,
)

_logger = logging.getLogger(__name__)

_T = TypeVar("_T")
_STEP: Final = 5.0
_HEARING: Final = 3.0
"""Seconds in which work that goes on finds out that it is to stop."""
_TURN: Final = 0.5
_LONGEST_WAIT: Final = 3_600.0


class WakeUp:
    """Wakes the one waiting thread; any thread, and any signal handler, may call `wake`."""

    def __init__(self) -> None:
        self._heard, self._rope = socket.socketpair()
        for end in (self._heard, self._rope):
            end.settimeout(0)

    def fileno(self) -> int:
        """Return the descriptor on which a written byte wakes the thread."""
        return self._rope.fileno()

    def wake(self) -> None:
        """Wake the waiting thread, or the next one that waits."""
        try:
            self._rope.send(b"\0")
        except BlockingIOError:
            return  # a wake-up is already pending

    def wait(self, seconds: float) -> None:
        """Wait for a wake-up, at most so many seconds."""
        poll = select.poll()  # unlike ``select.select``, for descriptors of any number
        poll.register(self._heard, select.POLLIN)
        ready = poll.poll(ceil(seconds * 1_000))
        while ready:
            try:
                self._heard.recv(4096)
            except BlockingIOError:
                return

    def close(self) -> None:
        """Close the descriptors."""
        self._heard.close()
        self._rope.close()


JobRunner = Callable[[MirrorJob, CancelToken], tuple[JobOutcome, object]]
"""Runs a job in a thread of its own until it is cancelled; returns its outcome, and a report."""

OnJobEnd = Callable[["FinishedJob"], None]
"""Receives each finished job, on the thread of the loop."""


class NextPull(msgspec.Struct, frozen=True, kw_only=True):
    """The next pull of a mirror.

    Attributes:
        time: Seconds since 1970, UTC; ``None`` when it is not known.
        reason: Reason of that time.
        failures: Number of failures in a row.
        is_paused: True if an operator paused the mirror.
    """

    time: float | None
    reason: PullReason
    failures: int
    is_paused: bool = False


class FinishedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A finished job.

    Attributes:
        report: The result that the work returned.
        next_due: Seconds since 1970, UTC, of the next run; ``inf`` when it is not known.
        failures: Number of failures in a row, this one included.
        recovered: Number of failures since the last success, if this is one.
        seconds: Seconds that it took.
    """

    job: MirrorJob
    report: object
    next_due: float
    failures: int
    recovered: int = 0
    seconds: float


class WatchLoop:
    """Synchronizes mirrors until it is asked to stop."""

    def __init__(
        self, rota: Scheduler, work: JobRunner, tell: OnJobEnd, clock: Clock, most: int
    ) -> None:
        self.wake_up = WakeUp()
        self.beat = clock.monotonic()
        self._rota, self._work, self._tell = rota, work, tell
        self._clock, self._most = clock, most
        self._ended: SimpleQueue[tuple[MirrorJob, JobOutcome, object]] = SimpleQueue()
        self._requests: SimpleQueue[Callable[[Now], object]] = SimpleQueue()
        self._threads: dict[MirrorJob, tuple[threading.Thread, CancelToken, float]] = {}
        self._unrecovered: dict[MirrorJob, int] = {}
        self._ahead: float | None = None

    def configure(
        self, wanted: Mapping[str, MirrorSchedule], past: Mapping[str, MirrorHistory]
    ) -> None:
        """Replace the configuration; on the thread of the loop only."""
        self._rota.configure(wanted, past, self._now())

    def retry(self) -> None:
        """Retry now what waits after a failure; on the thread of the loop only."""
        self._rota.retry(self._now())

    def failing(self) -> dict[str, float]:
        """Return the mirrors that wait after a failed pull, and its end (Unix time)."""
        return self._rota.failing()

    def record_pull(self, mirror: str, moment: float) -> None:
        """Record that another program pulled a mirror; on the thread of the loop only."""
        self._rota.record_pull(mirror, moment, self._now())

    def next_pull(self, mirror: str) -> "NextPull | None":
        """Return the next pull of a mirror; on any thread. ``None`` for an unknown mirror."""
        found = self._rota.next_pull(mirror)
        if found is None:
            return None
        ahead = self._clock.now().timestamp() - self._clock.monotonic()
        time = found.due + ahead if isfinite(found.due) else None
        return NextPull(
            time=time, reason=found.reason, failures=found.failures, is_paused=found.is_paused
        )

    def hint(self, mirror: str) -> None:
        """Report, on any thread, that a mirror's Source calls for a pull."""
        self._request(lambda _: self._rota.hint(mirror))

    def pull_now(self, mirror: str) -> None:
        """Request, on any thread, a pull of a mirror now."""
        self._request(lambda now: self._rota.pull_now(mirror, now))

    def pause(self, mirrors: frozenset[str]) -> None:
        """Start, from any thread, no pull and no audit of these mirrors; resume all others."""
        self._request(lambda _: self._rota.pause(mirrors))

    def _request(self, request: Callable[[Now], object]) -> None:
        self._requests.put(request)
        self.wake_up.wake()

    @property
    def running(self) -> tuple[MirrorJob, ...]:
        """The running jobs."""
        return tuple(self._threads)

    def running_seconds(self) -> dict[MirrorJob, float]:
        """Return the running jobs, and for how many seconds each runs; on any thread."""
        now = self._clock.monotonic()
        return {job: now - began for job, (_, _, began) in list(self._threads.items())}

    def run_once(self, longest: float = _LONGEST_WAIT) -> None:
        """Start what is due, then wait for an event, at most ``longest`` seconds."""
        now = self._now()
        ahead = now.wall - now.steady
        if self._ahead is not None and abs(ahead - self._ahead) > _STEP:
            _logger.warning("the clock was set by %+.0f seconds", ahead - self._ahead)
            self._rota.recompute(now)
        self._ahead = ahead
        self._collect()
        for errand in self._rota.begin(now, *self._free_places()):
            name = f"resourcesync-{errand.kind.value.replace(' ', '-')}-{errand.mirror}"
            cancel = CancelToken(self._clock)
            thread = threading.Thread(
                target=self._do, args=(errand, cancel), name=name, daemon=True
            )
            self._threads[errand] = thread, cancel, self._clock.monotonic()
            thread.start()
        work, hand_overs = self._free_places()
        for mirror in self._rota.preempt(now, work):
            _logger.info("the pull of %s stops for other mirrors, and resumes later", mirror)
            _, cancel, _ = self._threads[MirrorJob(mirror=mirror, kind=JobKind.PULL)]
            cancel.cancel()
        due = self._rota.next_moment(work=work > 0, tell=hand_overs > 0) - now.steady
        self.wake_up.wait(max(0.0, min(due, longest)))
        self._collect()

    def _free_places(self) -> tuple[int, int]:
        """Return how many more jobs and hand-overs may run: hanging programs stop no pull."""
        telling = sum(thread.kind is JobKind.HAND_OVER for thread in self._threads)
        return self._most - len(self._threads) + telling, self._most - telling

    def finish(self, grace: float) -> bool:
        """Ask all work to stop, and wait for it; return True if all of it stopped."""
        for _, cancel, _ in self._threads.values():
            cancel.cancel()
        until = self._clock.monotonic() + grace
        deaf = self._clock.monotonic() + min(grace, _HEARING)
        while self._threads and (left := until - self._clock.monotonic()) > 0:
            if self._clock.monotonic() >= deaf and not self._is_any_ending():
                break
            self.wake_up.wait(min(left, _TURN))
            self._collect()
        for job in self._threads:
            _logger.warning(
                "the %s of %s did not stop: it is abandoned", job.kind.value, job.mirror
            )
        return not self._threads

    def _is_any_ending(self) -> bool:
        return any(cancel.is_heard for _, cancel, _ in self._threads.values())

    def close(self) -> None:
        """Close the wake-up; nothing may call it any more."""
        self._requests = SimpleQueue()
        if not self._threads:
            self.wake_up.close()

    def _now(self) -> Now:
        self.beat = self._clock.monotonic()
        return Now(self._clock.now().timestamp(), self.beat)

    def _do(self, errand: MirrorJob, cancel: CancelToken) -> None:
        try:
            ended, report = self._work(errand, cancel)
        except Exception as error:  # the work reports its own failures; this is a fault of ours
            _logger.exception("%s of %s", errand.kind.value, errand.mirror)
            ended, report = JobOutcome(status=JobStatus.FAILED), error
        self._ended.put((errand, ended, report))
        self.wake_up.wake()

    def _collect(self) -> None:
        while (request := _poll_queue(self._requests)) is not None:
            request(self._now())
        while (found := _poll_queue(self._ended)) is not None:
            errand, ended, report = found
            thread, _, began = self._threads.pop(errand)
            thread.join()
            now = self._now()
            due = self._rota.record_end(errand, ended, now)
            failures = self._rota.failures(errand.mirror, errand.kind)
            following = now.wall + (due - now.steady)
            self._tell(
                FinishedJob(
                    job=errand,
                    report=report,
                    next_due=following,
                    failures=failures,
                    recovered=self._count_recovered(errand, ended.status),
                    seconds=now.steady - began,
                )
            )

    def _count_recovered(self, job: MirrorJob, status: JobStatus) -> int:
        """Return the failures that this end makes good; a ``SIGHUP`` in between counts on."""
        if status is JobStatus.DONE:
            return self._unrecovered.pop(job, 0)
        if status is JobStatus.FAILED:
            self._unrecovered[job] = self._unrecovered.get(job, 0) + 1
        return 0


def _poll_queue(queue: "SimpleQueue[_T]") -> "_T | None":
    try:
        return queue.get_nowait()
    except Empty:
        return None
