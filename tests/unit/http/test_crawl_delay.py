"""A Source whose robots.txt asks for days between two requests."""

from resourcesync.adapters.http.politeness import NoKnownOrigins
from resourcesync.adapters.system import SystemClock
from resourcesync.app.requests import open_fetcher
from resourcesync.ports import CancelToken
from resourcesync.settings.mirror import Network
from resourcesync.settings.schema import parse_rate
from tests.support.servers.fetching import request
from tests.support.servers.hostile_server import HostileServer, answer

Warnings = list[dict[str, object]]


class Known(NoKnownOrigins):
    """Rules that were read before."""

    def __init__(self, read: bytes) -> None:
        self.read = read

    def recall(self, origin: str) -> tuple[bytes, float] | None:
        return self.read, 60.0

    def remember(self, origin: str, read: bytes) -> None:
        raise AssertionError(f"{origin} was asked")


def fetched(body: bytes, *, known: bool = False, rate: float | None = None) -> Warnings:
    """Fetch one resource of a Source with that robots.txt, and return the warnings of it."""
    warnings: Warnings = []

    with HostileServer() as server:
        server.on("/robots.txt", answer(body=body))
        server.on("/x", answer(body=b"x"))
        opened = open_fetcher(
            server.origin,
            Network(rate=rate),
            CancelToken(SystemClock()),
            Known(body) if known else NoKnownOrigins(),
            lambda event, fields: warnings.append({"event": event, **fields}),
        )
        with opened as fetcher:
            list(fetcher.fetch([request(f"{server.origin}/x")]))
        for warning in warnings:
            warning["message"] = str(warning["message"]).replace(server.origin, "ORIGIN")
    return warnings


def test_what_it_asks_for_is_a_warning_with_the_rate_that_keeps_to_it() -> None:
    [warning] = fetched(b"User-agent: *\nCrawl-delay: 86400\n")

    assert (warning["event"], warning["code"]) == ("warning", "crawl-delay")
    assert warning["message"] == (
        "robots.txt of ORIGIN asks for 86400 s between two requests; the delay is limited to 30 s"
    )
    assert warning["hint"] == "to wait as long as it asks, limit the rate: --rate 0.041666/h"
    assert 1 / parse_rate("0.041666/h") >= 86_400
