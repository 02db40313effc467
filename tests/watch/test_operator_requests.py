"""What an operator does to the schedule: a pull now, a pause, both, and a pull by hand."""

from random import Random

from resourcesync.watch.scheduler import (
    Every,
    JobKind,
    JobOutcome,
    JobStatus,
    MirrorHistory,
    MirrorJob,
    MirrorSchedule,
    NextPull,
    Now,
    PullReason,
    Scheduler,
)

WALL = 1_700_000_000.0
PULL = MirrorJob(mirror="m", kind=JobKind.PULL)
DONE = JobOutcome(status=JobStatus.DONE, changed=True)
WANTED = MirrorSchedule(pull=Every(600.0), audit=Every(900.0), hands_over=True, accepts_hints=True)


def at(steady: float) -> Now:
    return Now(WALL + steady, steady)


def scheduler() -> Scheduler:
    found = Scheduler(Random(1))
    past = MirrorHistory(pulled=WALL, audited=WALL)
    found.configure({"m": WANTED, "other": WANTED}, {"m": past, "other": past}, at(0))
    for job in found.begin(at(0), 9, 9):
        found.record_end(job, DONE, at(0))
    return found


def begun(found: Scheduler, steady: float) -> list[JobKind]:
    return [job.kind for job in found.begin(at(steady), 9, 9) if job.mirror == "m"]


def reason(found: Scheduler) -> PullReason | None:
    planned = found.next_pull("m", 0.0)
    return None if planned is None else planned.reason


def test_a_requested_pull_begins_at_once_and_only_once() -> None:
    found = scheduler()
    found.pull_now("m", at(10))
    found.pull_now("nobody", at(10))
    assert found.next_moment() <= 10
    assert reason(found) is PullReason.REQUESTED
    assert JobKind.PULL in begun(found, 10)
    assert found.record_end(PULL, DONE, at(20)) > 500
    assert JobKind.PULL not in begun(found, 20)
    assert reason(found) is PullReason.SCHEDULED


def test_a_pull_that_is_requested_while_one_runs_follows_it() -> None:
    found = scheduler()
    found.pull_now("m", at(10))
    begun(found, 10)
    found.pull_now("m", at(11))
    found.pull_now("m", at(12))
    found.record_end(PULL, DONE, at(20))
    assert begun(found, 20) == [JobKind.PULL]
    found.record_end(PULL, DONE, at(30))
    assert JobKind.PULL not in begun(found, 30)


def test_a_paused_mirror_is_neither_pulled_nor_audited() -> None:
    found = scheduler()
    found.pull_now("m", at(1))
    begun(found, 1)
    found.pause(frozenset({"m"}))
    found.record_end(PULL, DONE, at(2))
    found.hint("m")
    found.record_end(MirrorJob(mirror="m", kind=JobKind.HAND_OVER), DONE, at(3))
    assert set(begun(found, 5_000)) <= {JobKind.HAND_OVER}
    planned = found.next_pull("m", 0.0)
    assert planned is not None
    assert planned == NextPull(None, PullReason.PAUSED, 0, is_paused=True)

    found.pause(frozenset({"other"}))
    assert JobKind.PULL in begun(found, 5_001)
    other = found.next_pull("other", 0.0)
    assert other is not None
    assert other.is_paused


def test_a_paused_mirror_is_pulled_once_if_that_is_requested() -> None:
    found = scheduler()
    found.pause(frozenset({"m"}))
    found.pull_now("m", at(10))
    assert JobKind.PULL in begun(found, 10)
    found.record_end(PULL, DONE, at(11))
    assert JobKind.PULL not in begun(found, 99_999)


def test_a_requested_pull_of_a_paused_mirror_that_could_not_end_is_tried_again() -> None:
    found = scheduler()
    found.pause(frozenset({"m"}))
    found.pull_now("m", at(10))
    begun(found, 10)
    again = found.record_end(PULL, JobOutcome(status=JobStatus.LOCKED), at(11))
    assert JobKind.PULL not in begun(found, 12)  # whoever has it needs some time
    assert reason(found) is PullReason.REQUESTED
    assert JobKind.PULL in begun(found, again)
    found.record_end(PULL, JobOutcome(status=JobStatus.PREEMPTED), at(again + 1))
    assert JobKind.PULL in begun(found, again + 1)
    found.record_end(PULL, DONE, at(again + 2))
    assert JobKind.PULL not in begun(found, 99_999)


def test_a_good_pull_by_another_process_ends_the_pause_after_a_failure() -> None:
    found = scheduler()
    found.pull_now("m", at(10))
    begun(found, 10)
    found.record_end(PULL, JobOutcome(status=JobStatus.FAILED), at(20))
    found.record_end(MirrorJob(mirror="m", kind=JobKind.HAND_OVER), DONE, at(20))
    begun(found, 21)
    found.record_end(MirrorJob(mirror="m", kind=JobKind.HAND_OVER), DONE, at(22))
    assert found.failing() == ["m"]

    for of_no_use in (
        MirrorHistory(pulled=WALL + 9),  # before it failed
        MirrorHistory(pulled=WALL + 30, has_failed=True),
    ):
        found.record_other_pull("m", of_no_use, at(30))
        assert found.failing() == ["m"]
        assert reason(found) is PullReason.RETRY

    found.record_other_pull("m", MirrorHistory(pulled=WALL + 30), at(40))
    assert found.failing() == []
    assert reason(found) is PullReason.SCHEDULED
    assert begun(found, 41) == [JobKind.HAND_OVER]
    assert JobKind.PULL in begun(found, 40 + 700)
