"""Parts of all applications: reading requests, refusals, bodies within limits, mounts.

``root_path`` is what ASGI calls the path below which an application was mounted; ``path`` and
``raw_path`` begin with it, as Starlette, FastAPI and uvicorn have it.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Final, final
from urllib.parse import quote, unquote_to_bytes

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from resourcesync.server.caching import NO_CACHE
from resourcesync.server.files import without_authority

_LOG: Final = logging.getLogger(__name__)

NOSNIFF: Final = {"x-content-type-options": "nosniff"}
CLOSE: Final = {"connection": "close"}

CHUNK: Final = 256 * 1024
"""Bytes of a body that are passed to the server at a time."""

_WHOLE: Final = 2 * CHUNK
"""Most bytes of a body in memory that are passed at once, without a copy of each chunk."""

Headers = tuple[tuple[bytes, bytes], ...]


def raw_headers(*fields: Mapping[str, str]) -> Headers:
    """Return header fields as ASGI has them."""
    return tuple(
        (name.encode("ascii"), text.encode("latin-1"))
        for more in fields
        for name, text in more.items()
    )


@final
class ChunkedResponse(Response):
    """A response that is sent in chunks, until the client has gone.

    Unread bytes stay in memory, for possibly many clients. Starlette's ``StreamingResponse`` starts
    a group of tasks each time: it takes 150 µs more, where a small answer takes 30, and 8 KiB.
    ``span`` is the bytes of the file that it has; ``None`` for none, or for an unknown number.
    """

    def __init__(
        self,
        status: int,
        headers: Headers,
        span: range | None = None,
        chunks: AsyncIterator[bytes] | None = None,
    ) -> None:
        # Starlette's own would decode and encode all the fields: 5 µs.
        self.status_code = status
        self.raw_headers = list(headers)
        self.span = span
        self.chunks = chunks
        self.sent = 0
        self._whole = b""

    def fill(self, body: bytes) -> None:
        """Set the bytes of the span, or the first of them."""
        self._whole = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        del scope
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        if self.chunks is not None:
            await self._stream(self.chunks, receive, send)
            return
        body = self._whole
        if len(body) <= _WHOLE:
            await send({"type": "http.response.body", "body": body})
            self.sent = len(body)
            return
        for start in range(0, len(body), CHUNK):
            await self._send_chunk(
                send, body[start : start + CHUNK], more=start + CHUNK < len(body)
            )

    async def _stream(self, chunks: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
        # Below 0 where the length is unknown: the last, empty chunk ends it.
        left = (0 if self.span is None else len(self.span)) - len(self._whole)
        more = True
        limit = asyncio.timeout(None)
        gone = asyncio.create_task(_end_at_disconnect(limit, receive))
        try:
            async with limit:
                if self._whole:
                    more = left != 0
                    await self._send_chunk(send, self._whole, more=more)
                async for chunk in chunks:
                    left -= len(chunk)
                    more = left != 0
                    await self._send_chunk(send, chunk, more=more)
                if more:
                    await self._send_chunk(send, b"", more=False)
        except TimeoutError:
            if not gone.done():
                raise
        finally:
            gone.cancel()

    async def _send_chunk(self, send: Send, body: bytes, *, more: bool) -> None:
        await send({"type": "http.response.body", "body": body, "more_body": more})
        self.sent += len(body)


async def _end_at_disconnect(limit: asyncio.Timeout, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    limit.reschedule(0)


@final
class HttpRequest:
    """A request that only reads, with its path as it came, and its repeated fields joined.

    Starlette's ``Request`` is for requests with a body. Names of ``fields`` are in lower case (RFC
    9110 §5.3); ``raw_path`` is not decoded.
    """

    __slots__ = ("_ends", "fields", "is_head", "raw_path", "scope")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.raw_path = path_within(scope)
        self.is_head: bool = scope["method"] == "HEAD"
        headers = scope["headers"]
        self.fields = {name.decode("latin-1"): text.decode("latin-1") for name, text in headers}
        if len(self.fields) != len(headers):
            self.fields = _joined_fields(headers)
        self._ends: list[Callable[[], object]] = []

    def at_end(self, end: Callable[[], object]) -> None:
        """Call a function once the response was sent, or the client has gone."""
        self._ends.append(end)

    def end(self) -> None:
        """Call the functions, the last one first."""
        while self._ends:
            self._ends.pop()()

    @property
    def query(self) -> bytes:
        """Return the query, as it came; empty when there is none."""
        query: bytes = self.scope.get("query_string", b"")
        return query

    @property
    def has_body(self) -> bool:
        """True if bytes follow the header: no request to a reading application has any."""
        return self.fields.get("content-length", "").strip("0") != "" or (
            "transfer-encoding" in self.fields
        )


def _joined_fields(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for octets, value in headers:
        name, text = octets.decode("latin-1"), value.decode("latin-1")
        fields[name] = f"{fields[name]}, {text}" if name in fields else text
    return fields


Responder = Callable[[HttpRequest], Awaitable[Response]]
"""Function that returns the response to a request."""


ResponseCounter = Callable[[int, int], None]
"""Receives the status of each response, and the bytes of its body that were sent."""


async def answer_any(
    respond: Callable[[Request], Awaitable[Response]], scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer an ``http`` request of any method, also with the refusal that is raised."""
    if scope["type"] != "http":
        return
    try:
        response = await respond(Request(scope, receive, send))
    except HTTPException as refusal:
        response = refuse(refusal.status_code, refusal.detail, refusal.headers or {})
    await response(scope, receive, send)


async def answer(
    respond: Responder,
    scope: Scope,
    receive: Receive,
    send: Send,
    count: ResponseCounter = lambda _status, _sent: None,
) -> None:
    """Answer an ``http`` request that only reads; one that does not is refused.

    A HEAD gets the fields of the response and no bytes: its stream is not started.
    """
    request = HttpRequest(scope)
    response: Response | None = None
    try:
        response = _refuse_request(request) or await respond(request)
        # %r of bytes escapes characters that could forge a line or control a terminal.
        _LOG.debug("%r %r: %d", scope["method"], request.raw_path, response.status_code)
        if request.is_head:
            response = ChunkedResponse(response.status_code, tuple(response.raw_headers))
        await response(scope, receive, send)
    finally:
        request.end()
        if response is None:
            count(0, 0)
        elif isinstance(response, ChunkedResponse):
            count(response.status_code, response.sent)
        else:
            count(response.status_code, len(response.body))


def refuse(status: int, reason: str, *fields: Mapping[str, str]) -> Response:
    """Return a short response in plain text with the reason of a refusal."""
    headers = {**NO_CACHE, **NOSNIFF}
    for more in fields:
        headers.update(more)
    return PlainTextResponse(reason + "\n", status, headers)


def _refuse_request(request: HttpRequest) -> Response | None:
    closing = CLOSE if request.has_body else {}
    if request.scope["method"] not in {"GET", "HEAD"}:
        return refuse(405, "Only GET and HEAD are allowed.", {"allow": "GET, HEAD"}, closing)
    return refuse(400, "A request body is not allowed.", closing) if closing else None


async def read_body(request: Request, *, most: int, seconds: float) -> bytes:
    """Return the body of a request."""
    too_long = HTTPException(413, f"At most {most} bytes.", CLOSE)
    announced = request.headers.get("content-length", "0")
    if not announced.isdigit() or int(announced[:19]) > most:
        raise too_long
    parts = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                parts += part
                if len(parts) > most:
                    raise too_long
    except TimeoutError:
        raise HTTPException(408, "The body did not come in time.", CLOSE) from None
    except ClientDisconnect:
        raise HTTPException(400, "The body was cut short.", CLOSE) from None
    return bytes(parts)


def path_within(scope: Scope) -> bytes:
    """Return the raw path of a request below the place where the application is mounted.

    It begins with a slash, or is empty when the request names that very place. A path that does not
    begin with ``root_path`` is returned as it is: some servers remove it themselves.
    """
    raw = scope.get("raw_path")
    if raw is None:
        # An old ASGI server: it provides only the decoded path.
        raw = quote(scope["path"], safe="/").encode()
    root = scope.get("root_path", "")
    path = raw if raw.startswith(b"/") else without_authority(raw)
    return path if root in {"", "/"} else _cut(path, _names(root))


def _cut(path: bytes, names: tuple[bytes, ...]) -> bytes:
    parts = path.split(b"/", len(names) + 1)
    if tuple(map(unquote_to_bytes, parts[1 : len(names) + 1])) != names:
        return path
    return b"/" + parts[-1] if len(parts) > len(names) + 1 else b""


def _names(path: str) -> tuple[bytes, ...]:
    return tuple(path.strip("/").encode("utf-8", "surrogateescape").split(b"/"))


@final
class MountedApplications:
    """Further applications, each below a path of its own, which is theirs too.

    Starlette's ``Mount`` does not answer at that very path.
    """

    def __init__(self, applications: Mapping[str, ASGIApp]) -> None:
        self._applications = {_names(path): found for path, found in applications.items()}

    def find(self, scope: Scope) -> tuple[ASGIApp, Scope] | None:
        """Return the application that a request is for, and the scope for it."""
        if not self._applications:
            return None
        parts = tuple(map(unquote_to_bytes, path_within(scope).split(b"/")[1:]))
        for names, application in self._applications.items():
            if parts[: len(names)] == names:
                prefix = os.fsdecode(b"/".join((b"", *names)))
                root = scope.get("root_path", "").rstrip("/") + prefix
                return application, {**scope, "root_path": root}
        return None
