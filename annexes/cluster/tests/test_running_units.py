"""Running units: each has its outcome and its turn, and no host is asked more than it may."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.adapters.system import SystemClock
from resourcesync.errors import EngineError, StoppedError
from resourcesync.ports import CancelToken
from resourcesync_cluster.politeness import LONGEST_WAIT, HostLimits, Turn, TurnQueue
from resourcesync_cluster.ports import HostShare, UnitFunction, UnitOutcome
from resourcesync_cluster.unit_runner import TRIES, run_units
from tests.support.cluster.mortal_engine import Death, MortalEngine, Task, do_task
from tests.support.in_memory import ManualClock
from tests.support.storage.memory_use import memory_use


def outcomes(
    engine: MortalEngine,
    units: Iterator[Task] | list[Task],
    *,
    work: UnitFunction = do_task,
    clock: ManualClock | None = None,
    tell: Callable[[str], None] = lambda _line: None,
) -> Iterator[UnitOutcome]:
    cancel = CancelToken(clock or ManualClock())
    return run_units(engine, work, units, limits=HostLimits(), cancel=cancel, tell=tell)


@given(
    does=st.lists(st.sampled_from(["well", "well", "well", "raises", "dies"]), max_size=12),
    slots=st.integers(1, 4),
)
@settings(max_examples=60)
def test_every_unit_has_one_outcome_and_only_those_fail_that_raise_or_kill_their_worker(
    does: list[str], slots: int
) -> None:
    engine = MortalEngine(slots)
    units = [Task(f"{number}", what) for number, what in enumerate(does)]
    found = list(outcomes(engine, units))
    engine.close()

    assert sorted(outcome.name for outcome in found) == sorted(unit.name for unit in units)
    failed = {outcome.name: outcome.failed for outcome in found if outcome.failed}
    assert failed.keys() == {unit.name for unit in units if unit.does != "well"}
    assert {kind for kind, _ in failed.values()} <= {"engine"}
    for unit in units:
        if unit.does == "raises":
            assert failed[unit.name] == ("engine", "ValueError: no such thing")
        if unit.does == "dies":
            assert "its worker died" in failed[unit.name][1]


@pytest.mark.parametrize(
    ("what", "said", "logged"),
    [("dies", "a worker died while ", 0), ("raises", "a worker did not finish its unit", TRIES)],
)
def test_a_lost_unit_is_tried_three_times_and_each_loss_is_told_in_a_line(
    what: str, said: str, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[str] = []
    told: list[str] = []

    def work(task: Task, share: HostShare) -> UnitOutcome:
        tried.append(task.name)
        return do_task(task, share)

    engine = MortalEngine(1)
    with caplog.at_level(logging.WARNING):
        units = [Task("bad", what), Task("good")]
        found = list(outcomes(engine, units, work=work, tell=told.append))
    engine.close()

    assert (tried.count("bad"), tried.count("good")) == (TRIES, 1)
    assert {outcome.name for outcome in found if outcome.failed} == {"bad"}
    assert len(told) == TRIES
    assert all(line.startswith(said) and "\n" not in line for line in told)
    assert caplog.messages.count("unit bad was lost: ValueError: no such thing") == logged


def test_an_engine_that_cannot_be_mended_ends_the_run_with_its_cause() -> None:
    engine = MortalEngine(lives=0)
    with pytest.raises(EngineError, match="accepts no more work") as caught:
        list(outcomes(engine, [Task("bad", "dies")]))
    engine.close()

    assert "a worker died" in caught.value.evidence[0][1]


@pytest.mark.parametrize("does", ["dies", "raises"])
def test_an_engine_that_can_do_nothing_at_all_is_given_up_after_some_units(does: str) -> None:
    numbers = count()
    engine = MortalEngine()
    with pytest.raises(EngineError, match="cannot run this work") as caught:
        list(outcomes(engine, (Task(f"{number}", does) for number in numbers)))
    engine.close()

    assert next(numbers) < 100
    assert caught.value.evidence
    assert caught.value.hint


def test_a_host_that_says_to_wait_is_asked_again_when_the_time_is_over() -> None:
    clock = ManualClock()
    asked: list[tuple[str, float]] = []

    def work(task: Task, share: HostShare) -> UnitOutcome:
        asked.append((task.name, clock.monotonic()))
        return do_task(task, share)

    engine = MortalEngine(slots=1)
    units = [Task("first", "waits", "a:1"), *(Task(f"{n}", host="a:1") for n in range(3))]
    found = list(outcomes(engine, units, work=work, clock=clock))
    engine.close()

    assert len(found) == 4
    assert asked[0] == ("first", 0.0)
    assert all(moment >= 100 for _, moment in asked[1:])
    assert clock.monotonic() < 102


class CountingClock(ManualClock):
    readings = 0

    def monotonic(self) -> float:
        self.readings += 1
        return super().monotonic()


def test_nobody_is_asked_again_and_again_while_a_unit_is_done_alone() -> None:
    begun, clock = count(), CountingClock()

    def work(task: Task, share: HostShare) -> UnitOutcome:
        dies = next(begun) < TRIES - 1
        threading.Event().wait(0.1 if dies else 0.3)
        if dies:
            raise Death
        return UnitOutcome(task.name)

    engine = MortalEngine(slots=1)
    units = [Task("one"), Task("other")]  # both are under way when the first dies
    found = list(outcomes(engine, units, work=work, clock=clock))
    engine.close()

    assert [outcome.failed for outcome in found] == [None, None]
    assert clock.readings < 60


class Counting(MortalEngine):
    begun = 0

    def submit(self, work: UnitFunction, unit: Any, share: HostShare) -> Any:
        self.begun += 1
        return super().submit(work, unit, share)


@pytest.mark.parametrize("error", [StoppedError, KeyboardInterrupt])
def test_a_run_that_is_stopped_cancels_what_is_under_way_and_begins_nothing_more(
    error: type[BaseException],
) -> None:
    release, engine = threading.Event(), Counting()

    def endless(task: Task, share: HostShare) -> UnitOutcome:
        release.wait(20)
        return do_task(task, share)

    def stopped() -> bool:
        if engine.begun == 3 and error is KeyboardInterrupt:
            raise KeyboardInterrupt
        return engine.begun == 3

    units, cancel = [Task(f"{number}") for number in range(9)], CancelToken(SystemClock(), stopped)
    with pytest.raises(error):
        next(run_units(engine, endless, units, limits=HostLimits(), cancel=cancel))
    release.set()
    engine.close()

    assert engine.begun == engine.cancelled == 3  # two, and one that waits for a worker


AHEAD: Final = 5
LITTLE: Final = 1e-6


class Named(NamedTuple):
    name: str
    host: str


MANNERS = st.builds(
    HostLimits,
    units=st.integers(1, 5),
    rate=st.none() | st.floats(0.1, 1_000),
    jobs=st.none() | st.integers(1, 12),
)
UNITS = st.lists(st.sampled_from(["", "a:1", "b:1", "c:1"]), max_size=15).map(
    lambda hosts: [Named(f"{number}", host) for number, host in enumerate(hosts)]
)

WAIT: st.SearchStrategy[float | None] = st.none() | st.floats(-1, 10_000)


class Driver:
    """Gives turns, ends them as it is told, and holds what was done against what may be."""

    def __init__(self, units: Sequence[Named], manners: HostLimits) -> None:
        self.manners = manners
        self.read = 0
        self.turns = TurnQueue(self.units(units), manners, ahead=AHEAD)
        self.now = 1_000.0
        self.under_way: list[Turn] = []
        self.quiet: dict[str, float] = {}
        self.given: Counter[str] = Counter()
        self.over: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()

    def units(self, units: Sequence[Named]) -> Iterator[Named]:
        for unit in units:
            self.read += 1
            yield unit

    def give(self, slots: int) -> None:
        while (turn := self.turns.next_turn(self.now, slots)) is not None:
            self.under_way.append(turn)
            self.given[turn.unit.name] += 1
            assert self.now >= self.quiet.get(turn.unit.host, 0)
            assert len(self.under_way) <= slots + 1
            self.hold(turn)
        assert self.read - len(self.given) <= AHEAD

    def hold(self, turn: Turn) -> None:
        host = turn.unit.host
        if not host:
            assert turn.share == (None, None)
            return
        shares = [turn.share for turn in self.under_way if turn.unit.host == host]
        assert len(shares) <= self.manners.units
        for have, most in (
            ([share.rate for share in shares], self.manners.rate),
            ([share.jobs for share in shares], self.manners.jobs),
        ):
            if most is None:
                assert have == [None] * len(shares)
            else:
                assert all(item is not None and item > 0 for item in have)
                assert sum(item or 0 for item in have) <= most * (1 + LITTLE)

    def end(self, turn: Turn, *, wait: float | None, lost: bool) -> None:
        self.under_way.remove(turn)
        if lost:
            self.lost[turn.unit.name] += 1
            self.turns.finish(turn, None, self.now)
            self.turns.requeue(turn.unit)
            return
        self.over[turn.unit.name] += 1
        if wait is not None and turn.unit.host:
            until = self.now + min(wait, LONGEST_WAIT)
            self.quiet[turn.unit.host] = max(until, self.quiet.get(turn.unit.host, 0))
        self.turns.finish(turn, UnitOutcome(turn.unit.name, wait=wait), self.now)


@given(units=UNITS, manners=MANNERS, data=st.data())
@settings(max_examples=30)
def test_no_host_is_asked_more_than_it_may_or_before_it_wants_and_every_unit_has_its_turn(
    units: list[Named], manners: HostLimits, data: st.DataObject
) -> None:
    driver = Driver(units, manners)
    losses = data.draw(st.integers(0, 5))
    driver.give(data.draw(st.integers(1, 6)))
    while not driver.turns.done:
        if len(driver.under_way) > 0 and data.draw(st.booleans(), "one ends"):
            turn = driver.under_way[data.draw(st.integers(0, len(driver.under_way) - 1))]
            lost = losses > 0 and data.draw(st.booleans(), "it is lost")
            losses -= lost
            wait = data.draw(WAIT, "the host wants to be left alone")
            driver.end(turn, wait=wait, lost=lost)
        elif driver.under_way:
            driver.now += data.draw(st.floats(0, 2_000), "seconds pass")
        else:
            moment = driver.turns.ready_at(driver.now)
            assert moment is not None
            assert driver.now < moment <= driver.now + LONGEST_WAIT
            driver.now = moment
        driver.give(data.draw(st.integers(1, 6), "slots"))

    assert driver.over == Counter(unit.name for unit in units)
    assert driver.given == driver.over + driver.lost


@pytest.mark.parametrize(
    ("manners", "slots", "shares"),
    [
        (HostLimits(units=4, rate=100.0, jobs=10), 99, [(25.0, 2)] * 4),
        (HostLimits(units=4, rate=100.0, jobs=10), 2, [(50.0, 5)] * 2),
        (HostLimits(units=4, rate=100.0, jobs=2), 99, [(50.0, 1)] * 2),
        (HostLimits(units=3), 99, [(None, None)] * 3),
    ],
)
def test_what_may_be_asked_is_divided_among_as_many_as_fit(
    manners: HostLimits, slots: int, shares: list[tuple[float, int]]
) -> None:
    driver = Driver([Named(f"{number}", "a:1") for number in range(9)], manners)
    driver.give(slots)

    assert [turn.share for turn in driver.under_way] == shares


def test_a_host_that_says_to_wait_is_asked_half_as_much_and_grows_back_one_by_one() -> None:
    driver = Driver([Named(f"{number}", "a:1") for number in range(200)], HostLimits(units=8))
    driver.give(100)
    assert len(driver.under_way) == 8

    for turn in list(driver.under_way):  # all eight say the same: that is one no, not eight
        driver.end(turn, wait=10.0, lost=False)
    driver.now += 10
    sizes = []
    for _ in range(8):
        driver.give(100)
        sizes.append(len(driver.under_way))
        for turn in list(driver.under_way):
            driver.end(turn, wait=None, lost=False)

    assert sizes == [4, 5, 6, 7, 8, 8, 8, 8]


def test_what_was_under_way_when_a_host_said_to_wait_tells_nothing_of_what_it_bears_now() -> None:
    driver = Driver([Named(f"{number}", "a:1") for number in range(99)], HostLimits(units=8))
    driver.give(100)
    first, *others = list(driver.under_way)
    driver.end(first, wait=1.0, lost=False)
    for turn in others:
        driver.end(turn, wait=None, lost=False)
    driver.now += 1
    driver.give(100)

    assert len(driver.under_way) == 4


def test_one_host_that_waits_does_not_keep_another_waiting() -> None:
    units = [Named(f"{number}", "ab"[number % 2]) for number in range(40)]
    driver = Driver(units, HostLimits(units=1))
    driver.give(4)
    first = next(turn for turn in driver.under_way if turn.unit.host == "a")
    driver.end(first, wait=1_000.0, lost=False)

    done = 0
    for _ in range(8):
        driver.give(4)
        for turn in list(driver.under_way):
            assert turn.unit.host == "b"
            driver.end(turn, wait=None, lost=False)
            done += 1

    assert done >= AHEAD - 1  # until those of the other host fill what is kept


def test_hosts_that_said_nothing_take_no_memory_once_they_are_done_with() -> None:
    def finish(count: int, wait: float | None) -> int:
        turns = TurnQueue((Named(f"{i}", f"h{i}") for i in range(count)), HostLimits())
        with memory_use() as used:
            while (turn := turns.next_turn(0.0, 4)) is not None:
                turns.finish(turn, UnitOutcome(turn.unit.name, wait=wait), 0.0)
            assert (turns.quiet_until(f"h{count - 1}") == 5.0) is (wait is not None)
            return used()

    silent, waiting = finish(2_000, None), finish(12_000, 5.0)
    assert finish(4_000, None) < 1.1 * silent + 100_000
    assert finish(20_000, 5.0) < 1.1 * waiting + 100_000
    assert silent < waiting / 5
