"""Answers that are longer than one message, and what they need until they were sent."""

import asyncio
from collections.abc import AsyncIterator

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from resourcesync.errors import StorageError
from resourcesync.server.asgi import ChunkedResponse, HttpRequest, Responder, answer
from tests.support.servers.asgi import ask


def application(respond: Responder) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await answer(respond, scope, receive, send)

    return app


async def waiting(first: bytes = b"one") -> AsyncIterator[bytes]:
    """Yield a chunk, then wait for ever."""
    yield first
    await asyncio.Event().wait()


def test_a_stream_of_unknown_length_ends_with_an_empty_message() -> None:
    async def count() -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"%d" % number

    async def respond(_: HttpRequest) -> Response:
        return ChunkedResponse(200, (), chunks=count())

    found = ask(application(respond), "/")

    assert (found.status, found.body, found.chunks) == (200, b"012", 4)


def test_a_stream_that_waits_ends_as_soon_as_its_client_has_gone() -> None:
    ended: list[str] = []

    async def respond(request: HttpRequest) -> Response:
        request.at_end(lambda: ended.append("file"))
        request.at_end(lambda: ended.append("place"))
        return ChunkedResponse(200, (), chunks=waiting())

    found = ask(application(respond), "/", gone_after=1)

    assert (found.body, found.error) == (b"one", None)
    assert ended == ["place", "file"]


def test_a_time_that_runs_out_within_a_stream_is_no_client_that_left() -> None:
    async def late() -> AsyncIterator[bytes]:
        yield b"one"
        raise TimeoutError

    async def respond(_: HttpRequest) -> Response:
        return ChunkedResponse(200, (), chunks=late())

    assert isinstance(ask(application(respond), "/").error, TimeoutError)


def test_the_stream_of_a_head_is_never_started() -> None:
    started: list[bool] = []

    async def note() -> AsyncIterator[bytes]:
        started.append(True)
        yield b"one"

    async def respond(_: HttpRequest) -> Response:
        return ChunkedResponse(200, ((b"x-kind", b"stream"),), chunks=note())

    found = ask(application(respond), "/", method="HEAD")

    assert (found.status, found.fields, found.body) == (200, {"x-kind": "stream"}, b"")
    assert started == []


def test_what_an_answer_needs_is_ended_when_it_fails() -> None:
    ended: list[bool] = []

    async def respond(request: HttpRequest) -> Response:
        request.at_end(lambda: ended.append(True))
        raise StorageError("the disk is gone")

    assert isinstance(ask(application(respond), "/").error, StorageError)
    assert ended == [True]


def test_repeated_fields_are_one_list() -> None:
    seen: list[str] = []

    async def respond(request: HttpRequest) -> Response:
        seen.append(request.fields["if-none-match"])
        return Response()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        name = b"if-none-match"
        headers = [(name, b'"a"'), (b"host", b"x"), (name, b'"b", "c"')]
        await answer(respond, {**scope, "headers": headers}, receive, send)

    ask(app, "/")

    assert seen == ['"a", "b", "c"']
