"""What stands between the server and its connections."""

import asyncio
import http.client
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from resourcesync.server.connection_limits import (
    ConnectionGuard,
    ConnectionLimits,
    ConnectionShares,
)
from resourcesync.server.uvicorn_server import ServerThread, serve_forever
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

    aside = ServerThread(second)
    serve_forever(
        busy,
        "127.0.0.1",
        0,
        on_ready=look,
        limits=ConnectionLimits(connections=3, grace=1),
        aside=aside,
    )

    assert seen == [(503, 299)]


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
