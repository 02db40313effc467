"""Fetching by a SOCKS proxy; real sockets on loopback."""

import threading
from collections.abc import Iterator
from socket import create_server

import pytest

from resourcesync.errors import SourceError, SourceRefusedError, SourceUnavailableError
from resourcesync.ports import FetchFailure, FetchResponse
from tests.support.servers.fetching import failure, fetch_one, quick_fetcher


def socks(reply: int, seen: list[bytes]) -> Iterator[str]:
    with create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(5)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(5)
                connection.recv(64)
                connection.sendall(b"\x05\x00" if reply >= 0 else b"\x05\xff")
                if reply < 0:
                    return
                seen.append(connection.recv(300))
                connection.sendall(bytes([5, reply, 0, 1, 0, 0, 0, 0, 0, 0]))
                if reply == 0:
                    connection.recv(4096)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"socks5h://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def by_socks(reply: int, seen: list[bytes]) -> FetchResponse | FetchFailure:
    (outcome,) = [
        fetch_one(quick_fetcher(proxy=proxy, retries=0), "http://museum.example/x")
        for proxy in socks(reply, seen)
    ]
    return outcome


@pytest.mark.parametrize(
    ("reply", "kind", "hint"),
    [
        (-1, SourceRefusedError, "user and password"),
        (2, SourceRefusedError, "allow this host"),
        (4, SourceUnavailableError, "try again later"),
    ],
)
def test_a_socks_proxy_that_does_not_do_it_is_named(
    reply: int, kind: type[SourceError], hint: str
) -> None:
    outcome = failure(by_socks(reply, []))

    assert type(outcome.error) is kind
    assert outcome.error.code == "proxy"
    assert "socks5h://127.0.0.1:" in outcome.error.message
    assert hint in outcome.error.hint
