"""Properties of the window, the circuit and the pauses; no network, no clock."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.adapters.http.politeness import (
    LONGEST_BACKOFF,
    CircuitBreaker,
    CircuitLimits,
    RequestWindow,
    decorrelated,
)

latencies = st.floats(min_value=0.0001, max_value=20.0)
events = st.lists(st.one_of(st.none(), latencies), max_size=300)


def new_circuit(failures: int = 8, probes: int = 3) -> CircuitBreaker:
    patience = CircuitLimits(failures=failures, probes=probes, first=1.0, longest=60.0)
    return CircuitBreaker(patience, Random(3))


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
    until = circuit.until
    assert circuit.open

    for _ in range(50):  # they were sent before it opened, and are no probes
        circuit.record_failure(0.1, probe=False, answered=False)

    assert circuit.until == until
    assert not circuit.away
    circuit.record_failure(until, probe=True, answered=False)
    assert circuit.away


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
