"""A Source on loopback that serves exactly what a test says and records what it was asked."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from xml.sax.saxutils import escape

from tests.support.documents.written import facts, written

STAMP = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    method: str
    target: str
    headers: Mapping[str, str]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, source: "TinySource") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.source = source


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.source.connections.add(self.connection)

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()
        self.server.source.connections.discard(self.connection)

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            super().handle()

    def do_GET(self) -> None:
        source = self.server.source
        asked = Asked(self.command, self.path, dict(self.headers.items()))
        source.asked.append(asked)
        answer = source.answers.get(self.path)
        if answer is None and source.respond is not None:
            answer = source.respond(asked)
        if answer is None:
            answer = Answer(status=HTTPStatus.NOT_FOUND, body=b"not here\n")
        # Without a ``Date`` it has no clock, and its lists are of any time.
        self.send_response_only(answer.status)
        if source.has_clock:
            self.send_header("Date", self.date_time_string())
        headers = {"Content-Length": str(len(answer.body)), **answer.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(answer.body)

    do_HEAD = do_GET  # noqa: N815 - the base's name

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing; ``asked`` has it all."""


class TinySource:
    """A server on loopback: ``answers`` maps request targets to answers, ``asked`` is the log.

    Both may be changed while it runs, as may ``has_clock``: then answers have a ``Date``. What is
    not in ``answers`` is asked of ``respond``, and is a 404 if that has no answer either.
    """

    def __init__(self, respond: Callable[[Asked], Answer | None] | None = None) -> None:
        self.answers: dict[str, Answer] = {}
        self.respond = respond
        self.has_clock = False
        self.asked: list[Asked] = []
        self.connections: set[socket.socket] = set()
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        for connection in tuple(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @property
    def url(self) -> str:
        """The address, without a slash at the end."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def put(self, target: str, body: bytes, media_type: str = "application/octet-stream") -> None:
        """Answer ``target`` with this body from now on."""
        self.answers[target] = Answer(body=body, headers={"Content-Type": media_type})

    def offer(self, resources: Mapping[str, bytes], *, at: str = STAMP) -> None:
        """Serve the resources and the documents that describe them, all true."""
        for target, body in resources.items():
            self.put(target, body)
        entries = [self.entry(target, body) for target, body in resources.items()]
        self.offer_entries(entries, at=at)

    def offer_entries(self, entries: list[str], *, at: str = STAMP) -> None:
        """Serve the description, Capability List and a Resource List of these entries."""
        self.put_document(
            "/.well-known/resourcesync",
            '<rs:md capability="description"/>',
            [self.pointer("/capabilitylist.xml", "capabilitylist")],
        )
        self.put_document(
            "/capabilitylist.xml",
            '<rs:md capability="capabilitylist"/>',
            [self.pointer("/resourcelist.xml", "resourcelist")],
        )
        self.put_document(
            "/resourcelist.xml", f'<rs:md capability="resourcelist" at="{at}"/>', entries
        )

    def put_document(self, target: str, head: str, entries: list[str]) -> None:
        lines = (f"\n{entry}" for entry in entries)
        self.put(target, written(f"\n{head}", lines).encode(), "application/xml")

    def pointer(self, target: str, capability: str) -> str:
        """Return an entry that points to another document."""
        return f'<url><loc>{self.url}{target}</loc><rs:md capability="{capability}"/></url>'

    def entry(self, target: str, body: bytes, *, uri: str = "", lastmod: str = STAMP) -> str:
        """Return the true entry of a resource; ``uri`` overrides its address."""
        where = escape(uri or self.url + target)
        md = f"<rs:md{facts(body)}/>"
        return f"<url><loc>{where}</loc><lastmod>{lastmod}</lastmod>{md}</url>"


@contextlib.contextmanager
def dead_address() -> Iterator[str]:
    """Give a loopback address at which nobody listens, reserved while the block runs."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"
