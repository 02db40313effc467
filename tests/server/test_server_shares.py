"""One client that takes all connections it can get, and what is left for the others."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
from starlette.types import Receive, Scope, Send

from resourcesync.server.connection_limits import ConnectionLimits, client_of
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.servers.listening import get
from tests.support.servers.real_sockets import connected
from tests.support.waiting import wait_until

UNDER_WAY: set[int] = set()
ASK = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the client's address, or never."""
    assert scope["type"] == "http"
    if scope["path"] == "/never":
        UNDER_WAY.add(id(scope))
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            UNDER_WAY.discard(id(scope))
        return
    head = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]}
    await send(head)
    await send({"type": "http.response.body", "body": scope["client"][0].encode().ljust(9)[:9]})


@contextmanager
def serving(**limits: object) -> Iterator[ServerThread]:
    with ServerThread(app, limits=ConnectionLimits(grace=1, **limits)) as server:  # type: ignore[arg-type]
        yield server


def ask(server: ServerThread, source: str, **fields: str) -> tuple[int, bytes]:
    return get(server.uri, source=source, **fields)[:2]


def is_open(connection: socket.socket) -> bool:
    try:
        connection.sendall(ASK % b"")
        return connection.recv(1000).startswith(b"HTTP/1.1 200 ")
    except ConnectionError:
        return False


def nothing(_client: socket.socket) -> None:
    """Say nothing."""


def half(client: socket.socket) -> None:
    client.sendall(b"GET / HTTP/1.1\r\n")


def never(client: socket.socket) -> None:
    client.sendall(ASK % b"never")


@pytest.mark.parametrize("first", [nothing, half, never])
def test_450_connections_of_one_client_keep_nobody_else_out(
    first: Callable[[socket.socket], None],
) -> None:
    with serving() as server, ExitStack() as stack:
        for _ in range(450):
            client = stack.enter_context(connected(server.uri))
            with suppress(ConnectionError):  # it has its share already
                first(client)
        began = time.monotonic()

        assert ask(server, "127.0.0.2")[0] == 200
        assert time.monotonic() - began < 2


def test_a_client_above_its_share_loses_its_longest_idle_connection() -> None:
    with serving(share=3) as server, ExitStack() as stack:
        other = stack.enter_context(connected(server.uri, "127.0.0.2"))
        busy, first, second = (stack.enter_context(connected(server.uri)) for _ in range(3))
        busy.sendall(ASK % b"never")
        assert is_open(second)
        assert is_open(first)  # later, so the second is idle longer

        third = stack.enter_context(connected(server.uri))

        assert is_open(third)
        assert not is_open(second)
        assert is_open(first)
        assert is_open(other)


def test_a_full_server_closes_the_longest_idle_connection_of_all() -> None:
    with serving(connections=4, share=3) as server, ExitStack() as stack:
        longest = stack.enter_context(connected(server.uri, "127.0.0.3"))
        assert is_open(longest)
        second = stack.enter_context(connected(server.uri))
        assert is_open(second)
        stack.enter_context(connected(server.uri)).sendall(ASK % b"never")
        wait_until(lambda: UNDER_WAY)

        assert ask(server, "127.0.0.2")[0] == 200
        assert not is_open(longest)
        assert is_open(second)


def test_a_proxy_has_no_share_and_each_of_its_clients_has_one() -> None:
    with serving(share=2, proxies=("127.0.0.9",)) as server, ExitStack() as stack:
        for _ in range(2):
            client = stack.enter_context(connected(server.uri, "127.0.0.9"))
            client.sendall(b"GET /never HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n")
        wait_until(lambda: len(UNDER_WAY) == 2)

        assert ask(server, "127.0.0.9", X_Forwarded_For="1.1.1.1, 9.9.9.9")[0] == 503
        known = ask(server, "127.0.0.9", X_Forwarded_For="9.9.9.9, 1.1.1.1")
        assert known == (200, b"1.1.1.1  ")
        assert ask(server, "127.0.0.9") == (200, b"127.0.0.9")


@pytest.mark.parametrize(
    ("proxies", "stranger"), [(("127.0.0.9",), b"127.0.0.3"), ((), b"127.0.0.9")]
)
def test_a_stranger_cannot_say_who_the_client_is(proxies: tuple[str, ...], stranger: bytes) -> None:
    with serving(share=2, proxies=proxies) as server:
        found = ask(server, stranger.decode(), X_Forwarded_For="9.9.9.9")
        assert found == (200, stranger)


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("::1", "::/64"),
        ("", ""),
    ],
)
def test_a_network_of_ipv6_is_one_client(host: str, client: str) -> None:
    assert client_of(host) == client
