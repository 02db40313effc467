"""A Source whose robots.txt asks for days between two requests."""

from resourcesync.adapters.http.politeness import KnownOrigins
from resourcesync.adapters.system import SystemClock
from resourcesync.app.requests import open_fetcher
from resourcesync.ports import CancelToken
from resourcesync.settings.mirror import Network
from resourcesync.settings.schema import parse_rate
from tests.support.servers.fetching import request
from tests.support.servers.hostile_server import HostileServer, answer


def test_what_it_asks_for_is_a_warning_with_the_rate_that_keeps_to_it() -> None:
    told: list[dict[str, object]] = []
    with HostileServer() as server:
        server.on("/robots.txt", answer(body=b"User-agent: *\nCrawl-delay: 86400\n"))
        server.on("/x", answer(body=b"x"))
        opened = open_fetcher(
            server.origin,
            Network(),
            CancelToken(SystemClock()),
            KnownOrigins(),
            lambda event, fields: told.append({"event": event, **fields}),
        )
        with opened as fetcher:
            list(fetcher.fetch([request(f"{server.origin}/x")]))
    [warning] = told

    assert (warning["event"], warning["code"]) == ("warning", "crawl-delay")
    assert warning["message"] == (
        f"robots.txt of {server.origin} asks for 86400 s between two requests; the delay is limited"
        " to 30 s"
    )
    assert warning["hint"] == "to wait as long as it asks, limit the rate: --rate 0.041666/h"
    assert 1 / parse_rate("0.041666/h") >= 86_400
