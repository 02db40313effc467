"""Access log of the server: a line for each answer, in the combined format or as JSON.

A thread writes the lines, some at a time: no answer waits for a disk or a pipe. Lines that cannot
be written are lost, and their number is in the program's own log: serving goes on.
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
from resourcesync.ports import Clock

_LOG: Final = logging.getLogger(__name__)

_DELAY: Final = 0.5
"""Seconds for which lines are collected before they are written."""
_END_SECONDS: Final = 2.0
_MOST_LINES: Final = 50_000
"""Lines that wait for a slow disk or pipe; more are lost."""
_MOST_BYTES: Final = 32 * 1024 * 1024
"""Bytes of these lines: a client decides how long its fields are."""
_FLAGS: Final = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_APPEND
    | getattr(os, "O_NONBLOCK", 0)  # a pipe without a reader is a failure, not a wait
    | getattr(os, "O_CLOEXEC", 0)
)
_MODE: Final = 0o640
"""Who may read the log: it has addresses of people."""
_STDOUT: Final = 1
_UNSAFE: Final = re.compile(r"[^ !#-\[\]-~]")
_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"
_UNANSWERED: Final = 500
_STOPPED: Final = 503


class _Exchange(msgspec.Struct):
    """A request with what was sent so far."""

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
        self._descriptor: int | None = None
        self._is_outdated = False
        self._has_lines, self._is_ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="resourcesync-access", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._is_ending.set()
        self._has_lines.set()
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

    def reopen(self) -> None:
        """Open the file again before the next line, since it was moved away; for signals too."""
        # Only a flag: a signal may interrupt this very thread inside a lock.
        self._is_outdated = True

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
        waiting = self._added - self._removed + len(line)
        if len(self._lines) >= _MOST_LINES or waiting > _MOST_BYTES:
            self._lost += 1
            return
        self._added += len(line)
        self._lines.append(line)
        if not self._has_lines.is_set():
            self._has_lines.set()

    def _run(self) -> None:
        while not self._is_ending.is_set() or self._lines:
            self._has_lines.wait()
            self._is_ending.wait(_DELAY)
            self._has_lines.clear()
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            if lines:
                self._write(lines)
                self._removed += sum(map(len, lines))
        self._close()

    def _write(self, lines: list[str]) -> None:
        """Write lines; those that cannot be written are lost, and counted."""
        if self._is_outdated:
            self._is_outdated = False
            self._close()
        rest = memoryview("".join(lines).encode("ascii"))
        try:
            if self._descriptor is None:
                self._descriptor = self._open()
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            lost = bytes(rest).count(b"\n")
            if not self._lost:
                _LOG.warning("the access log cannot be written: %s", error.strerror)
            self._lost += lost
            self._close()
            return
        if self._lost:
            _LOG.warning("the access log is written again; %d lines of it are lost", self._lost)
            self._lost = 0

    def _open(self) -> int:
        if self._path is None:
            return os.dup(_STDOUT)
        return os.open(self._path, _FLAGS, _MODE)

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _combined_line(scope: Scope, exchange: _Exchange, clock: Clock) -> str:
    """Return a line in the combined format of Apache and nginx, in UTC."""
    now, fields = clock.now(), _fields_of(scope)
    moment = f"{now:%d}/{_MONTHS[3 * now.month - 3 : 3 * now.month]}/{now:%Y:%H:%M:%S} +0000"
    request = f"{_escape(scope['method'])} {_target(scope)} HTTP/{scope['http_version']}"
    return (
        f'{_client(scope)} - - [{moment}] "{request}" {exchange.status} {exchange.sent}'
        f' "{fields.get(b"referer", "-")}" "{fields.get(b"user-agent", "-")}"\n'
    )


def _json_line(scope: Scope, exchange: _Exchange, clock: Clock) -> str:
    """Return a JSON object; its texts are escaped like those of the combined format."""
    now, fields = clock.now(), _fields_of(scope)
    values = {
        "time": f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03}Z",
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
