"""Politeness without shared state: whatever comes back when, no host is asked more than it may."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync_cluster.politeness import LONGEST_WAIT, HostLimits, Turn, TurnQueue
from resourcesync_cluster.ports import UnitOutcome
from tests.support.storage.memory_use import memory_use

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
