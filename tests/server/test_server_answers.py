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


def test_what_an_answer_needs_is_ended_when_it_fails() -> None:
    ended: list[bool] = []

    async def respond(request: HttpRequest) -> Response:
        request.at_end(lambda: ended.append(True))
        raise StorageError("the disk is gone")

    assert isinstance(ask(application(respond), "/").error, StorageError)
    assert ended == [True]
