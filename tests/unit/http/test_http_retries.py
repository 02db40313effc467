"""What is taken, tried again, waited for and given up; on loopback."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.errors import SourceUnavailableError
from resourcesync.ports import FetchFailure
from tests.support.commands.run import free_port
from tests.support.in_memory import ManualClock
from tests.support.servers.fetching import (
    failure,
    fetch_all,
    fetch_one,
    kept,
    quick_fetcher,
    response,
)
from tests.support.servers.hostile_server import HostileServer, answer


def test_a_dead_host_does_not_hold_up_another(server: HostileServer) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    server.on("*", answer(body=b"x"))
    uris = [f"{(dead, server.origin)[number % 2]}/{number}" for number in range(200)]

    outcomes = fetch_all(quick_fetcher(dead, server.origin, backoff=0.05), uris)

    good = [outcome for outcome in outcomes if outcome.request.uri.startswith(server.origin)]
    assert len(good) == 100
    assert all(kept(response(outcome)) == b"x" for outcome in good)


def test_an_origin_that_comes_back_is_asked_again(server: HostileServer) -> None:
    port = free_port()
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
    fetcher = quick_fetcher(server.origin, clock=ManualClock(), timeout=30.0)

    outcomes = fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(500)])

    assert {failure(outcome).error.evidence[0] for outcome in outcomes} == {("got", "503 Down")}
    assert len(server.asked) < 100


@pytest.mark.parametrize("status", ["429 Too Many", "503 Later"])
def test_retry_after_is_waited_for(server: HostileServer, status: str) -> None:
    server.on("/x", answer(status, Retry_After="40"), answer(body=b"x"))
    clock = ManualClock()
    fetcher = quick_fetcher(server.origin, clock=clock, max_wait=60.0, timeout=30.0)

    outcome = response(fetch_one(fetcher, server.origin + "/x"))

    assert kept(outcome) == b"x"
    assert 39.9 < clock.monotonic() < 45


def test_a_wait_too_long_fails_at_once_for_all_of_the_origin(server: HostileServer) -> None:
    server.on("*", answer("503 Later", Retry_After="7200"))
    clock = ManualClock()
    fetcher = quick_fetcher(server.origin, clock=clock, max_wait=60.0, timeout=30.0)

    outcomes = fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(200)])

    for outcome in outcomes:
        error = failure(outcome).error
        assert isinstance(error, SourceUnavailableError)
        assert error.retry_after is not None
        assert 7000 < error.retry_after <= 7200
    assert clock.monotonic() < 60
    assert len(server.asked) <= 8


def test_a_page_that_asks_for_a_long_wait_holds_up_no_other(server: HostileServer) -> None:
    server.on("*", answer(body=b"x"))
    server.on("/0", answer("503 Later", Retry_After="86400"))
    fetcher = quick_fetcher(server.origin, clock=ManualClock(), max_wait=60.0, timeout=30.0)

    outcomes = fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(200)])

    (failed,) = (outcome for outcome in outcomes if isinstance(outcome, FetchFailure))
    assert isinstance(failed.error, SourceUnavailableError)
    assert (failed.request.uri, failed.error.retry_after) == (f"{server.origin}/0", 86_400)
    assert fetcher.stats.wait is None, "the origin asked for nothing"


def test_what_a_pause_keeps_from_being_requested_is_not_blamed_on_its_own_address(
    server: HostileServer,
) -> None:
    server.on("/old", answer("301 Moved", Location="/new", Retry_After="30"))
    server.on("/broken", answer("500 Broken"))
    server.on("/busy", answer("429 Busy", Retry_After="86400"))
    limits = {"max_wait": 60.0, "backoff": 20.0, "first_window": 1}
    fetcher = quick_fetcher(server.origin, clock=ManualClock(), **limits)

    outcomes = fetch_all(fetcher, [f"{server.origin}/{name}" for name in ("broken", "old", "busy")])

    old, busy, broken = sorted(failure(outcome).error.cause for outcome in outcomes)
    assert old == f"redirected to {server.origin}/new, which was not requested: {busy}"
    assert broken.endswith("(500 Broken)")


def test_a_bandwidth_is_kept(server: HostileServer) -> None:
    server.on("*", answer(body=b"x" * 100_000))
    clock = SystemClock()
    fetcher = quick_fetcher(server.origin, bandwidth=2_000_000)

    started = clock.monotonic()
    fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(24)])

    assert 0.8 <= clock.monotonic() - started < 3


@pytest.mark.parametrize(("version", "most"), [("HTTP/1.0", 6), ("HTTP/1.1", 32)])
def test_a_server_that_closes_each_connection_gets_no_more_at_a_time_than_browsers_open(
    version: str, most: int
) -> None:
    busy, peaks, lock = [0], [0], threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = version

        def do_GET(self) -> None:
            with lock:
                busy[0] += 1
                peaks.append(busy[0])
            SystemClock().sleep(0.01)
            with lock:
                busy[0] -= 1
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as simple:
        threading.Thread(target=simple.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{simple.server_port}"
        fetcher = quick_fetcher(origin, per_host=32, timeout=20.0)
        outcomes = fetch_all(fetcher, [f"{origin}/{number}" for number in range(150)])
        simple.shutdown()

    assert {response(outcome).status for outcome in outcomes} == {200}
    assert 4 <= max(peaks) <= most
    assert most == 6 or max(peaks) > 6
