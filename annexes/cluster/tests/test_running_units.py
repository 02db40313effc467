"""Each unit has exactly one outcome, whatever becomes of the workers."""

import logging
import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.adapters.system import SystemClock
from resourcesync.errors import EngineError, StoppedError
from resourcesync.ports import CancelToken
from resourcesync_cluster.politeness import HostLimits
from resourcesync_cluster.ports import HostShare, UnitFunction, UnitOutcome
from resourcesync_cluster.unit_runner import TRIES, run_units
from tests.support.cluster.mortal_engine import Death, MortalEngine, Task, do_task
from tests.support.in_memory import ManualClock


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
    [
        ("dies", "a worker died while ", 0),
        ("raises", "a worker did not finish its unit", TRIES),
    ],
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
