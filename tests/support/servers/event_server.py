"""A server of events on loopback: a log that is told by Server-Sent Events, with every quirk."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

from tests.support.servers.listening import serving

_LOOK: Final = 0.02


@dataclass
class Manners:
    """How the server behaves; may be changed at any time."""

    # statuses that are answered first, one for each connection
    statuses: list[int] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)  # fields of each answer
    kind: str = "text/event-stream; charset=utf-8"
    cut_after: int = 0  # events after which a connection breaks off, in the middle of an event
    end_after: int = 0  # events after which it ends in good order
    ends: bool = False  # whether it ends when all is told
    keep_alive: float = 0.0  # seconds after which a comment is sent; 0 sends none
    prelude: bytes = b":ok\n\n"  # what is sent first
    line_end: bytes = b"\n"  # what ends a line
    oldest: int = 0  # the number of the oldest event that is kept


class EventServer:
    """Tells the events of a log, to each who comes from the one on that it had last."""

    def __init__(self) -> None:
        self.manners = Manners()
        self.asked: list[dict[str, str]] = []
        """The fields of each request, and its query."""
        self._log: list[tuple[str, bytes]] = []
        self._ids: Callable[[int], str] = str
        self._changed = threading.Condition()
        self._stops = False
        self._listening = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._serving = serving(self._http)

    def __enter__(self) -> Self:
        self._serving.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        with self._changed:
            self._stops = True
            self._changed.notify_all()
        self._serving.__exit__(None, None, None)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/stream"

    @property
    def told(self) -> int:
        return len(self._log)

    def named(self, ids: Callable[[int], str]) -> None:
        self._ids = ids

    def tell(self, data: bytes, kind: str = "message") -> None:
        with self._changed:
            self._log.append((kind, data))
            self._changed.notify_all()

    def tell_next(self, data: bytes) -> None:
        def wait() -> None:
            with self._changed:
                self._changed.wait_for(lambda: self._listening > before, 15)
            self.tell(data)

        before = self._listening
        threading.Thread(target=wait, daemon=True).start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        manners = self.manners
        query = {key: item[0] for key, item in parse_qs(urlsplit(handler.path).query).items()}
        self.asked.append({**{k.lower(): v for k, v in handler.headers.items()}, **query})
        handler.close_connection = True
        if manners.statuses:
            handler.send_response(manners.statuses.pop(0))
            for name, value in manners.fields.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        handler.send_response(200)
        handler.send_header("Content-Type", manners.kind)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        try:
            self._stream(handler, manners)
        except (BrokenPipeError, ConnectionResetError):
            return

    def _stream(self, handler: BaseHTTPRequestHandler, manners: Manners) -> None:
        def send(data: bytes) -> None:
            if data:  # no bytes are the end of the body
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

        send(manners.prelude)
        with self._changed:
            number = self._first(handler)
            self._listening += 1
            self._changed.notify_all()
        number = max(number, manners.oldest)
        sent = 0
        while not self._stops:
            with self._changed:
                if number >= len(self._log):
                    if manners.ends:
                        break
                    if not self._changed.wait(manners.keep_alive or _LOOK) and manners.keep_alive:
                        send(b":\n\n")
                    continue
            event = self._written(number)
            number, sent = number + 1, sent + 1
            if manners.cut_after and sent > manners.cut_after:
                send(event[: len(event) // 2])
                handler.wfile.flush()
                return  # without the end of the body
            send(event)
            if manners.end_after and sent >= manners.end_after:
                break
        handler.wfile.write(b"0\r\n\r\n")

    def _first(self, handler: BaseHTTPRequestHandler) -> int:
        last = handler.headers.get("Last-Event-ID", "")
        known = {self._ids(number): number for number in range(len(self._log))}
        if last in known:
            return known[last] + 1
        return 0 if last or "since" in handler.path else len(self._log)

    def _written(self, number: int) -> bytes:
        kind, data = self._log[number]
        lines = [b"event: " + kind.encode()]
        lines += [b"id: " + self._ids(number).encode()] if self._ids(number) else []
        lines += [b"data: " + chunk for chunk in data.split(b"\n")]
        return self.manners.line_end.join([*lines, b"", b""])
