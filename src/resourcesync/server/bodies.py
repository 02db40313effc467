"""What a client sends: read whole, within limits."""

import asyncio
from collections.abc import Iterable
from typing import Final

from starlette.types import Receive, Scope

from resourcesync.server.exchange import HttpReply, refuse

_CLOSE: Final = (b"connection", b"close")


async def read_body(receive: Receive, *, most: int, seconds: float) -> bytes | HttpReply:
    """Return the body of a request, or the refusal of one that is too long or too slow.

    Args:
        receive: Where it comes from.
        most: Most bytes.
        seconds: How long all of it may take.
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
    """Whether a request says by itself that its body is longer than that."""
    return any(
        not value.isdigit() or int(value[:19]) > most
        for value in header_values(scope, b"content-length")
    )


def header_values(scope: Scope, name: bytes) -> list[str]:
    """Return the values of all fields of a name, which is in lower case."""
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return [value.decode("latin-1") for found, value in headers if found == name]
