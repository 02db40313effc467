"""What robots.txt changes; on loopback (N35)."""

from contextlib import closing
from random import Random

import pytest

from resourcesync.adapters.http import CurlFetcher, FetchSettings
from resourcesync.adapters.http.politeness import KnownOrigins
from resourcesync.adapters.system import SystemClock
from resourcesync.app.fetchers import open_fetcher
from resourcesync.errors import SourceRefusedError, SourceUnavailableError
from resourcesync.ports import CancelToken, FetchFailure, FetchResponse, Purpose
from resourcesync.settings.mirror import Network
from resourcesync.settings.schema import parse_rate
from tests.support.servers.fetching import (
    failure,
    fetch_all,
    fetch_one,
    kept,
    quick_fetcher,
    request,
    response,
)
from tests.support.servers.hostile_server import HostileServer, answer


@pytest.mark.parametrize("status", ["404 Not Found", "403 Forbidden", "401 No", "400 Bad"])
def test_robots_that_do_not_exist_allow_everything(server: HostileServer, status: str) -> None:
    server.on("/robots.txt", answer(status))
    server.on("/x", answer(body=b"x"))
    fetcher = quick_fetcher(server.origin, robots="obey")

    response(fetch_one(fetcher, request(server.origin + "/x", Purpose.DISCOVERY)))

    assert server.targets() == ["/x"]


def test_robots_that_cannot_be_had_stop_discovery_only(server: HostileServer) -> None:
    server.on("/robots.txt", answer("503 Down"))
    server.on("/x", answer(body=b"x"))
    fetcher = quick_fetcher(server.origin, robots="obey")

    found = failure(fetch_one(fetcher, request(server.origin + "/x", Purpose.DISCOVERY)))
    listed = fetch_one(fetcher, server.origin + "/x")

    assert isinstance(found.error, SourceUnavailableError)
    assert kept(response(listed)) == b"x"


def test_robots_that_are_endless_count_as_far_as_they_are_read(server: HostileServer) -> None:
    body = b"User-agent: *\nDisallow: /private\n" + b"# x\n" * 1_000_000
    server.on("/robots.txt", answer(body=body))
    server.on("*", answer(body=b"x"))
    fetcher = quick_fetcher(server.origin, robots="obey")

    private, public = fetch_all(fetcher, [server.origin + "/private", server.origin + "/x"])

    assert {type(o.error) for o in (private, public) if hasattr(o, "error")} == {SourceRefusedError}
    assert server.targets() == ["/x"]


def test_robots_that_redirect_in_a_circle_forbid_nothing(
    server: HostileServer, other: HostileServer
) -> None:
    server.on("/robots.txt", answer("302 F", Location=other.origin + "/robots.txt"))
    other.on("/robots.txt", answer("302 F", Location=server.origin + "/robots.txt"))
    server.on("/x", answer(body=b"x"))
    other.on("/x", answer(body=b"y"))
    fetcher = quick_fetcher(server.origin, other.origin, robots="obey")

    outcomes = fetch_all(fetcher, [server.origin + "/x", other.origin + "/x"])

    assert {kept(response(outcome)) for outcome in outcomes} == {b"x", b"y"}


def test_a_crawl_delay_is_kept(server: HostileServer) -> None:
    server.on("/robots.txt", answer(body=b"User-agent: *\nCrawl-delay: 0.1\n"))
    server.on("*", answer(body=b"x"))
    fetcher = quick_fetcher(server.origin, robots="obey")
    clock = SystemClock()

    started = clock.monotonic()
    fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(6)])

    assert clock.monotonic() - started >= 0.5
    assert server.connections == 1


class _Notebook(KnownOrigins):
    def __init__(self) -> None:
        self.read: dict[str, bytes] = {}

    def recall(self, origin: str) -> tuple[bytes, float] | None:
        return (self.read[origin], 60.0) if origin in self.read else None

    def remember(self, origin: str, read: bytes) -> None:
        self.read[origin] = read


def _again(server: HostileServer, notebook: _Notebook, target: str) -> FetchResponse | FetchFailure:
    settings = FetchSettings(trusted_origins=frozenset({server.origin}), retries=0, backoff=0.01)
    with closing(CurlFetcher(settings, SystemClock(), Random(1), notebook)) as fetcher:
        return fetch_one(fetcher, server.origin + target)


def test_a_ban_that_is_remembered_is_asked_for_again_before_it_is_obeyed(
    server: HostileServer,
) -> None:
    server.on("/robots.txt", answer(body=b"User-agent: *\nDisallow: /\n"))
    server.on("*", answer(body=b"x"))
    notebook = _Notebook()
    assert failure(_again(server, notebook, "/x")).error.code == "robots"
    assert failure(_again(server, notebook, "/x")).error.code == "robots"
    assert [asked.target for asked in server.asked] == ["/robots.txt", "/robots.txt"]

    server.on("/robots.txt", answer(body=b""))
    assert kept(response(_again(server, notebook, "/x"))) == b"x"


def test_a_crawl_delay_of_days_is_a_warning_with_the_rate_that_keeps_to_it(
    server: HostileServer,
) -> None:
    told: list[dict[str, object]] = []
    server.on("/robots.txt", answer(body=b"User-agent: *\nCrawl-delay: 86400\n"))
    uri = server.on("/x", answer(body=b"x"))
    opened = open_fetcher(
        server.origin,
        Network(),
        CancelToken(SystemClock()),
        KnownOrigins(),
        lambda event, fields: told.append({"event": event, **fields}),
    )
    with opened as fetcher:
        list(fetcher.fetch([request(uri)]))
    [warning] = told

    assert (warning["event"], warning["code"]) == ("warning", "crawl-delay")
    assert warning["message"] == (
        f"robots.txt of {server.origin} asks for 86400 s between two requests; the delay is limited"
        " to 30 s"
    )
    assert warning["hint"] == "to wait as long as it asks, limit the rate: --rate 0.041666/h"
    assert 1 / parse_rate("0.041666/h") >= 86_400
