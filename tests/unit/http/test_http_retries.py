"""What is taken, tried again, waited for and given up; on loopback."""

import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.errors import (
    SourceUnavailableError,
)
from resourcesync.ports import FetchRequest
from tests.support.servers.fetching import (
    SkippingClock,
    failure,
    fetch_all,
    fetch_one,
    kept,
    quick_fetcher,
    request,
    response,
)
from tests.support.servers.hostile_server import Asked, HostileServer, Step, answer, unused_port


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        yield running


@pytest.fixture
def other() -> Iterator[HostileServer]:
    with HostileServer("127.0.0.2") as running:
        yield running


def test_requests_are_taken_only_a_few_ahead(server: HostileServer) -> None:
    server.on("*", answer(body=b"x"))
    taken = 0

    def endless() -> Iterator[FetchRequest]:
        nonlocal taken
        while True:
            taken += 1
            yield request(f"{server.origin}/{taken}")

    outcomes = quick_fetcher(server.origin, jobs=8).fetch(endless())
    for done in range(1, 200):
        response(next(outcomes))
        assert taken <= done + 8 + 16 + 64
    outcomes.close()

    assert len(server.asked) <= 199 + 8 + 64


def test_answers_that_come_together_double_the_requests_in_flight(server: HostileServer) -> None:
    together = [threading.Barrier(4)] * 4 + [threading.Barrier(8)] * 8
    waiting = iter(together)

    def once_all_are_asked(_: Asked) -> list[Step]:
        with suppress(threading.BrokenBarrierError):
            next(waiting).wait(5.0)
        return answer(body=b"x")

    server.on("*", once_all_are_asked)
    fetcher = quick_fetcher(server.origin, timeout=9.0, retries=0, first_window=4)
    fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(12)])

    assert not any(barrier.broken for barrier in together)


def test_giving_up_half_way_leaves_a_fetcher_that_works(server: HostileServer) -> None:
    server.on("*", answer(body=b"x" * 100_000))
    fetcher = quick_fetcher(server.origin)
    outcomes = fetcher.fetch(request(f"{server.origin}/{number}") for number in range(100))

    next(outcomes)
    outcomes.close()
    again = fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(20)])

    assert all(len(kept(response(outcome))) == 100_000 for outcome in again)


def test_no_more_connections_than_allowed_are_opened(server: HostileServer) -> None:
    server.on("*", [0.005, *answer(body=b"x")])

    fetch_all(quick_fetcher(server.origin, per_host=3), [f"{server.origin}/{n}" for n in range(60)])

    assert server.connections == 3


def test_a_dead_host_ends_soon_for_thousands_of_requests() -> None:
    origin = f"http://127.0.0.1:{unused_port()}"
    fetcher = quick_fetcher(origin, retries=5, backoff=0.05)
    clock = SystemClock()

    started = clock.monotonic()
    outcomes = fetch_all(fetcher, [f"{origin}/{number}" for number in range(3000)])
    seconds = clock.monotonic() - started

    assert len(outcomes) == 3000
    assert {failure(outcome).error.code for outcome in outcomes} == {"connect"}
    assert fetcher.stats.requests <= 10
    assert seconds < 5


def test_a_dead_host_does_not_hold_up_another(server: HostileServer) -> None:
    dead = f"http://127.0.0.1:{unused_port()}"
    server.on("*", answer(body=b"x"))
    uris = [f"{(dead, server.origin)[number % 2]}/{number}" for number in range(200)]

    outcomes = fetch_all(quick_fetcher(dead, server.origin, backoff=0.05), uris)

    good = [outcome for outcome in outcomes if outcome.request.uri.startswith(server.origin)]
    assert len(good) == 100
    assert all(kept(response(outcome)) == b"x" for outcome in good)


def test_an_origin_that_comes_back_is_asked_again(server: HostileServer) -> None:
    port = unused_port()
    origin = f"http://127.0.0.1:{port}"
    fetcher = quick_fetcher(origin, backoff=0.01)
    before = fetch_one(fetcher, f"{origin}/x")

    with HostileServer(port=port) as back:
        back.on("/x", answer(body=b"back"))
        SystemClock().sleep(0.1)
        after = fetch_one(fetcher, f"{origin}/x")

    assert failure(before).error.code == "connect"
    assert kept(response(after)) == b"back"


def test_an_origin_that_fails_everything_is_left_alone_after_a_while(server: HostileServer) -> None:
    server.on("*", answer("503 Down"))
    fetcher = quick_fetcher(server.origin, clock=SkippingClock(), timeout=30.0)

    outcomes = fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(500)])

    assert {failure(outcome).error.evidence[0] for outcome in outcomes} == {("got", "503 Down")}
    assert len(server.asked) < 100


def test_a_broken_resource_does_not_stop_its_neighbours(server: HostileServer) -> None:
    server.on("*", answer(body=b"x"))
    for number in range(0, 60, 3):
        server.on(f"/{number}", answer("500 Broken"))

    outcomes = fetch_all(
        quick_fetcher(server.origin, retries=1), [f"{server.origin}/{n}" for n in range(60)]
    )

    assert sum(hasattr(outcome, "error") for outcome in outcomes) == 20


@pytest.mark.parametrize("status", ["429 Too Many", "503 Later"])
def test_retry_after_is_waited_for(server: HostileServer, status: str) -> None:
    server.on("/x", answer(status, Retry_After="40"), answer(body=b"x"))
    clock = SkippingClock()
    fetcher = quick_fetcher(server.origin, clock=clock, max_wait=60.0, timeout=30.0)

    outcome = response(fetch_one(fetcher, server.origin + "/x"))

    assert kept(outcome) == b"x"
    assert 39.9 < clock.slept < 45


@pytest.mark.parametrize("value", ["1e9", "-1", "soon", "", "Sat, 21 Nov 2020 00:00:00 GMT", "0"])
def test_retry_after_that_says_nothing_leaves_our_own_back_off(
    server: HostileServer, value: str
) -> None:
    server.on("/x", answer("503 Later", Retry_After=value), answer(body=b"x"))
    clock = SkippingClock()
    fetcher = quick_fetcher(server.origin, clock=clock, backoff=1.0, timeout=30.0)

    response(fetch_one(fetcher, server.origin + "/x"))

    assert 0.99 < clock.slept < 6.0


def test_a_wait_too_long_fails_at_once_for_all_of_the_origin(server: HostileServer) -> None:
    server.on("*", answer("503 Later", Retry_After="7200"))
    clock = SkippingClock()
    fetcher = quick_fetcher(server.origin, clock=clock, max_wait=60.0, timeout=30.0)

    outcomes = fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(200)])

    for outcome in outcomes:
        error = failure(outcome).error
        assert isinstance(error, SourceUnavailableError)
        assert error.retry_after is not None
        assert 7000 < error.retry_after <= 7200
    assert clock.slept < 60
    assert len(server.asked) <= 8


def test_a_paused_origin_does_not_hold_up_another(
    server: HostileServer, other: HostileServer
) -> None:
    server.on("/x", answer("503 Later", Retry_After="1"), answer(body=b"x"))
    other.on("*", answer(body=b"y"))
    fetcher = quick_fetcher(server.origin, other.origin, max_wait=5.0)
    uris = [server.origin + "/x", *(f"{other.origin}/{number}" for number in range(50))]

    outcomes = fetch_all(fetcher, uris)

    assert [outcome.request.uri for outcome in outcomes].index(uris[0]) == 50


def test_a_rate_is_kept(server: HostileServer) -> None:
    server.on("*", answer(body=b"x"))
    clock = SystemClock()

    started = clock.monotonic()
    fetch_all(quick_fetcher(server.origin, rate=50.0), [f"{server.origin}/{n}" for n in range(26)])

    assert clock.monotonic() - started >= 0.5


def test_a_bandwidth_is_kept(server: HostileServer) -> None:
    server.on("*", answer(body=b"x" * 100_000))
    clock = SystemClock()
    fetcher = quick_fetcher(server.origin, bandwidth=2_000_000)

    started = clock.monotonic()
    fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(24)])

    assert 0.8 <= clock.monotonic() - started < 3
