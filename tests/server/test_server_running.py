"""The server on real loopback sockets, and what stands between it and its connections."""

import asyncio
import http.client
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from resourcesync.adapters.system import SystemClock
from resourcesync.errors import ConfigurationError
from resourcesync.server.app import Application
from resourcesync.server.connection_limits import ConnectionLimits
from resourcesync.server.uvicorn_server import ServerThread, serve_forever
from tests.support.servers.listening import get
from tests.support.servers.real_sockets import connected
from tests.support.servers.served_tree import served_source

IMPATIENT = ConnectionLimits(
    connections=20, client_timeout=0.3, keep_alive=1, grace=1, header_bytes=4096
)
HUGE = 256 * 1024 * 1024


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("served")
    (root / "one.txt").write_bytes(b"0123456789")
    (root / "big.bin").write_bytes(bytes(range(256)) * 8192)
    os.utime(root / "big.bin", (1_700_000_000, 1_700_000_000))  # a file of just now has no ETag
    with (root / "huge.bin").open("wb") as stream:
        stream.truncate(HUGE)
    (root / "resourcesync").mkdir()
    (root / "resourcesync" / "capabilitylist.xml").write_bytes(b"<urlset/>")
    return root


@pytest.fixture(scope="module")
def app(root: Path) -> ASGIApp:
    served = served_source(root, media_type=lambda _: "text/plain")
    return Application(served, clock=SystemClock())


@pytest.fixture(scope="module")
def server(app: ASGIApp) -> Iterator[ServerThread]:
    with ServerThread(app) as server:
        yield server


@pytest.fixture(scope="module")
def strict(app: ASGIApp) -> Iterator[ServerThread]:
    with ServerThread(app, limits=IMPATIENT) as server:
        yield server


def connection(server: ServerThread) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(server.uri).netloc, timeout=10)


def wait_until_dropped(client: socket.socket) -> bytes:
    got = b""
    try:
        while part := client.recv(65536):
            got += part
    except ConnectionError:
        pass
    return got


def test_a_file_that_shrinks_while_it_is_sent_ends_the_connection(
    server: ServerThread, root: Path
) -> None:
    path = root / "shrinks.bin"
    with path.open("wb") as stream:
        stream.truncate(HUGE)
    client = connection(server)
    client.request("GET", "/shrinks.bin")
    response = client.getresponse()
    response.read(1000)

    os.truncate(path, 1000)

    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        response.read()
    client.close()


def test_two_hundred_silent_connections_keep_nobody_out(strict: ServerThread) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(connected(strict.uri)) for _ in range(200)]

        assert all(wait_until_dropped(client) == b"" for client in silent)

    assert get(strict.uri, "/one.txt")[1] == b"0123456789"


def test_a_request_that_outlives_the_server_is_told_that_it_stops() -> None:
    begun, answers = threading.Event(), []

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        begun.set()
        await asyncio.Event().wait()

    def ask(server: ServerThread) -> None:
        with closing(connection(server)) as client:
            client.request("GET", "/")
            answer = client.getresponse()
            answers.append((answer.status, answer.headers["Retry-After"], answer.read()))

    with ServerThread(endless, limits=ConnectionLimits(grace=1)) as server:
        asking = threading.Thread(target=ask, args=(server,))
        asking.start()
        assert begun.wait(20)
    asking.join()

    assert answers == [(503, "10", b"The service is stopping.\n")]


def test_a_request_that_comes_by_drops_is_given_up(strict: ServerThread) -> None:
    started = time.monotonic()
    with connected(strict.uri) as client:
        client.sendall(b"GET /one.txt HTTP/1.1\r\n")
        try:
            while time.monotonic() - started < 10:
                client.sendall(b"X: y\r\n")
                time.sleep(0.05)
        except ConnectionError:
            pass

    assert time.monotonic() - started < 5


def test_an_endless_header_is_cut_off(strict: ServerThread) -> None:
    with connected(strict.uri) as client:
        sent = 0
        try:
            client.sendall(b"GET /one.txt HTTP/1.1\r\n")
            while sent < 50_000_000:
                client.sendall(b"X: " + b"y" * 4000 + b"\r\n")
                sent += 4005
        except ConnectionError:
            pass

    assert sent < 50_000_000


def test_a_client_that_takes_nothing_is_given_up(strict: ServerThread) -> None:
    with connected(strict.uri) as client:
        client.sendall(b"GET /huge.bin HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(1.5)
        got = len(wait_until_dropped(client))

    assert got < HUGE


def test_a_slow_but_steady_client_gets_all_of_it(strict: ServerThread) -> None:
    client = connection(strict)
    client.request("GET", "/huge.bin", headers={"range": f"bytes=0-{24 * 1024 * 1024 - 1}"})
    response = client.getresponse()
    got = 0

    while part := response.read(1024 * 1024):
        got += len(part)
        time.sleep(0.08)

    assert got == 24 * 1024 * 1024
    client.close()


def test_a_thread_ends_with_its_block_and_installs_no_signal_handler(app: ASGIApp) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with ServerThread(app) as server:
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
        assert get(server.uri, "/one.txt")[0] == 200
        uri = server.uri
        running = threading.active_count()

    assert threading.active_count() < running
    with pytest.raises(ConnectionError):
        socket.create_connection((urlsplit(uri).hostname or "", urlsplit(uri).port or 0))


def test_a_port_in_use_is_a_fault_of_the_settings(server: ServerThread, app: ASGIApp) -> None:
    port = urlsplit(server.uri).port or 0

    with pytest.raises(ConfigurationError, match=f"port {port}"):
        serve_forever(app, "127.0.0.1", port, on_ready=print)
    with pytest.raises(ConfigurationError):
        serve_forever(app, "no such host.invalid", 0, on_ready=print)
    with pytest.raises(ConfigurationError):
        serve_forever(app, "127.0.0.1", 99999, on_ready=print)


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
                    client = stack.enter_context(connected(first))
                    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                time.sleep(0.1)
                seen.append((get(first)[0], get(other)[0]))
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=ask).start()

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
