"""A man in the middle of a client and an HTTP server, who spoils what he is told to spoil."""

import contextlib
import http.client
import os
import socket
import struct
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import NamedTuple

from tests.support.servers.listening import serving


class Answer(NamedTuple):
    """What the client is sent."""

    status: int  # of HTTP; 0 resets the connection instead
    body: bytes
    length: int | None = None  # what `Content-Length` says; `None` says the truth


Spoil = Callable[[str, str], Answer | None]
"""Is asked for each request, by method and target; ``None`` lets it through."""
SpoilAnswer = Callable[[str, str, bytes], Answer | None]


class Interposed:
    """What is between."""

    def __init__(self, url: str) -> None:
        self.url = url  # where the client asks
        self.asked: list[tuple[str, str]] = []  # each request's method and target
        self.fields: list[dict[str, str]] = []  # each request's header fields
        self.lock = Lock()
        # what is done before a request gets through
        self.spoil: Spoil = _spoil_nothing
        # what is done to the answer of one that got through
        self.spoil_answer: SpoilAnswer = lambda method, target, body: None
        # names of header fields, in lower case, that do not get through
        self.drops: frozenset[str] = frozenset()

    @contextlib.contextmanager
    def spoiling(self, spoil: Spoil) -> Iterator[None]:
        """Spoil requests while the block runs."""
        self.spoil = spoil
        try:
            yield
        finally:
            self.spoil = _spoil_nothing


def _spoil_nothing(method: str, target: str) -> None:
    """Let a request through."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def log_message(self, *args: object) -> None:
        pass

    def handle_any(self) -> None:
        between, method, target = self.server.between, self.command, self.path
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with between.lock:
            between.asked.append((method, target))
            between.fields.append(dict(self.headers.items()))
        answer = between.spoil(method, target)
        if answer is not None:
            self._send(answer, [])
            return
        connection = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=30)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in between.drops:
                    connection.putheader(name, value)
            connection.endheaders(body)
            got = connection.getresponse()
            data = got.read()
            spoiled = between.spoil_answer(method, target, data)
            length = len(data) or int(got.headers.get("Content-Length", 0))
            self._send(spoiled or Answer(got.status, data, length), got.getheaders())
        finally:
            connection.close()

    def _send(self, answer: Answer, headers: list[tuple[str, str]]) -> None:
        length = len(answer.body) if answer.length is None else answer.length
        self.close_connection = answer.status == 0 or length != len(answer.body)
        if answer.status == 0:
            reset = struct.pack("ii", 1, 0)  # linger for no second
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            os.close(self.connection.detach())
            return
        self.send_response_only(answer.status)
        for name, value in headers:
            if name.lower() not in {"content-length", "transfer-encoding", "connection"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(answer.body)


for _method in ("GET", "PUT", "POST", "HEAD", "DELETE"):
    setattr(_Handler, f"do_{_method}", _Handler.handle_any)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, behind: int, at: int) -> None:
        super().__init__(("127.0.0.1", at), _Handler)
        self.behind = behind
        self.between = Interposed(f"http://127.0.0.1:{self.server_address[1]}")

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a client that went away."""


@contextlib.contextmanager
def interposed(port: int, *, at: int = 0) -> Iterator[Interposed]:
    """Stand in front of a server on loopback while the block runs, at a port or at any."""
    server = _Server(port, at)
    with serving(server):
        yield server.between
