"""The answers of a Source at one time, and its server on a free port of this machine."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, Final, Self, final
from urllib.parse import unquote

import msgspec


class ScriptedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer of the Source.

    Attributes:
        body: Its content.
        status: Its HTTP status.
        location: The target of a redirect; empty for none.
        claimed: Content-Length, if it is not the length of the body.
        failures: How often 503 is answered before this answer.
        pause: Seconds in the middle of the body.
    """

    body: bytes = b""
    status: int = 200
    location: str = ""
    claimed: int | None = None
    failures: int = 0
    pause: float = 0.0


class ScriptedSite(msgspec.Struct, frozen=True):
    """All that the Source serves at one time.

    Attributes:
        answers: The answers by path, without the slash in front; others are 404.
    """

    answers: Mapping[str, ScriptedAnswer]

    def with_answers(self, answers: Mapping[str, ScriptedAnswer]) -> "ScriptedSite":
        """Return the site with other answers for some paths."""
        return ScriptedSite({**self.answers, **answers})


_NOT_FOUND: Final = ScriptedAnswer(status=404)


@final
class SiteServer:
    """Serves a site, which may change at any time.

    Attributes:
        base: The address of the Source.
    """

    def __init__(self) -> None:
        self._server = _ScriptedServer()
        self.base = f"http://127.0.0.1:{self._server.server_port}/"
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._server.stopped.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def serve(self, site: ScriptedSite) -> None:
        """Serve a site from now on."""
        self._server.serve_site(site)


class _ScriptedServer(ThreadingHTTPServer):
    """The server, with the site that it serves."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._lock = Lock()
        self._site = ScriptedSite({})
        self._failed: Counter[str] = Counter()
        self.stopped = Event()

    def serve_site(self, site: ScriptedSite) -> None:
        with self._lock:
            self._site = site
            self._failed.clear()

    def answer(self, path: str) -> ScriptedAnswer:
        """Return the answer to a request."""
        name = path.removeprefix("/")
        with self._lock:
            found = self._site.answers.get(name) or self._site.answers.get(unquote(name))
            if found is None:
                return _NOT_FOUND
            self._failed[name] += 1
            return ScriptedAnswer(status=503) if self._failed[name] <= found.failures else found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _ScriptedServer

    def do_GET(self) -> None:
        """ScriptedAnswer with a body."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """ScriptedAnswer without a body."""
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        found = self.server.answer(self.path)
        self.send_response(found.status)
        length = len(found.body) if found.claimed is None else found.claimed
        fields = {"Content-Length": str(length), "Content-Type": "application/octet-stream"}
        if found.location:
            fields["Location"] = found.location
        if found.status == 503:
            fields["Retry-After"] = "1"
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            with suppress(OSError):  # the client is gone
                self._send(found)
        if found.claimed is not None:
            self.close_connection = True

    def _send(self, found: ScriptedAnswer) -> None:
        middle = len(found.body) // 2
        self.wfile.write(found.body[:middle])
        if found.pause:
            self.wfile.flush()
            self.server.stopped.wait(found.pause)
        self.wfile.write(found.body[middle:])

    def log_message(self, *_arguments: Any) -> None:
        """Log nothing."""
