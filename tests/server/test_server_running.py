"""The server on real loopback sockets."""

import asyncio
import http.client
import os
import signal
import socket
import subprocess
import sys
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
from tests.support.servers.served_tree import served_source
from tests.support.waiting import wait_until

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


def plug(server: ServerThread) -> socket.socket:
    parts = urlsplit(server.uri)
    assert parts.hostname is not None
    return socket.create_connection((parts.hostname, parts.port or 0), timeout=10)


def get(server: ServerThread, path: str, **fields: str) -> tuple[int, bytes, dict[str, str]]:
    client = connection(server)
    try:
        client.request("GET", path, headers={k.replace("_", "-"): v for k, v in fields.items()})
        response = client.getresponse()
        return response.status, response.read(), {k.lower(): v for k, v in response.getheaders()}
    finally:
        client.close()


def wait_until_dropped(client: socket.socket) -> bytes:
    """Read to the end; a timeout of the socket fails the test."""
    got = b""
    try:
        while part := client.recv(65536):
            got += part
    except ConnectionError:
        pass
    return got


def test_the_answers_arrive_as_sent(server: ServerThread, root: Path) -> None:
    # A file that was written or touched just now has no ETag yet.
    wait_until(lambda: "etag" in get(server, "/big.bin")[2])
    status, body, fields = get(server, "/big.bin")
    assert (status, body) == (200, (root / "big.bin").read_bytes())
    assert "server" not in fields
    assert fields["date"]
    assert get(server, "/big.bin", Range="bytes=100000-400000")[:2] == (206, body[100000:400001])
    assert get(server, "/one.txt", Range="bytes=20-")[0] == 416
    assert get(server, "/one.txt", Range="bytes=0-0,5-6")[:2] == (200, b"0123456789")
    assert get(server, "/big.bin", If_None_Match=fields["etag"])[:2] == (304, b"")
    assert get(server, "/big.bin", If_Match='"x"')[:2] == (412, b"")


def test_head_has_no_body_on_the_wire(server: ServerThread) -> None:
    with plug(server) as client:
        client.sendall(b"HEAD /big.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = wait_until_dropped(client)

    assert b"content-length: 2097152\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


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


def test_a_client_that_leaves_disturbs_nobody(server: ServerThread) -> None:
    for _ in range(5):
        client = connection(server)
        client.request("GET", "/huge.bin")
        client.getresponse().read(1000)
        client.close()

    assert get(server, "/one.txt")[1] == b"0123456789"


def test_two_hundred_silent_connections_keep_nobody_out(strict: ServerThread) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(plug(strict)) for _ in range(200)]

        assert all(wait_until_dropped(client) == b"" for client in silent)

    assert get(strict, "/one.txt")[1] == b"0123456789"


def test_more_requests_than_allowed_are_told_so(app: ASGIApp) -> None:
    limits = ConnectionLimits(connections=5, client_timeout=5, grace=1)
    with ServerThread(app, limits=limits) as server, ExitStack() as stack:
        for _ in range(6):
            client = stack.enter_context(plug(server))
            client.sendall(b"GET /huge.bin HTTP/1.1\r\nHost: x\r\n\r\n")
            time.sleep(0.02)  # so that the first five are served

        assert get(server, "/one.txt")[0] == 503


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
    with plug(strict) as client:
        client.sendall(b"GET /one.txt HTTP/1.1\r\n")
        try:
            while time.monotonic() - started < 10:
                client.sendall(b"X: y\r\n")
                time.sleep(0.05)
        except ConnectionError:
            pass

    assert time.monotonic() - started < 5


def test_an_endless_header_is_cut_off(strict: ServerThread) -> None:
    with plug(strict) as client:
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
    with plug(strict) as client:
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
        assert get(server, "/one.txt")[0] == 200
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


PROGRAM = """
import sys
from pathlib import Path
from resourcesync.adapters.system import SystemClock
from resourcesync.server.app import Application, ServedSource
from resourcesync.server.uvicorn_server import serve_forever

root = Path(sys.argv[1])
served = ServedSource(
    root=root, documents=root / "resourcesync", well_known=root / "description.xml",
    capability_list_uri="http://x/c.xml", media_type=lambda _: "",
)
app = Application(served, clock=SystemClock())
serve_forever(app, sys.argv[2], 0, on_ready=lambda uri: print(uri, flush=True))
print("returned", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_in_order(root: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(root), "localhost"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        uri = process.stdout.readline().strip()
        client = http.client.HTTPConnection(urlsplit(uri).netloc, timeout=10)
        client.request("GET", "/one.txt")
        body = client.getresponse().read()

        process.send_signal(number)
        said = process.stdout.read()
        client.close()

    assert body == b"0123456789"
    assert said == "returned\n"
    assert process.returncode == 0
