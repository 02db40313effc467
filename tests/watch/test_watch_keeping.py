"""The loop: it begins what is due, is woken, and ends in good order."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from resourcesync.ports import CancelToken
from resourcesync.watch.loop import FinishedJob, WatchLoop
from resourcesync.watch.scheduler import (
    PULL_TURN,
    Cron,
    Every,
    JobKind,
    JobOutcome,
    JobStatus,
    MirrorJob,
    MirrorSchedule,
    Scheduler,
)
from tests.support.waiting import once

GOOD = JobOutcome(status=JobStatus.DONE)


class _SetClock:
    """The machine's clock, but that somebody may set its face."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.passed = 0.0

    def now(self) -> datetime:
        return datetime(2026, 11, 21, 12, 0, tzinfo=UTC) + timedelta(seconds=self.ahead)

    def monotonic(self) -> float:
        return time.monotonic() + self.passed

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


Work = Callable[[MirrorJob, CancelToken], tuple[JobOutcome, object]]


def watch_of(
    work: Work, told: list[FinishedJob], *names: str, clock: _SetClock | None = None, most: int = 4
) -> WatchLoop:
    watch = WatchLoop(Scheduler(Random(1)), work, told.append, clock or _SetClock(), most)
    watch.configure({name: MirrorSchedule(pull=Every(6_000)) for name in names}, {})
    return watch


def test_a_fault_of_the_work_is_a_failure_and_no_more() -> None:
    told: list[FinishedJob] = []

    def work(errand: MirrorJob, _cancel: CancelToken) -> tuple[JobOutcome, object]:
        if errand.mirror == "bad":
            raise RuntimeError("boom")
        return GOOD, "fine"

    watch = watch_of(work, told, "bad", "good")
    while len(told) < 2:
        watch.run_once(5)

    assert {job.job.mirror: job.failures for job in told} == {"bad": 1, "good": 0}
    assert watch.finish(1)


def test_no_more_work_goes_on_at_a_time_than_was_said() -> None:
    told: list[FinishedJob] = []
    busy: list[int] = [0, 0]
    lock = threading.Lock()

    def work(_errand: MirrorJob, _cancel: CancelToken) -> tuple[JobOutcome, object]:
        with lock:
            busy[0] += 1
            busy[1] = max(busy)
        time.sleep(0.01)
        with lock:
            busy[0] -= 1
        return GOOD, None

    watch = watch_of(work, told, *"abcdefghijkl", most=3)
    while len(told) < 12:
        watch.run_once(5)

    assert busy[1] == 3
    assert watch.finish(1)


def test_a_slow_source_gives_its_place_to_a_mirror_that_waits_and_goes_on_later() -> None:
    told: list[FinishedJob] = []
    clock, go_on = _SetClock(), threading.Event()

    def work(errand: MirrorJob, cancel: CancelToken) -> tuple[JobOutcome, object]:
        while errand.mirror.startswith("a slow") and not go_on.is_set():
            if cancel.is_cancelled:
                return JobOutcome(status=JobStatus.PREEMPTED), "stopped"
            time.sleep(0.005)
        return GOOD, "done"

    watch = watch_of(work, told, "a slow one", "a slow two", "quick", clock=clock, most=2)
    for _ in range(3):
        watch.run_once(0.01)
    assert {job.mirror for job in watch.running()} == {"a slow one", "a slow two"}
    assert told == []

    clock.passed = PULL_TURN + 1
    while "quick" not in {job.job.mirror for job in told}:
        watch.run_once(0.01)

    assert [job.report for job in told][:2] == ["stopped", "done"]  # the other may stop, too
    go_on.set()
    while len(told) < 4:
        watch.run_once(0.01)
    assert {job.job.mirror for job in told[2:]} == {"a slow one", "a slow two"}
    assert watch.finish(1)


def test_programs_that_hang_stop_no_pull_and_turn_no_loop() -> None:
    told: list[FinishedJob] = []
    go_on = threading.Event()

    def work(errand: MirrorJob, _cancel: CancelToken) -> tuple[JobOutcome, object]:
        if errand.kind is JobKind.HAND_OVER:
            go_on.wait(20)
        return JobOutcome(status=JobStatus.DONE, changed=True), None

    watch, handed = watch_of(work, told, most=2), MirrorSchedule(pull=Every(600), hands_over=True)
    watch.configure(dict.fromkeys("abc", handed), {})
    while len(told) < 3:
        watch.run_once(5)
    watch.run_once(0)
    watch.configure(dict.fromkeys("abcd", handed), {})
    while len(told) < 4:
        watch.run_once(5)

    assert [job.kind for job in watch.running()] == [JobKind.HAND_OVER] * 2
    began = time.monotonic()
    watch.run_once(0.2)  # a third is due to be told, and waits for its turn
    assert time.monotonic() - began > 0.1
    go_on.set()
    assert watch.finish(5)


def test_a_hint_wakes_the_loop() -> None:
    told: list[FinishedJob] = []
    watch = watch_of(lambda _errand, _stop: (GOOD, None), told)
    watch.configure({"m": MirrorSchedule(pull=Every(600), accepts_hints=True)}, {})
    while not told:
        watch.run_once(5)

    began, beat = time.monotonic(), watch.beat
    with once(lambda: watch.beat != beat, lambda: watch.hint("m")):
        while len(told) < 2:
            watch.run_once(30)
    watch.wake()
    watch.run_once(30)  # such as for a signal: it came before the wait

    assert time.monotonic() - began < 20
    assert watch.finish(1)


def test_work_that_does_not_hear_a_stop_is_not_waited_for_as_long_as_work_that_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, go_on, heard = _SetClock(), threading.Event(), list[bool]()

    def work(errand: MirrorJob, cancel: CancelToken) -> tuple[JobOutcome, object]:
        while not (cancel.is_cancelled if errand.mirror == "good" else go_on.is_set()):
            time.sleep(0.005)
            if errand.mirror == "slow":
                heard.append(cancel.is_cancelled)  # it hears, and takes its time
        return GOOD, None

    for name in ("deaf", "slow"):
        told: list[FinishedJob] = []
        watch = watch_of(work, told, name, "good", clock=clock)
        watch.run_once(0.01)
        began = clock.monotonic()
        assert not watch.finish(5.0)
        took = clock.monotonic() - began
        assert (took < 5.0) == (name == "deaf")
        assert f"the pull of {name} did not stop: it is abandoned" in caplog.text
        assert [job.job.mirror for job in told] == ["good"]
        go_on.set()
        assert watch.finish(5)
        go_on.clear()


def test_a_mirror_that_is_taken_away_and_back_is_not_worked_on_twice() -> None:
    told: list[FinishedJob] = []
    began: list[str] = []
    go_on = threading.Event()

    def work(errand: MirrorJob, _cancel: CancelToken) -> tuple[JobOutcome, object]:
        began.append(errand.mirror)
        go_on.wait(20)
        return GOOD, len(began)

    watch = watch_of(work, told, "m")
    wanted = {"m": MirrorSchedule(pull=Every(6_000))}
    watch.run_once(0.01)
    watch.configure({}, {})
    watch.configure(wanted, {})
    watch.run_once(0.05)

    assert began == ["m"]
    go_on.set()
    while not told:
        watch.run_once(5)
    assert began == ["m"]
    assert watch.finish(1)


def test_a_clock_that_is_set_moves_what_is_due_by_the_clock() -> None:
    told: list[FinishedJob] = []
    clock = _SetClock()
    watch = watch_of(lambda _errand, _stop: (GOOD, None), told, clock=clock)
    watch.configure({"m": MirrorSchedule(pull=Cron("0 13 * * *"))}, {})
    while not told:
        watch.run_once(0.05)
    watch.run_once(0)
    assert told[0].next_due - clock.now().timestamp() > 3_500

    clock.ahead = 3_599.9  # somebody sets it to one second before one o'clock
    watch.run_once(0)

    planned = watch.next_pull("m")
    assert planned is not None
    assert planned.time is not None
    assert planned.time - clock.now().timestamp() < 12
    assert watch.finish(1)
