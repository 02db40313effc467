"""Bodies without an end: taken as they come, at any rate, tried once, and nothing is told twice."""

import time
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from resourcesync.errors import SourceRefusedError, SourceUnavailableError
from resourcesync.ports import FetchResponse
from tests.support.servers.event_server import EventServer
from tests.support.servers.fetching import quick_fetcher


@pytest.fixture
def server() -> Iterator[EventServer]:
    with EventServer() as running:
        running.manners.prelude = b"hello"
        yield running


def until(stream: Generator[bytes, None, FetchResponse], wanted: bytes) -> bytes:
    came, began = b"", time.monotonic()
    while wanted not in came:
        came += next(stream)
        assert time.monotonic() - began < 5
    return came


def _rest(stream: Generator[bytes, None, FetchResponse], came: bytearray) -> FetchResponse:
    while True:
        try:
            came += next(stream)
        except StopIteration as end:
            answer: FetchResponse = end.value
            return answer


def test_bytes_are_given_as_they_come_and_its_end_is_an_answer(server: EventServer) -> None:
    fetcher: Any = quick_fetcher(server.url.removesuffix("/stream"))
    stream = fetcher.stream(server.url, (("X-Mine", "1"), ("Last-Event-ID", "x")))
    assert until(stream, b"hello") == b"hello"
    assert next(stream) == b""  # while nothing comes, there is a turn to look at the clock
    server.tell(b"a")
    until(stream, b"data: a\n\n")
    server.manners.ends = True
    response = _rest(stream, bytearray())

    assert response.headers["content-type"].startswith("text/event-stream")
    asked = server.asked[0]
    assert (asked["x-mine"], asked["last-event-id"]) == ("1", "x")
    assert asked["accept-encoding"] == "identity"


def test_what_breaks_off_is_an_error_after_what_came_and_is_not_tried_again(
    server: EventServer,
) -> None:
    for _ in range(9):
        server.tell(b"a")
    server.manners.cut_after = 3
    fetcher = quick_fetcher(server.url.removesuffix("/stream"))
    came = bytearray()
    with pytest.raises(SourceUnavailableError):
        _rest(fetcher.stream(server.url, (("Last-Event-ID", "0"),)), came)

    assert came.count(b"data: a") >= 3
    assert len(server.asked) == 1
    assert until(fetcher.stream(server.url, ()), b"hello")  # the fetcher can still be used


def test_secrets_go_to_their_own_origin_and_policy_holds_for_addresses(server: EventServer) -> None:
    origin = server.url.removesuffix("/stream")
    secret = {origin: (("Authorization", "Bearer hush"),)}
    next(quick_fetcher(origin, headers=secret).stream(server.url, ()))
    assert server.asked[0]["authorization"] == "Bearer hush"
    with pytest.raises(SourceRefusedError, match="did not allow one for its origin"):
        next(quick_fetcher().stream(server.url, ()))
    with EventServer() as other:
        server.manners.statuses = [302]
        server.manners.fields = {"Location": other.url}
        fetcher = quick_fetcher(origin, other.url.removesuffix("/stream"), headers=secret)
        next(fetcher.stream(server.url, ()))
        assert "authorization" not in other.asked[0]
