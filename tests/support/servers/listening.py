"""Plain HTTP on loopback: a receiver of deliveries, a host of static files, a client."""

import contextlib
import functools
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit


@contextlib.contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[str]:
    """Let a server of the standard library serve while the block runs; yield its origin."""
    options = {"poll_interval": 0.02}
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
    """Serve what is in a folder, as a host of static files does; yield the origin."""
    handler = functools.partial(_Static, directory=str(folder))
    with serving(ThreadingHTTPServer(("127.0.0.1", port), handler)) as origin:
        yield origin


class Got(NamedTuple):
    """An answer, with its fields by their names in lower case."""

    status: int
    body: bytes
    fields: dict[str, str]


def get(origin: str, target: str, **fields: str) -> Got:
    """Ask for a target just as it is written; ``_`` in the names of fields stands for ``-``."""
    asked = {name.replace("_", "-"): value for name, value in fields.items()}
    with contextlib.closing(HTTPConnection(urlsplit(origin).netloc)) as connection:
        connection.request("GET", target, headers=asked)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Got(answer.status, answer.read(), found)


@dataclass(frozen=True)
class Heard:
    method: str
    target: str
    body: bytes
    fields: dict[str, str] = field(default_factory=dict)
    at: float = 0.0

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))


Reply = tuple[int, bytes] | tuple[int, bytes, dict[str, str]]


def agreeing(heard: Heard) -> Reply:
    """Repeat every challenge, and take every delivery."""
    if heard.method == "GET":
        return 200, heard.query.get("hub.challenge", "").encode()
    return 204, b""


class Listener:
    """Listens on a free port of 127.0.0.1; ``answer`` may be exchanged at any time."""

    def __init__(self, answer: Callable[[Heard], Reply] = agreeing) -> None:
        self.answer = answer
        self.heard: list[Heard] = []
        self._changed = threading.Condition()
        listener = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else a body follows its header 40 ms later

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                fields = {name.lower(): value for name, value in self.headers.items()}
                heard = Heard(self.command, self.path, body, fields, time.monotonic())
                listener.hear(heard)
                status, said, *more = listener.answer(heard)
                self.send_response(status)
                for name, value in (more[0] if more else {}).items():
                    self.send_header(name, value)
                if status != 204:
                    self.send_header("content-length", str(len(said)))
                self.end_headers()
                if status != 204:
                    self.wfile.write(said)

            do_POST = do_GET  # noqa: N815 - the base's name

            def log_message(self, *_: Any) -> None:
                """Stay quiet."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 1024

            def handle_error(self, *_: Any) -> None:
                """Clients may go away."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._serving = serving(self._server)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def hear(self, heard: Heard) -> None:
        with self._changed:
            self.heard.append(heard)
            self._changed.notify_all()

    def posts(self, path: str = "") -> list[Heard]:
        with self._changed:
            return [
                heard
                for heard in self.heard
                if heard.method == "POST" and heard.path.startswith(path)
            ]

    def wait(self, until: Callable[[], bool], seconds: float = 10.0) -> bool:
        """Wait until something is so; it is looked at whenever a request comes."""
        end = time.monotonic() + seconds
        with self._changed:
            while not until():
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(0.05, left))
        return True

    def __enter__(self) -> Self:
        self._serving.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._serving.__exit__(None, None, None)
