"""HTTP request and answer over ASGI; request bodies are read within limits."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, final

from starlette.types import Receive, Scope, Send

from resourcesync.server.ranges import ByteRange

_LOG: Final = logging.getLogger(__name__)

Headers = tuple[tuple[bytes, bytes], ...]

CHUNK: Final = 256 * 1024
"""Bytes of a body that are passed to the server at a time."""
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
_SAFE: Final = (b"x-content-type-options", b"nosniff")
_NO_CACHE: Final = (b"cache-control", b"no-cache")
_CLOSE: Final = (b"connection", b"close")
_READ_FIELDS: Final = {
    name.encode(): name
    for name in (
        "accept-encoding",
        "content-length",
        "if-match",
        "if-modified-since",
        "if-none-match",
        "if-range",
        "if-unmodified-since",
        "last-event-id",
        "range",
        "transfer-encoding",
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """Request line and relevant header fields.

    Attributes:
        method: As written; methods are case-sensitive.
        raw_path: The path before any decoding, below the place where the application is mounted,
            without the query.
        query: The query, as it came; empty when there is none.
        fields: The header fields that matter to this package, by lower-case name; repeated ones are
            joined by commas.
    """

    method: str
    raw_path: bytes
    fields: Mapping[str, str]
    query: bytes = b""

    @classmethod
    def read(cls, scope: Scope, path: bytes) -> "HttpRequest":
        """Return the request of an ASGI ``http`` scope.

        Args:
            scope: The scope.
            path: Its raw path, as ``path_within`` says.
        """
        fields: dict[str, str] = {}
        for octets, value in scope["headers"]:
            name = _READ_FIELDS.get(octets)
            if name is not None:
                text = value.decode("latin-1")
                fields[name] = f"{fields[name]}, {text}" if name in fields else text
        return cls(
            method=scope["method"],
            raw_path=path or b"/",
            fields=fields,
            query=scope.get("query_string", b""),
        )

    @property
    def has_body(self) -> bool:
        """True if bytes follow the header: no request to this application has any."""
        length = self.fields.get("content-length", "0")
        return length.strip("0") != "" or "transfer-encoding" in self.fields


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """An answer with its bytes, or with spans of a file that follow.

    Attributes:
        status: The HTTP status.
        headers: All the fields but ``Date``.
        body: The bytes; empty when they come from the file.
        pieces: The rest of the body: spans of the file, and bytes between them.
    """

    status: int
    headers: Headers
    body: bytes = b""
    pieces: tuple[ByteRange | bytes, ...] = ()


def refuse(status: int, reason: str, *extra: tuple[bytes, bytes]) -> HttpReply:
    """Return a short answer in plain text with the reason of a refusal."""
    body = reason.encode() + b"\n"
    length = (b"content-length", str(len(body)).encode())
    return HttpReply(status=status, headers=(_TEXT, length, _NO_CACHE, _SAFE, *extra), body=body)


def refuse_request(request: HttpRequest) -> HttpReply | None:
    """Return the refusal of a request that does not only read, or ``None``."""
    closing = (_CLOSE,) if request.has_body else ()
    if request.method not in {"GET", "HEAD"}:
        return refuse(405, "Only GET and HEAD are allowed.", (b"allow", b"GET, HEAD"), *closing)
    if closing:
        return refuse(400, "A request body is not allowed.", *closing)
    return None


@final
class HttpExchange:
    """Sender of the answer to one request.

    Attributes:
        request: The request.
        has_started: True if a status was sent, so that no other can follow.
        status: That status; 0 before.
        sent: Number of bytes of the body that were sent.
    """

    __slots__ = ("_receive", "_send", "has_started", "request", "sent", "status")

    def __init__(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        self.request = request
        self.has_started = False
        self.status = self.sent = 0
        self._receive = receive
        self._send = send

    async def send(self, reply: HttpReply) -> None:
        """Send a whole answer; to HEAD without its bytes."""
        body = b"" if self.request.method == "HEAD" else reply.body
        await self.start(reply)
        start = 0
        # In chunks: unread bytes stay in memory, for possibly many clients.
        while len(body) - start > CHUNK:
            await self.send_chunk(body[start : start + CHUNK], more=True)
            start += CHUNK
        await self.send_chunk(body[start:] if start else body, more=False)

    async def start(self, reply: HttpReply) -> None:
        """Send status and fields; ``go_on`` sends the bytes."""
        # %r of bytes escapes characters that could forge a line or control a terminal.
        _LOG.debug("%r %r: %d", self.request.method, self.request.raw_path, reply.status)
        self.has_started = True
        self.status = reply.status
        await self._send(
            {"type": "http.response.start", "status": reply.status, "headers": list(reply.headers)}
        )

    async def send_chunk(self, chunk: bytes, *, more: bool) -> None:
        """Send the next bytes; return once the client has read most of the earlier ones."""
        self.sent += len(chunk)
        await self._send({"type": "http.response.body", "body": chunk, "more_body": more})

    @contextlib.asynccontextmanager
    async def watch_disconnect(self) -> AsyncIterator[asyncio.Task[None]]:
        """Yield a task that is done as soon as the client disconnects."""
        gone = asyncio.create_task(self._wait_for_disconnect())
        try:
            yield gone
        finally:
            gone.cancel()

    async def _wait_for_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


async def read_body(receive: Receive, *, most: int, seconds: float) -> bytes | HttpReply:
    """Return the body of a request, or the refusal of one that is too long or too slow.

    Args:
        receive: The receiver of ASGI.
        most: Most bytes.
        seconds: The time limit for all of it.
    """
    try:
        async with asyncio.timeout(seconds):
            return await _read(receive, most)
    except TimeoutError:
        return refuse(408, "The body did not come in time.", _CLOSE)


async def _read(receive: Receive, most: int) -> bytes | HttpReply:
    parts = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return refuse(400, "The body was cut short.", _CLOSE)
        parts += message.get("body", b"")
        if len(parts) > most:
            return refuse(413, f"At most {most} bytes.", _CLOSE)
        if not message.get("more_body", False):
            return bytes(parts)


def announces_too_long(scope: Scope, most: int) -> bool:
    """True if a request's Content-Length is above the limit."""
    return any(
        not value.isdigit() or int(value[:19]) > most
        for value in header_values(scope, b"content-length")
    )


def header_values(scope: Scope, name: bytes) -> list[str]:
    """Return the values of all fields of a name, which is in lower case."""
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return [value.decode("latin-1") for found, value in headers if found == name]
