"""Properties of the window, the circuit and the pauses; no network, no clock."""

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.adapters.http.politeness import (
    LONGEST_BACKOFF,
    CircuitBreaker,
    CircuitLimits,
    Politeness,
    RequestWindow,
    decorrelated,
)

latencies = st.floats(min_value=0.0001, max_value=20.0)
events = st.lists(st.one_of(st.none(), latencies), max_size=300)


def new_circuit(failures: int = 8, probes: int = 3) -> CircuitBreaker:
    patience = CircuitLimits(failures=failures, probes=probes, first=1.0, longest=60.0)
    return CircuitBreaker(patience, Random(3))


def new_politeness(interval: float = 0.0, max_wait: float = 60.0) -> Politeness:
    return Politeness(
        RequestWindow(first=4, ceiling=64), new_circuit(), interval=interval, max_wait=max_wait
    )


@given(events, st.integers(1, 100), st.integers(1, 100))
def test_a_window_stays_between_one_and_its_ceiling(
    happenings: list[float | None], first: int, ceiling: int
) -> None:
    window = RequestWindow(first=first, ceiling=ceiling)

    for moment, latency in enumerate(happenings):
        if latency is None:
            window.record_trouble(moment, moment)
        else:
            window.record_answer(latency, window.size)
        assert 1 <= window.size <= ceiling


@given(st.integers(2, 200))
def test_trouble_halves_the_window(size: int) -> None:
    window = RequestWindow(first=size, ceiling=size)

    window.record_trouble(10.0, 9.0)

    assert window.size == size // 2


def test_trouble_of_requests_that_were_in_flight_together_halves_once() -> None:
    window = RequestWindow(first=64, ceiling=64)

    for _ in range(20):
        window.record_trouble(10.0, 9.0)

    assert window.size == 32


def test_a_server_that_keeps_up_gets_the_whole_ceiling_in_four_round_trips() -> None:
    window = RequestWindow(first=4, ceiling=64)

    for _ in range(4):
        for _ in range(window.size):
            window.record_answer(0.02, window.size)

    assert window.size == 64


def test_after_trouble_the_window_recovers_by_one_in_a_round_trip() -> None:
    window = RequestWindow(first=32, ceiling=64)
    window.record_trouble(10.0, 9.0)
    sizes = [window.size]

    for _ in range(10):
        for _ in range(window.size):
            window.record_answer(0.02, window.size)
        sizes.append(window.size)

    assert all(0 <= after - before <= 1 for before, after in pairwise(sizes))
    assert sizes[0] == 16
    assert sizes[-1] >= 24


def test_a_window_stops_growing_while_latency_tells_of_a_queue() -> None:
    window = RequestWindow(first=8, ceiling=64)
    window.record_answer(0.02, 8)

    for _ in range(200):
        window.record_answer(0.5, window.size)

    assert window.size < 24


@given(st.integers(0, 2**32), st.floats(0.01, 5), st.floats(0, 1000), st.floats(5, 1000))
def test_back_off_stays_between_its_bounds(
    seed: int, first: float, previous: float, longest: float
) -> None:
    delay = decorrelated(Random(seed), first, previous, longest)

    assert first <= delay <= min(longest, max(first, previous * 3)) or delay == longest


def test_a_circuit_opens_after_failures_in_a_row_and_closes_with_one_answer() -> None:
    circuit = new_circuit(failures=3)
    circuit.record_answer()

    for _ in range(3):
        assert not circuit.open
        circuit.record_failure(5.0, probe=False, answered=True)
    opened = circuit.open
    until = circuit.until
    circuit.record_answer()

    assert opened
    assert until > 5.0
    assert not circuit.open
    assert circuit.until < 0


def test_a_host_that_never_answered_is_away_after_one_probe() -> None:
    circuit = new_circuit()

    circuit.record_failure(0.0, probe=False, answered=False)
    opened_at_once, away_at_once = circuit.open, circuit.away
    circuit.record_failure(circuit.until, probe=True, answered=False)

    assert opened_at_once
    assert not away_at_once
    assert circuit.away


def test_a_host_that_answered_before_gets_more_probes() -> None:
    circuit = new_circuit(failures=1, probes=3)
    circuit.record_answer()
    circuit.record_failure(0.0, probe=False, answered=False)
    away = []

    for _ in range(3):
        circuit.record_failure(circuit.until, probe=True, answered=False)
        away.append(circuit.away)

    assert away == [False, False, True]


def test_failures_of_requests_sent_before_the_circuit_opened_are_no_probes() -> None:
    circuit = new_circuit()
    circuit.record_failure(0.0, probe=False, answered=False)
    until = circuit.until

    for _ in range(50):
        circuit.record_failure(0.1, probe=False, answered=False)

    assert circuit.until == until
    assert not circuit.away


@given(st.integers(0, 2**32))
def test_an_origin_that_is_down_for_six_hours_gets_at_most_a_hundred_requests(seed: int) -> None:
    patience = CircuitLimits(failures=8, probes=5, first=1.0, longest=60.0)
    circuit = CircuitBreaker(patience, Random(seed))
    circuit.record_answer()
    now, requests = 0.0, 0

    while now < 6 * 3600:
        now = max(now + 0.01, circuit.until)
        circuit.record_failure(now, probe=circuit.open, answered=True)
        requests += 1

    assert requests <= 100
    assert circuit.until <= now + LONGEST_BACKOFF


def test_a_pause_lasts_as_long_as_the_origin_asked() -> None:
    politeness = new_politeness()

    politeness.record_pushback(100.0, 30.0)

    assert politeness.not_before == 130.0
    assert politeness.wait_left(110.0) == 20.0
    assert politeness.wait_left(140.0) is None
    assert not politeness.must_fail(100.0)


def test_a_longer_pause_than_allowed_fails_requests_until_little_of_it_is_left() -> None:
    politeness = new_politeness(max_wait=60.0)

    politeness.record_pushback(0.0, 3600.0)

    assert politeness.must_fail(0.0)
    assert not politeness.must_fail(3600.5)


def test_pauses_without_an_answer_between_add_up() -> None:
    politeness = new_politeness(max_wait=60.0)

    politeness.record_pushback(0.0, 40.0)
    first = politeness.must_fail(0.0)
    politeness.record_pushback(41.0, 40.0)
    second = politeness.must_fail(41.0)
    politeness.record_answer(0.01, 1)
    politeness.record_pushback(90.0, 40.0)
    third = politeness.must_fail(90.0)

    assert (first, second, third) == (False, True, False)


def test_a_crawl_delay_also_sends_one_at_a_time() -> None:
    politeness = new_politeness()

    politeness.slow_to(2.0)
    politeness.record_start(10.0)

    assert politeness.allowance == 1
    assert politeness.not_before == 12.0
