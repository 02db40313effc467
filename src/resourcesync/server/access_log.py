"""Access log of the server: a line for each answer, in the combined format or as JSON.

A thread writes the lines, twice a second: no answer waits for a disk or a pipe. The file is opened
each time, so it may be moved away, as by logrotate. Lines that cannot be written are lost, and
their number is in the program's own log: serving goes on.
"""

import asyncio
import logging
import os
import re
import threading
from collections import deque
from pathlib import Path
from typing import Final, Self, final

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from resourcesync.errors import StorageError
from resourcesync.model.formatting import stamp
from resourcesync.ports import Clock

_LOG: Final = logging.getLogger(__name__)

_DELAY: Final = 0.5
_END_SECONDS: Final = 2.0
_MOST_BYTES: Final = 32 * 1024 * 1024
"""Bytes of lines that wait for a slow disk or pipe; more are lost."""
_FLAGS: Final = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_APPEND
    | os.O_NONBLOCK  # a pipe without a reader is a failure, not a wait
    | os.O_CLOEXEC
)
_MODE: Final = 0o640
"""Who may read the log: it has addresses of people."""
_STDOUT: Final = 1
_UNSAFE: Final = re.compile(r"[^ !#-\[\]-~]")
_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"
_UNANSWERED: Final = 500
_STOPPED: Final = 503


class _Exchange(msgspec.Struct):
    status: int = _UNANSWERED
    sent: int = 0


@final
class AccessLog:
    """ASGI application that logs the answers of another one; a context manager that ends the log.

    Characters that could forge a line or control a terminal are escaped, as nginx does.
    """

    def __init__(
        self, app: ASGIApp, path: Path | None, clock: Clock, *, is_json: bool = False
    ) -> None:
        self._app, self._path, self._clock = app, path, clock
        self._format = _json_line if is_json else _combined_line
        self._lines: deque[str] = deque()
        self._lost = 0
        # Each number is written by one thread only: the server's, and that of the log.
        self._added, self._removed = 0, 0
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="resourcesync-access", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._is_ending.set()
        self._thread.join(_END_SECONDS)  # a pipe may block it for ever

    def check(self) -> None:
        """Check that the log can be written."""
        try:
            os.close(self._open())
        except OSError as error:
            raise StorageError(
                f"cannot write the access log {self._path}: {error.strerror}",
                code="log",
                hint="name a file in a folder that exists and is writable",
            ) from error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as ASGI 3 requires."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
            elif message["type"] == "http.response.body":
                exchange.sent += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, counted)
        except asyncio.CancelledError:
            if exchange.status == _UNANSWERED:
                exchange.status = _STOPPED
            raise
        finally:
            self._add(self._format(scope, exchange, self._clock))

    def _add(self, line: str) -> None:
        if self._added - self._removed + len(line) > _MOST_BYTES:
            self._lost += 1
            return
        self._added += len(line)
        self._lines.append(line)

    def _run(self) -> None:
        while not self._is_ending.wait(_DELAY):
            self._write()
        self._write()

    def _write(self) -> None:
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        if not lines:
            return
        rest = memoryview("".join(lines).encode("ascii"))
        self._removed += len(rest)
        try:
            descriptor = self._open()
            try:
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            finally:
                os.close(descriptor)
        except OSError as error:
            if not self._lost:
                _LOG.warning("the access log cannot be written: %s", error.strerror)
            self._lost += bytes(rest).count(b"\n")
            return
        if self._lost:
            _LOG.warning("the access log is written again; %d lines of it are lost", self._lost)
            self._lost = 0

    def _open(self) -> int:
        if self._path is None:
            return os.dup(_STDOUT)
        return os.open(self._path, _FLAGS, _MODE)


def _combined_line(scope: Scope, exchange: _Exchange, clock: Clock) -> str:
    now, fields = clock.now(), _fields_of(scope)
    moment = f"{now:%d}/{_MONTHS[3 * now.month - 3 : 3 * now.month]}/{now:%Y:%H:%M:%S} +0000"
    request = f"{_escape(scope['method'])} {_target(scope)} HTTP/{scope['http_version']}"
    return (
        f'{_client(scope)} - - [{moment}] "{request}" {exchange.status} {exchange.sent}'
        f' "{fields.get(b"referer", "-")}" "{fields.get(b"user-agent", "-")}"\n'
    )


def _json_line(scope: Scope, exchange: _Exchange, clock: Clock) -> str:
    now, fields = clock.now(), _fields_of(scope)
    values = {
        "time": stamp(now),
        "client": _client(scope),
        "method": _escape(scope["method"]),
        "target": _target(scope),
        "protocol": f"HTTP/{scope['http_version']}",
        "status": exchange.status,
        "bytes": exchange.sent,
        "referer": fields.get(b"referer", ""),
        "user_agent": fields.get(b"user-agent", ""),
    }
    return msgspec.json.encode(values).decode() + "\n"


def _fields_of(scope: Scope) -> dict[bytes, str]:
    return {
        name: _escape(value.decode("latin-1"))
        for name, value in scope["headers"]
        if name in {b"referer", b"user-agent"}
    }


def _client(scope: Scope) -> str:
    client = scope.get("client")
    return _escape(client[0]) if client else "-"


def _target(scope: Scope) -> str:
    query = scope.get("query_string", b"")
    target = scope["raw_path"] + (b"?" + query if query else b"")
    return _escape(target.decode("latin-1"))


def _escape(text: str) -> str:
    if _UNSAFE.search(text) is None:
        return text
    return _UNSAFE.sub(lambda found: f"\\x{ord(found[0]):02X}", text)
