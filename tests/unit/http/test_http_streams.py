"""Bodies without an end: taken as they come, at any rate, tried once, and nothing is told twice."""

import threading
import time
from collections.abc import Generator, Iterator

import pytest

from resourcesync.adapters.http.fetcher import StreamRun
from resourcesync.adapters.http.transfer_run import FetchOutcome
from resourcesync.errors import (
    ResourceMissingError,
    SourceRefusedError,
    SourceUnavailableError,
)
from resourcesync.ports import FetchRequest, FetchResponse, Streamer
from tests.support.servers.event_server import EventServer
from tests.support.servers.fetching import quick_fetcher


@pytest.fixture
def server() -> Iterator[EventServer]:
    with EventServer() as running:
        running.manners.prelude = b"hello"
        yield running


def until(stream: Generator[bytes, None, FetchResponse], wanted: bytes) -> bytes:
    """Return what came up to something; it must come soon."""
    came, began = b"", time.monotonic()
    while wanted not in came:
        came += next(stream)
        assert time.monotonic() - began < 5
    return came


def _rest(stream: Generator[bytes, None, FetchResponse], came: bytearray) -> FetchResponse:
    """Take what is left of a stream; return the answer that it ends with."""
    while True:
        try:
            came += next(stream)
        except StopIteration as end:
            answer: FetchResponse = end.value
            return answer


def test_bytes_are_given_as_they_come_and_its_end_is_an_answer(server: EventServer) -> None:
    fetcher = quick_fetcher(server.url.removesuffix("/stream"))
    assert isinstance(fetcher, Streamer)
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


@pytest.mark.parametrize(
    ("status", "error"), [(503, SourceUnavailableError), (404, ResourceMissingError)]
)
def test_another_answer_is_an_error_and_is_asked_for_once(
    server: EventServer, status: int, error: type[Exception]
) -> None:
    server.manners.statuses = [status] * 5
    fetcher = quick_fetcher(server.url.removesuffix("/stream"))
    with pytest.raises(error):
        next(fetcher.stream(server.url, ()))
    assert len(server.asked) == 1


def test_a_server_that_says_nothing_at_all_is_given_up(
    server: EventServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = threading.Event()
    monkeypatch.setattr(server, "answer", lambda _: hold.wait(5))
    fetcher = quick_fetcher(server.url.removesuffix("/stream"), timeout=0.4)
    began = time.monotonic()
    with pytest.raises(SourceUnavailableError) as slow:
        next(fetcher.stream(server.url, ()))
    hold.set()

    assert slow.value.code == "too-slow"
    assert time.monotonic() - began < 3


def test_time_that_the_caller_takes_is_not_counted_against_the_server(
    server: EventServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.manners.prelude = b"x" * 100
    fetcher = quick_fetcher(server.url.removesuffix("/stream"), timeout=0.4)
    turns = StreamRun.turns

    def dawdling(
        run: StreamRun, request: FetchRequest
    ) -> Generator[FetchOutcome | None, None, None]:
        real = turns(run, request)
        assert next(real) is None  # nothing has come yet
        time.sleep(0.8)
        yield from real

    monkeypatch.setattr(StreamRun, "turns", dawdling)

    assert until(fetcher.stream(server.url, ()), b"x" * 100)


def test_secrets_go_to_their_own_origin_and_policy_holds_for_addresses(
    server: EventServer,
) -> None:
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
