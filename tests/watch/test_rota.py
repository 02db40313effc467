"""Who is due: every life of a rota keeps its promises."""

from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.watch.scheduler import (
    FIRST_PAUSE,
    HINT_GAP,
    HINT_GAP_FAILING,
    LOCKED_PAUSE,
    LONGEST_OFTEN,
    LONGEST_PAUSE,
    PULL_TURN,
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
    retry_pause,
)

DONE = JobOutcome(status=JobStatus.DONE)
FAILED = JobOutcome(status=JobStatus.FAILED)
CHANGED = JobOutcome(status=JobStatus.DONE, changed=True)
PULL = MirrorJob(mirror="m", kind=JobKind.PULL)
HAND_OVER = MirrorJob(mirror="m", kind=JobKind.HAND_OVER)
WALL = 1_700_000_000.0


def at(steady: float) -> Now:
    return Now(WALL + steady, steady)


def rota_of(wanted: MirrorSchedule, past: MirrorHistory | None = None) -> Scheduler:
    rota = Scheduler(Random(1))
    rota.configure({"m": wanted}, {} if past is None else {"m": past}, at(0))
    return rota


def begun(rota: Scheduler, steady: float) -> list[JobKind]:
    return [job.kind for job in rota.begin(at(steady), 9, 9)]


@dataclass
class _Life:
    """One seeded life of a rota: errands of random length and end, hints, few workers."""

    seed: int
    most: int
    running: dict[MirrorJob, float] = field(default_factory=dict)
    begins: dict[MirrorJob, list[float]] = field(default_factory=dict)
    owed: set[str] = field(default_factory=set)
    now: float = 0.0

    def live(self, wanted: dict[str, MirrorSchedule], until: float) -> None:
        dice = Random(self.seed)
        rota = Scheduler(dice)
        rota.configure(wanted, {}, at(0))
        while self.now < until:
            for errand in rota.begin(at(self.now), *self._room()):
                self._begin(errand, dice)
            self._advance(rota, dice)

    def _room(self) -> tuple[int, int]:
        telling = sum(job.kind is JobKind.HAND_OVER for job in self.running)
        return self.most - len(self.running) + telling, self.most - telling

    def _begin(self, errand: MirrorJob, dice: Random) -> None:
        assert errand not in self.running
        if errand.kind is JobKind.HAND_OVER:
            self.owed.discard(errand.mirror)
        else:
            rivals = {
                MirrorJob(mirror=errand.mirror, kind=job_kind)
                for job_kind in (JobKind.PULL, JobKind.AUDIT)
            }
            assert not rivals & self.running.keys(), "a pull and an audit at once"
        self.running[errand] = self.now + dice.choice([0.0, 1.0, 100.0])
        assert min(self._room()) >= 0
        self.begins.setdefault(errand, []).append(self.now)

    def _advance(self, rota: Scheduler, dice: Random) -> None:
        ends = min(self.running.values(), default=inf)
        work, tell = self._room()
        starts = rota.next_moment(work=work > 0, tell=tell > 0)
        self.now = max(self.now, min(ends, starts))
        for errand in [job for job, end in self.running.items() if end <= self.now]:
            del self.running[errand]
            verdict = dice.choice(
                [JobStatus.DONE, JobStatus.DONE, JobStatus.FAILED, JobStatus.LOCKED]
            )
            changed = errand.kind is JobKind.PULL and dice.random() < 0.5
            rota.record_end(errand, JobOutcome(status=verdict, changed=changed), at(self.now))
            if changed or (errand.kind is JobKind.HAND_OVER and verdict is not JobStatus.DONE):
                self.owed.add(errand.mirror)
        if dice.random() < 0.1:
            rota.hint(dice.choice("abc"))


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), most=st.integers(1, 4))
def test_every_mirror_has_its_turn_and_one_worker_at_a_time(seed: int, most: int) -> None:
    life = _Life(seed, most)
    every = Every(3_600.0)
    wanted = {
        name: MirrorSchedule(
            pull=every,
            audit=Every(20_000.0),
            hands_over=name != "c",
            accepts_hints=name == "a",
            host="" if name == "c" else "h",
        )
        for name in "abc"
    }

    life.live(wanted, 3 * LONGEST_PAUSE)

    for name in "abc":
        for kind in (JobKind.PULL, JobKind.AUDIT):
            moments = life.begins[MirrorJob(mirror=name, kind=kind)]
            gaps = [later - earlier for earlier, later in pairwise(moments)]
            assert max([*gaps, life.now - moments[-1]]) <= 1.11 * LONGEST_PAUSE
    owing = life.owed - {"c"} - {job.mirror for job in life.running}
    for name in owing:  # a change is handed on, or tried again within the longest pause
        last = life.begins[MirrorJob(mirror=name, kind=JobKind.HAND_OVER)][-1]
        assert life.now - last <= 3_600 * 1.11 + 200
    assert MirrorJob(mirror="c", kind=JobKind.HAND_OVER) not in life.begins


def test_the_mirrors_of_one_host_take_turns() -> None:
    rota = Scheduler(Random(1))
    hosts = {"a": "i", "b": "h", "c": "h"}
    table = {name: MirrorSchedule(pull=Every(60.0), host=host) for name, host in hosts.items()}
    rota.configure(table, {}, at(0))
    assert [job.mirror for job in rota.begin(at(100), 9, 9)] == ["a", "b"]
    assert rota.preempt(at(100), 7) == []
    assert rota.next_moment() == inf
    assert rota.preempt(at(101 + PULL_TURN), 0) == ["b"]  # none wants the place of a
    ended = JobOutcome(status=JobStatus.PREEMPTED)
    rota.record_end(MirrorJob(mirror="b", kind=JobKind.PULL), ended, at(102 + PULL_TURN))
    assert [job.mirror for job in rota.begin(at(102 + PULL_TURN), 8, 9)] == ["c"]


@pytest.mark.parametrize(("age", "due"), [(100, 500), (7_200, 0)], ids=["waits", "is overdue"])
def test_after_a_restart_a_mirror_has_its_turn_and_is_told_of_what_waited(
    age: float, due: float
) -> None:
    rota = rota_of(MirrorSchedule(pull=Every(600.0)), MirrorHistory(pulled=WALL - age))
    assert due <= rota.next_moment() <= due + 60
    wanted = MirrorSchedule(pull=Every(600.0), hands_over=True)
    assert begun(rota_of(wanted, MirrorHistory(pulled=WALL - 100)), 0) == [JobKind.HAND_OVER]


def test_a_failed_pull_of_an_earlier_service_or_of_another_process_is_tried_again_soon() -> None:
    daily, past = MirrorSchedule(pull=Every(86_400.0)), MirrorHistory(pulled=WALL, has_failed=True)
    rota = rota_of(daily, past)
    assert (rota.failing(), rota.next_moment() <= FIRST_PAUSE) == (["m"], True)

    asked_to_wait = MirrorHistory(pulled=WALL, has_failed=True, wait_until=WALL + 900)
    rota = rota_of(daily, asked_to_wait)
    rota.retry(at(10))  # whoever asks
    assert rota.next_pull("m", 0.0) == NextPull(900.0, PullReason.RETRY_AFTER, 0)

    rota = rota_of(daily, MirrorHistory(pulled=WALL - 10))
    rota.configure({"m": daily}, {"m": past}, at(10))
    rota.retry(at(10))
    assert begun(rota, 10) == [JobKind.PULL]
    assert rota.record_end(PULL, FAILED, at(10)) <= 10 + FIRST_PAUSE  # it counts anew


def test_each_failure_doubles_the_pause_up_to_an_hour() -> None:
    rota, now, pauses = rota_of(MirrorSchedule(pull=Every(60.0))), 0.0, []
    for _ in range(12):
        assert begun(rota, now) == [JobKind.PULL]
        due = rota.record_end(PULL, FAILED, at(now))
        pauses.append(due - now)
        now = due
    most = [min(FIRST_PAUSE * 2**number, LONGEST_OFTEN) for number in range(12)]
    assert all(high * 0.9 <= pause <= high for high, pause in zip(most, pauses, strict=True))

    begun(rota, now)
    assert rota.record_end(PULL, DONE, at(now)) - now <= 66  # and one success ends it


@pytest.mark.parametrize(
    ("failures", "every", "pause"),
    [
        (1, 3_600.0, 60.0),
        (1, 10.0, 10.0),
        (2, 10.0, 20.0),
        (5, inf, 960.0),
        (99, 10.0, 3_600.0),
        (99, 7_200.0, 7_200.0),
        (99, inf, 86_400.0),
    ],
)
def test_the_first_retry_comes_within_a_minute_or_as_soon_as_the_next_pull_would(
    failures: int, every: float, pause: float
) -> None:
    assert retry_pause(failures, every) == pause


def test_the_next_pull_is_known_with_its_reason() -> None:
    rota = rota_of(MirrorSchedule(pull=Every(600.0), accepts_hints=True))
    assert rota.next_pull("m", 0.0) == NextPull(0.0, PullReason.SCHEDULED, 0)
    begun(rota, 0)
    assert rota.next_pull("m", 0.0) == NextPull(None, PullReason.RUNNING, 0)
    due = rota.record_end(PULL, FAILED, at(0))
    assert rota.next_pull("m", 0.0) == NextPull(due, PullReason.RETRY, 1)
    begun(rota, due)
    assert rota.record_end(PULL, JobOutcome(status=JobStatus.LOCKED), at(due)) == due + LOCKED_PAUSE
    assert rota.next_pull("m", 0.0) == NextPull(due + LOCKED_PAUSE, PullReason.LOCKED, 1)
    begun(rota, due + 60)
    rota.record_end(PULL, DONE, at(due + 60))
    rota.hint("m")
    assert rota.next_pull("m", 0.0) == NextPull(due + 60 + HINT_GAP, PullReason.NOTIFIED, 0)
    assert rota.next_pull("nobody", 0.0) is None


@dataclass
class _Crowd:
    """Mirrors whose pulls take so many seconds of work, each, and few places."""

    needs: dict[str, float]
    places: int
    now: float = 0.0
    done: dict[str, list[float]] = field(default_factory=dict)

    def live(self, rota: Scheduler, until: float) -> None:
        left, running = dict(self.needs), dict[str, float]()
        while self.now < until:
            room = self.places - len(running)
            for errand in rota.begin(at(self.now), room, 9):
                running[errand.mirror] = self.now
            assert len(running) <= self.places
            ended = set(rota.preempt(at(self.now), self.places - len(running)))
            for name in ended:
                left[name] -= self.now - running[name]
            for name in [name for name, began in running.items() if self.now - began >= left[name]]:
                left[name] = self.needs[name]
                self.done.setdefault(name, []).append(self.now)
                rota.record_end(MirrorJob(mirror=name, kind=JobKind.PULL), DONE, at(self.now))
                ended.discard(name)
                del running[name]
            for name in ended:
                stopped = JobOutcome(status=JobStatus.PREEMPTED)
                rota.record_end(MirrorJob(mirror=name, kind=JobKind.PULL), stopped, at(self.now))
                del running[name]
            self.now += 20.0


@pytest.mark.parametrize("places", [1, 2, 4])
def test_sources_that_take_days_hold_no_place_that_others_wait_for(places: int) -> None:
    slow = {f"slow-{number}": 15_000.0 * (number + 1) for number in range(5)}
    quick = {f"quick-{number}": 20.0 for number in range(3)}
    crowd, rota = _Crowd(slow | quick, places), Scheduler(Random(1))
    rota.configure({need: MirrorSchedule(pull=Every(3_600.0)) for need in crowd.needs}, {}, at(0))

    crowd.live(rota, 400_000.0)

    assert crowd.done.keys() == crowd.needs.keys()  # the slow ones come to their end, too
    if places == 1:
        return
    for name in quick:
        gaps = [later - earlier for earlier, later in pairwise([0.0, *crowd.done[name]])]
        assert max(gaps) <= 3_960 + 20 + len(slow) * (PULL_TURN + 20)
        assert sorted(gaps)[len(gaps) // 2] <= 4_100


def test_a_pull_that_nobody_waits_for_goes_on_for_as_long_as_it_takes() -> None:
    rota = rota_of(MirrorSchedule(pull=Every(60.0)))
    begun(rota, 0)
    assert rota.begin(at(90 * PULL_TURN), 0, 9) == []
    assert rota.preempt(at(90 * PULL_TURN), 0) == []


def test_a_hint_calls_for_a_pull_at_once_and_many_for_one() -> None:
    rota = rota_of(MirrorSchedule(pull=Every(600.0), accepts_hints=True))
    begun(rota, 0)
    for _ in range(1_000):
        rota.hint("m")
    assert begun(rota, 0.5) == []  # it runs; what came meanwhile is looked for after it
    rota.record_end(PULL, DONE, at(1))

    assert rota.next_moment() == 1 + HINT_GAP
    assert begun(rota, 1 + HINT_GAP) == [JobKind.PULL]
    rota.record_end(PULL, DONE, at(2))
    assert rota.next_moment() > 500


@pytest.mark.parametrize(
    ("how", "gap"), [(JobStatus.FAILED, HINT_GAP_FAILING), (JobStatus.LOCKED, LOCKED_PAUSE)]
)
def test_hints_do_not_drive_what_fails(how: JobStatus, gap: float) -> None:
    rota = rota_of(MirrorSchedule(pull=Every(600.0), accepts_hints=True))
    begun(rota, 0)
    rota.record_end(PULL, JobOutcome(status=how), at(0))
    rota.hint("m")
    assert 0.9 * gap <= rota.next_moment() <= gap


def test_changes_that_come_while_others_are_handed_on_are_handed_on_after_them() -> None:
    rota = rota_of(MirrorSchedule(pull=Every(10.0), hands_over=True))
    assert begun(rota, 0) == [JobKind.PULL]
    rota.record_end(PULL, CHANGED, at(0))
    assert begun(rota, 0) == [JobKind.HAND_OVER]
    assert begun(rota, 11) == [JobKind.PULL]
    rota.record_end(PULL, CHANGED, at(11))
    assert begun(rota, 11) == []

    rota.record_end(HAND_OVER, DONE, at(12))
    assert begun(rota, 12) == [JobKind.HAND_OVER]
    assert rota.record_end(HAND_OVER, DONE, at(13)) == inf


def test_a_mirror_that_is_not_there_yet_is_pulled_before_all_else() -> None:
    rota = rota_of(MirrorSchedule(pull=Every(10.0), audit=Every(100.0), hands_over=True))
    assert begun(rota, 0) == [JobKind.PULL]
    rota.record_end(PULL, FAILED, at(1))
    assert begun(rota, 5) == []

    later = 12.0
    assert begun(rota, later) == [JobKind.PULL]
    rota.record_end(PULL, CHANGED, at(later))
    assert sorted(begun(rota, later)) == [JobKind.AUDIT, JobKind.HAND_OVER]


def test_a_next_program_that_fails_is_told_again_and_pulls_go_on() -> None:
    rota = rota_of(MirrorSchedule(pull=Every(10.0), hands_over=True), MirrorHistory(pulled=WALL))
    assert begun(rota, 0) == [JobKind.HAND_OVER]
    begun(rota, 11)
    due = rota.record_end(HAND_OVER, FAILED, at(11))
    assert 0.9 * FIRST_PAUSE <= due - 11 <= FIRST_PAUSE
    rota.record_end(PULL, CHANGED, at(12))
    assert begun(rota, 24) == [JobKind.PULL]
    assert begun(rota, due) == [JobKind.HAND_OVER]


def test_changes_that_come_while_a_failed_hand_over_is_tried_again_are_handed_on() -> None:
    rota = rota_of(MirrorSchedule(pull=Every(10.0), hands_over=True), MirrorHistory(pulled=WALL))
    begun(rota, 0)
    due = rota.record_end(HAND_OVER, FAILED, at(0))
    assert sorted(begun(rota, due + 5)) == [JobKind.HAND_OVER, JobKind.PULL]
    rota.record_end(PULL, CHANGED, at(due + 6))

    rota.record_end(HAND_OVER, DONE, at(due + 7))

    assert begun(rota, due + 7) == [JobKind.HAND_OVER]


def test_what_is_wanted_anew_counts_from_the_last_time_and_keeps_the_pause_of_a_failure() -> None:
    rota = rota_of(MirrorSchedule(pull=Every(600.0)))
    begun(rota, 0)
    rota.record_end(PULL, DONE, at(1))
    rota.configure({"m": MirrorSchedule(pull=Every(60.0))}, {}, at(10))
    assert 60 <= rota.next_moment() <= 66

    begun(rota, 66)
    rota.record_end(PULL, FAILED, at(66))
    rota.configure({"m": MirrorSchedule(pull=Every(61.0))}, {}, at(67))
    assert rota.next_moment() >= 66 + FIRST_PAUSE * 0.9


def test_a_mirror_that_is_wanted_no_more_is_let_go_while_it_is_pulled() -> None:
    rota = rota_of(MirrorSchedule(pull=Every(600.0)))
    begun(rota, 0)
    rota.configure({}, {}, at(1))
    assert rota.record_end(PULL, DONE, at(2)) == inf
    assert rota.next_moment() == inf


# --- What an operator does to the schedule: a pull now, a pause, both, and a pull by hand ---------


WANTED = MirrorSchedule(pull=Every(600.0), audit=Every(900.0), hands_over=True, accepts_hints=True)


def scheduler() -> Scheduler:
    found = Scheduler(Random(1))
    past = MirrorHistory(pulled=WALL, audited=WALL)
    found.configure({"m": WANTED, "other": WANTED}, {"m": past, "other": past}, at(0))
    for job in found.begin(at(0), 9, 9):
        found.record_end(job, CHANGED, at(0))
    return found


def begun_requests(found: Scheduler, steady: float) -> list[JobKind]:
    return [job.kind for job in found.begin(at(steady), 9, 9) if job.mirror == "m"]


def reason(found: Scheduler) -> PullReason | None:
    planned = found.next_pull("m", 0.0)
    return None if planned is None else planned.reason


def test_a_requested_pull_begins_at_once_or_after_the_one_that_runs_and_only_once() -> None:
    found = scheduler()
    found.pull_now("m", at(10))
    found.pull_now("nobody", at(10))
    assert found.next_moment() <= 10
    assert reason(found) is PullReason.REQUESTED
    assert JobKind.PULL in begun_requests(found, 10)
    found.pull_now("m", at(11))
    found.pull_now("m", at(12))
    found.record_end(PULL, CHANGED, at(20))
    assert begun_requests(found, 20) == [JobKind.PULL]
    assert found.record_end(PULL, CHANGED, at(30)) > 500
    assert JobKind.PULL not in begun_requests(found, 30)
    assert reason(found) is PullReason.SCHEDULED


def test_a_paused_mirror_is_neither_pulled_nor_audited() -> None:
    found = scheduler()
    found.pull_now("m", at(1))
    begun_requests(found, 1)
    found.pause("m", is_paused=True)
    found.record_end(PULL, CHANGED, at(2))
    found.hint("m")
    found.record_end(HAND_OVER, CHANGED, at(3))
    assert set(begun_requests(found, 5_000)) <= {JobKind.HAND_OVER}
    assert found.next_pull("m", 0.0) == NextPull(None, PullReason.PAUSED, 0, is_paused=True)

    found.pause("m", is_paused=False)
    found.pause("other", is_paused=True)
    assert JobKind.PULL in begun_requests(found, 5_001)
    other = found.next_pull("other", 0.0)
    assert other is not None
    assert other.is_paused


def test_a_paused_mirror_is_pulled_once_if_requested_and_again_if_that_could_not_end() -> None:
    found = scheduler()
    found.pause("m", is_paused=True)
    found.pull_now("m", at(10))
    begun_requests(found, 10)
    again = found.record_end(PULL, JobOutcome(status=JobStatus.LOCKED), at(11))
    assert JobKind.PULL not in begun_requests(found, 12)  # whoever has it needs some time
    assert reason(found) is PullReason.REQUESTED
    assert JobKind.PULL in begun_requests(found, again)
    found.record_end(PULL, JobOutcome(status=JobStatus.PREEMPTED), at(again + 1))
    assert JobKind.PULL in begun_requests(found, again + 1)
    found.record_end(PULL, CHANGED, at(again + 2))
    assert JobKind.PULL not in begun_requests(found, 99_999)


def test_a_good_pull_by_another_process_ends_the_pause_after_a_failure() -> None:
    found = scheduler()
    found.pull_now("m", at(10))
    begun_requests(found, 10)
    found.record_end(PULL, FAILED, at(20))
    found.record_end(HAND_OVER, CHANGED, at(20))
    begun_requests(found, 21)
    found.record_end(HAND_OVER, CHANGED, at(22))
    assert found.failing() == ["m"]

    for of_no_use in (
        MirrorHistory(pulled=WALL + 9),  # before it failed
        MirrorHistory(pulled=WALL + 30, has_failed=True),
    ):
        found.record_external_pull("m", of_no_use, at(30))
        assert found.failing() == ["m"]
        assert reason(found) is PullReason.RETRY

    found.record_external_pull("m", MirrorHistory(pulled=WALL + 30), at(40))
    assert found.failing() == []
    assert reason(found) is PullReason.SCHEDULED
    assert begun_requests(found, 41) == [JobKind.HAND_OVER]
    assert JobKind.PULL in begun_requests(found, 40 + 700)

    # While ours runs, that of another process changes nothing.
    found.record_external_pull("m", MirrorHistory(pulled=WALL + 745, has_failed=True), at(750))
    assert found.failing() == []
