"""Plain HTTP on loopback: a receiver of deliveries, a host of static files, a client."""

import contextlib
import functools
import os
import socket
import socketserver
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit

from tests.support.waiting import wait_until

RESETTING: Final = struct.pack("ii", 1, 0)
"""Linger for no second: a connection that is closed so is reset."""


@contextlib.contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[str]:
    options = {"poll_interval": 0.01}
    thread = threading.Thread(target=server.serve_forever, kwargs=options, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Static(SimpleHTTPRequestHandler):
    def guess_type(self, path: object) -> str:
        """Return a media type; a Source Description has no extension."""
        return super().guess_type(str(path)).replace("application/octet-stream", "application/xml")

    def log_message(self, *_: Any) -> None:
        """Stay quiet."""


@contextlib.contextmanager
def static(folder: Path, port: int = 0) -> Iterator[str]:
    handler = functools.partial(_Static, directory=str(folder))
    with serving(ThreadingHTTPServer(("127.0.0.1", port), handler)) as origin:
        yield origin


class Got(NamedTuple):
    status: int
    body: bytes
    fields: dict[str, str]

    @property
    def text(self) -> str:
        return self.body.decode()


def get(
    origin: str,
    target: str = "/",
    /,
    *,
    method: str = "GET",
    body: bytes | str | None = None,
    source: str = "",
    **fields: str,
) -> Got:
    asked = {name.replace("_", "-"): value for name, value in fields.items()}
    place = urlsplit(origin).netloc
    client = HTTPConnection(place, timeout=30, source_address=(source, 0))
    with contextlib.closing(client) as connection:
        connection.request(method, target, body, asked)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Got(answer.status, answer.read(), found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    method: str
    target: str
    body: bytes
    headers: Mapping[str, str]
    at: float

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def fields(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}


Reply = tuple[int, bytes] | tuple[int, bytes, Mapping[str, str]]
"""Status, body and header fields; status 0 resets the connection.

A ``Content-Length`` among the fields is sent as it is; one that lies ends the connection.
"""


def agreeing(heard: Heard) -> Reply:
    """Repeat every challenge, and take every delivery."""
    if heard.method == "GET":
        return 200, heard.query.get("hub.challenge", "").encode()
    return 204, b""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body follows its header 40 ms later
    server: "_Server"

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        heard = Heard(
            method=self.command,
            target=self.path,
            body=body,
            headers=dict(self.headers.items()),
            at=time.monotonic(),
        )
        self.server.listener.heard.append(heard)
        self._send(*self.server.listener.answer(heard))

    def _send(self, status: int, body: bytes, more: Mapping[str, str] | None = None) -> None:
        if status == 0:
            self.close_connection = True
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETTING)
            self.server.let_go(self.connection)
            os.close(self.connection.detach())
            return
        length = {} if status == 204 else {"Content-Length": str(len(body))}
        fields = {**length, **(more or {})}
        self.close_connection |= fields.get("Content-Length") not in (*length.values(), None)
        self.send_response_only(status)
        if self.server.listener.has_clock:
            self.send_header("Date", self.date_time_string())
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Stay quiet: what was heard is kept."""


for _method in ("GET", "HEAD", "POST", "PUT", "DELETE"):
    setattr(_Handler, f"do_{_method}", _Handler.handle_any)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, listener: "Listener", port: int, tls: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.listener = listener
        self._open: set[socket.socket] = set()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self._open.add(connection)
        return connection, address

    def let_go(self, connection: socket.socket) -> None:
        self._open.discard(connection)

    def shutdown_request(self, request: Any) -> None:
        self.let_go(request)
        super().shutdown_request(request)

    def handle_error(self, *_: Any) -> None:
        """Clients may go away."""

    def end_connections(self) -> None:
        for connection in tuple(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class Listener:
    """Listens on a port of 127.0.0.1; ``answer`` may be exchanged at any time."""

    def __init__(
        self,
        answer: Callable[[Heard], Reply] = agreeing,
        *,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.answer = answer
        self.has_clock = False
        self.heard: list[Heard] = []
        self._server = _Server(self, port, tls)
        self._serving = serving(self._server)
        self.origin = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.server_port}"

    def posts(self) -> list[Heard]:
        return [heard for heard in list(self.heard) if heard.method == "POST"]

    def wait(self, until: Callable[[], bool]) -> bool:
        wait_until(until)
        return True

    def __enter__(self) -> Self:
        self._serving.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._serving.__exit__(None, None, None)
        self._server.end_connections()
