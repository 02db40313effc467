"""Asks an ASGI application in process, without a server."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Scope

CANARY = b"nobody may ever see this"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    fields: Mapping[str, str]
    body: bytes
    error: BaseException | None = None
    chunks: int = 0
    names: tuple[str, ...] = field(default=())


def ask(
    app: ASGIApp,
    path: str | bytes,
    *,
    method: str = "GET",
    fields: Mapping[str, str] | None = None,
    on_chunk: Callable[[int], None] | None = None,
    gone_after: int | None = None,
    root_path: str = "",
) -> Answer:
    raw = path.encode("ascii") if isinstance(path, str) else path
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "raw_path": raw,
        "path": unquote_to_bytes(raw).decode("utf-8", "replace"),
        "root_path": root_path,
        "query_string": b"",
        "headers": [
            (name.lower().encode(), value.encode("latin-1"))
            for name, value in (fields or {"host": "localhost"}).items()
        ],
    }
    return asyncio.run(_ask(app, scope, on_chunk, gone_after))


async def _ask(
    app: ASGIApp, scope: Scope, on_chunk: Callable[[int], None] | None, gone_after: int | None
) -> Answer:
    messages: list[Message] = []
    gone = asyncio.Event()
    requests = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Message:
        for message in requests:
            return message
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        messages.append(message)
        pieces = len(messages) - 1
        if pieces and on_chunk is not None:
            on_chunk(pieces)
        if gone_after is not None and pieces >= gone_after:
            gone.set()
        await asyncio.sleep(0)

    error: BaseException | None = None
    try:
        await asyncio.wait_for(app(scope, receive, send), timeout=20)
    except Exception as raised:  # noqa: BLE001 - a server, too, must survive its application
        error = raised
    return _gather(messages, error)


def _gather(messages: list[Message], error: BaseException | None) -> Answer:
    if not messages:
        return Answer(status=0, fields={}, body=b"", error=error)
    start, *pieces = messages
    assert start["type"] == "http.response.start"
    assert all(piece["type"] == "http.response.body" for piece in pieces)
    names = tuple(name.decode() for name, _ in start["headers"])
    return Answer(
        status=start["status"],
        fields={name.decode(): value.decode("latin-1") for name, value in start["headers"]},
        body=b"".join(piece.get("body", b"") for piece in pieces),
        error=error,
        chunks=len(pieces),
        names=names,
    )
