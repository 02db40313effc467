"""Who is due: every life of a rota keeps its promises."""

from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.watch.rota import (
    FIRST_PAUSE,
    HAND_ON_PAUSE,
    HELD_PAUSE,
    HINT_GAP,
    HINT_GAP_FAILING,
    LONGEST_PAUSE,
    Ended,
    Errand,
    Kind,
    Past,
    Rota,
    Verdict,
    Wanted,
)
from resourcesync.watch.times import Every, Now

DONE = Ended(verdict=Verdict.DONE)
FAILED = Ended(verdict=Verdict.FAILED)
PULL = Errand(mirror="m", kind=Kind.PULL)
WALL = 1_700_000_000.0


def at(steady: float) -> Now:
    return Now(WALL + steady, steady)


def rota_of(wanted: Wanted, past: Past | None = None) -> Rota:
    rota = Rota(Random(1))
    rota.want({"m": wanted}, {} if past is None else {"m": past}, at(0))
    return rota


def begun(rota: Rota, steady: float) -> list[Kind]:
    return [it.kind for it in rota.begin(at(steady), 9, 9)]


@dataclass
class _Life:
    """One seeded life of a rota: errands of random length and end, hints, few workers."""

    seed: int
    most: int
    running: dict[Errand, float] = field(default_factory=dict)
    begins: dict[Errand, list[float]] = field(default_factory=dict)
    owed: set[str] = field(default_factory=set)
    now: float = 0.0

    def live(self, wanted: dict[str, Wanted], until: float) -> None:
        dice = Random(self.seed)
        rota = Rota(dice)
        rota.want(wanted, {}, at(0))
        while self.now < until:
            for errand in rota.begin(at(self.now), *self._room()):
                self._begin(errand, dice)
            self._advance(rota, dice)

    def _room(self) -> tuple[int, int]:
        telling = sum(it.kind is Kind.HAND_ON for it in self.running)
        return self.most - len(self.running) + telling, self.most - telling

    def _begin(self, errand: Errand, dice: Random) -> None:
        assert errand not in self.running
        if errand.kind is Kind.HAND_ON:
            self.owed.discard(errand.mirror)
        else:
            rivals = {Errand(mirror=errand.mirror, kind=it) for it in (Kind.PULL, Kind.AUDIT)}
            assert not rivals & self.running.keys(), "a pull and an audit at once"
        self.running[errand] = self.now + dice.choice([0.0, 1.0, 100.0])
        assert min(self._room()) >= 0
        self.begins.setdefault(errand, []).append(self.now)

    def _advance(self, rota: Rota, dice: Random) -> None:
        ends = min(self.running.values(), default=inf)
        work, tell = self._room()
        starts = rota.next_moment(work=work > 0, tell=tell > 0)
        self.now = max(self.now, min(ends, starts))
        for errand in [it for it, end in self.running.items() if end <= self.now]:
            del self.running[errand]
            verdict = dice.choice([Verdict.DONE, Verdict.DONE, Verdict.FAILED, Verdict.HELD])
            changed = errand.kind is Kind.PULL and dice.random() < 0.5
            rota.ended(errand, Ended(verdict=verdict, changed=changed), at(self.now))
            if changed or (errand.kind is Kind.HAND_ON and verdict is not Verdict.DONE):
                self.owed.add(errand.mirror)
        if dice.random() < 0.1:
            rota.hint(dice.choice("abc"))


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), most=st.integers(1, 4))
def test_every_mirror_has_its_turn_and_one_worker_at_a_time(seed: int, most: int) -> None:
    life = _Life(seed, most)
    every = Every(3_600.0)
    wanted = {
        name: Wanted(
            pull=every, audit=Every(20_000.0), hands_on=name != "c", takes_hints=name == "a"
        )
        for name in "abc"
    }

    life.live(wanted, 3 * LONGEST_PAUSE)

    for name in "abc":
        for kind in (Kind.PULL, Kind.AUDIT):
            moments = life.begins[Errand(mirror=name, kind=kind)]
            gaps = [later - earlier for earlier, later in pairwise(moments)]
            assert max([*gaps, life.now - moments[-1]]) <= 1.11 * LONGEST_PAUSE
    owing = life.owed - {"c"} - {it.mirror for it in life.running}
    for name in owing:  # a change is handed on, or tried again within the longest pause
        last = life.begins[Errand(mirror=name, kind=Kind.HAND_ON)][-1]
        assert life.now - last <= 3_600 * 1.11 + 200
    assert Errand(mirror="c", kind=Kind.HAND_ON) not in life.begins


def test_a_mirror_that_was_just_pulled_waits_for_its_turn_after_a_restart() -> None:
    rota = rota_of(Wanted(pull=Every(600.0)), Past(pulled=WALL - 100))
    assert 500 <= rota.next_moment() <= 560


def test_a_mirror_that_is_overdue_is_pulled_soon_after_a_restart() -> None:
    rota = rota_of(Wanted(pull=Every(600.0)), Past(pulled=WALL - 7_200))
    assert 0 <= rota.next_moment() <= 60


def test_each_failure_doubles_the_pause_up_to_a_day() -> None:
    rota, now, pauses = rota_of(Wanted(pull=Every(60.0))), 0.0, []
    for _ in range(12):
        assert begun(rota, now) == [Kind.PULL]
        due = rota.ended(PULL, FAILED, at(now))
        pauses.append(due - now)
        now = due
    least = [min(FIRST_PAUSE * 2**number, LONGEST_PAUSE) for number in range(12)]
    assert all(low <= pause <= low * 1.1 for low, pause in zip(least, pauses, strict=True))

    begun(rota, now)
    assert rota.ended(PULL, DONE, at(now)) - now <= 66  # and one success ends it


def test_a_failure_of_a_mirror_of_each_night_is_tried_again_sooner_than_tomorrow() -> None:
    rota = rota_of(Wanted(pull=Every(86_400.0)))
    begun(rota, 0)
    assert rota.ended(PULL, FAILED, at(0)) <= FIRST_PAUSE * 1.1


def test_a_source_that_asks_to_be_left_alone_is() -> None:
    rota = rota_of(Wanted(pull=Every(60.0), takes_hints=True))
    begun(rota, 0)
    busy = Ended(verdict=Verdict.FAILED, retry_after=5_000.0)
    assert rota.ended(PULL, busy, at(0)) == 5_000.0

    rota.hint("m")
    assert rota.next_moment() == 5_000.0


def test_a_hint_calls_for_a_pull_at_once_and_many_for_one() -> None:
    rota = rota_of(Wanted(pull=Every(600.0), takes_hints=True))
    begun(rota, 0)
    for _ in range(1_000):
        assert rota.hint("m")
    assert begun(rota, 0.5) == []  # it runs; what came meanwhile is looked for after it
    rota.ended(PULL, DONE, at(1))

    assert rota.next_moment() == 1 + HINT_GAP
    assert begun(rota, 1 + HINT_GAP) == [Kind.PULL]
    rota.ended(PULL, DONE, at(2))
    assert rota.next_moment() > 500


@pytest.mark.parametrize(
    ("how", "gap"), [(Verdict.FAILED, HINT_GAP_FAILING), (Verdict.HELD, HELD_PAUSE)]
)
def test_hints_do_not_drive_what_fails(how: Verdict, gap: float) -> None:
    rota = rota_of(Wanted(pull=Every(600.0), takes_hints=True))
    begun(rota, 0)
    rota.ended(PULL, Ended(verdict=how), at(0))
    rota.hint("m")
    assert rota.next_moment() == gap


def test_hints_for_others_are_not_heeded() -> None:
    rota = rota_of(Wanted(pull=Every(600.0)))
    begun(rota, 0)
    rota.ended(PULL, DONE, at(0))
    assert not rota.hint("m")
    assert not rota.hint("nobody")
    assert rota.next_moment() >= 600


def test_changes_that_come_while_others_are_handed_on_are_handed_on_after_them() -> None:
    rota = rota_of(Wanted(pull=Every(10.0), hands_on=True))
    assert begun(rota, 0) == [Kind.PULL]
    rota.ended(PULL, Ended(verdict=Verdict.DONE, changed=True), at(0))
    assert begun(rota, 0) == [Kind.HAND_ON]
    assert begun(rota, 11) == [Kind.PULL]
    rota.ended(PULL, Ended(verdict=Verdict.DONE, changed=True), at(11))
    assert begun(rota, 11) == []

    rota.ended(Errand(mirror="m", kind=Kind.HAND_ON), DONE, at(12))
    assert begun(rota, 12) == [Kind.HAND_ON]
    assert rota.ended(Errand(mirror="m", kind=Kind.HAND_ON), DONE, at(13)) == inf


def test_a_mirror_that_is_not_there_yet_is_pulled_before_all_else() -> None:
    rota = rota_of(Wanted(pull=Every(10.0), audit=Every(100.0), hands_on=True))
    assert begun(rota, 0) == [Kind.PULL]
    rota.ended(PULL, FAILED, at(1))
    assert begun(rota, 500) == []

    later = FIRST_PAUSE * 1.2
    assert begun(rota, later) == [Kind.PULL]
    rota.ended(PULL, Ended(verdict=Verdict.DONE, changed=True), at(later))
    assert sorted(begun(rota, later)) == [Kind.AUDIT, Kind.HAND_ON]


def test_what_waited_to_be_handed_on_when_all_stopped_is_handed_on_at_the_start() -> None:
    rota = rota_of(Wanted(pull=Every(600.0), hands_on=True), Past(pulled=WALL - 100))
    assert begun(rota, 0) == [Kind.HAND_ON]


def test_a_next_program_that_fails_is_told_again_and_pulls_go_on() -> None:
    rota = rota_of(Wanted(pull=Every(10.0), hands_on=True), Past(pulled=WALL))
    assert begun(rota, 0) == [Kind.HAND_ON]
    begun(rota, 11)
    due = rota.ended(Errand(mirror="m", kind=Kind.HAND_ON), FAILED, at(11))
    assert HAND_ON_PAUSE <= due - 11 <= HAND_ON_PAUSE * 1.1
    rota.ended(PULL, Ended(verdict=Verdict.DONE, changed=True), at(12))
    assert begun(rota, 24) == [Kind.PULL]
    assert begun(rota, due) == [Kind.HAND_ON]


def test_what_is_wanted_anew_counts_from_the_last_time_and_keeps_the_pause_of_a_failure() -> None:
    rota = rota_of(Wanted(pull=Every(600.0)))
    begun(rota, 0)
    rota.ended(PULL, DONE, at(1))
    rota.want({"m": Wanted(pull=Every(60.0))}, {}, at(10))
    assert 60 <= rota.next_moment() <= 66

    begun(rota, 66)
    rota.ended(PULL, FAILED, at(66))
    rota.want({"m": Wanted(pull=Every(61.0))}, {}, at(67))
    assert rota.next_moment() >= 66 + FIRST_PAUSE


def test_a_mirror_that_is_wanted_no_more_is_let_go_while_it_is_pulled() -> None:
    rota = rota_of(Wanted(pull=Every(600.0)))
    begun(rota, 0)
    rota.want({}, {}, at(1))
    assert rota.ended(PULL, DONE, at(2)) == inf
    assert rota.next_moment() == inf
