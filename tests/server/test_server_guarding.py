"""What stands between the server and its connections."""

import asyncio
import http.client
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from resourcesync.errors import ConfigurationError
from resourcesync.server.connection_shares import ConnectionShares
from resourcesync.server.uvicorn_server import (
    ConnectionGuard,
    ConnectionLimits,
    JoiningTransport,
    SecondApplication,
    serve_forever,
)
from tests.support.servers.served_tree import application, plant


@pytest.fixture
def app(tmp_path: Path) -> ASGIApp:
    plant(tmp_path)
    (tmp_path / "one.txt").write_bytes(b"0123456789")
    return application(tmp_path)


class ForeignTransport:
    """A transport of another loop, such as uvloop's: of no class of asyncio."""

    def __init__(self) -> None:
        self.sent = b""

    def __getattr__(self, name: str) -> Callable[..., object]:
        found = {"is_closing": False, "get_write_buffer_size": 0}.get(name)
        return lambda *_: found

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("127.0.0.1", 8080) if name in {"sockname", "peername"} else default

    def write(self, data: bytes) -> None:
        self.sent += data


class GuardedConfig(uvicorn.Config):
    """What a guard has to know."""

    limits = ConnectionLimits()
    shares = ConnectionShares(limits.connections, limits.share)


def test_a_transport_of_another_loop_is_served_too(app: ASGIApp) -> None:
    transport = ForeignTransport()

    async def drive() -> None:
        configuration = GuardedConfig(cast("Any", app), interface="asgi3", log_config=None)
        configuration.load()
        guard = ConnectionGuard(configuration, ServerState(), {})
        guard.connection_made(cast("asyncio.Transport", transport))
        guard.data_received(b"GET /one.txt HTTP/1.1\r\nHost: x\r\n\r\n")
        while not transport.sent.endswith(b"0123456789"):  # noqa: ASYNC110 - it is no event
            await asyncio.sleep(0.01)
        guard.connection_lost(None)

    asyncio.run(asyncio.wait_for(drive(), 5))

    assert transport.sent.startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_second_application_answers_at_a_port_of_its_own_when_the_first_is_full() -> None:
    async def busy(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        await asyncio.Event().wait()

    async def second(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 299, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    seen: list[tuple[int, int]] = []

    def look(first: str, other: str) -> None:
        def ask() -> None:
            with ExitStack() as stack:
                for _ in range(3):
                    client = stack.enter_context(socket.create_connection(address(first)))
                    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                time.sleep(0.1)
                seen.append((status(first), status(other)))
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=ask).start()

    def address(uri: str) -> tuple[str, int]:
        return urlsplit(uri).hostname or "", urlsplit(uri).port or 0

    def status(uri: str) -> int:
        client = http.client.HTTPConnection(urlsplit(uri).netloc, timeout=10)
        client.request("GET", "/one.txt")
        found = client.getresponse().status
        client.close()
        return found

    aside = SecondApplication(second, "127.0.0.1", 0)
    serve_forever(
        busy,
        "127.0.0.1",
        0,
        on_ready=look,
        limits=ConnectionLimits(connections=3, grace=1),
        aside=aside,
    )

    assert seen == [(503, 299)]


def test_two_applications_need_two_addresses(app: ASGIApp) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]

    with pytest.raises(ConfigurationError, match="cannot listen"):
        serve_forever(
            app, "127.0.0.1", port, on_ready=print, aside=SecondApplication(app, "127.0.0.1", port)
        )


def test_a_server_may_open_the_files_that_its_connections_need(
    app: ASGIApp, caplog: pytest.LogCaptureFixture
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def fail(_: str) -> None:
        seen.append(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        raise BrokenPipeError

    seen: list[int] = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
        for connections in (10, 100, 10**8):
            limits = ConnectionLimits(connections=connections)
            with pytest.raises(BrokenPipeError):
                serve_forever(app, "127.0.0.1", 0, on_ready=fail, limits=limits)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    # With 50 that are told to come back, and 100 for everything else.
    assert seen == [220, 400, hard]
    assert f"{hard} files may be open" in caplog.text


class Noted:
    """A transport that notes each piece."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        assert not self.closed
        self.pieces.append(data)

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.pieces.extend(list_of_data)

    def close(self) -> None:
        self.closed = True

    def get_write_buffer_size(self) -> int:
        return 5

    def is_closing(self) -> bool:
        return self.closed


class NotedByAsyncio(Noted, asyncio.Transport):
    """The same of asyncio, whose ``writelines`` is not used."""

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        raise AssertionError(list_of_data)


async def _written(sizes: list[int], kind: type[Noted] = Noted) -> list[bytes]:
    """Write pieces of these sizes, letting the loop turn at each 0; return what was sent."""
    noted = kind()
    joining = JoiningTransport(cast("asyncio.Transport", noted))
    expected = b""
    for number, size in enumerate(sizes):
        if size == 0:
            await asyncio.sleep(0)
            assert b"".join(noted.pieces) == expected
            continue
        data = bytes([number % 256]) * size
        expected += data
        joining.write(data)
        assert joining.get_write_buffer_size() - 5 == len(expected) - sum(map(len, noted.pieces))
    joining.close()
    assert joining.is_closing()
    assert b"".join(noted.pieces) == expected
    return noted.pieces


@given(st.lists(st.sampled_from([0, 0, 1, 100, 4096, 4097, 65536, 65537]), max_size=12))
def test_pieces_are_sent_in_order_none_twice_and_none_late(sizes: list[int]) -> None:
    assert asyncio.run(_written(sizes)) == asyncio.run(_written(sizes, NotedByAsyncio))


def test_head_and_body_of_a_small_answer_are_one_piece() -> None:
    assert [len(piece) for piece in asyncio.run(_written([200, 1000, 0, 200, 65536]))] == [
        1200,
        65736,
    ]
    assert [len(piece) for piece in asyncio.run(_written([200, 65537]))] == [200, 65537]
