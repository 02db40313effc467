"""Sends the head and the body of an answer in one piece."""

import asyncio
from typing import Any, Final, final

_SHORT: Final = 4 * 1024
"""Bytes of what may be a head."""
_LONG: Final = 64 * 1024
"""Bytes from which on copying costs more than a second call of the system."""


@final
class JoiningTransport:
    """A transport that holds a short piece back until the next one, or until the loop turns.

    uvicorn writes head and body one after the other, and asyncio sends each at once: two calls of
    the system and two packets for each small answer, where one does.

    Args:
        transport: What sends.
    """

    __slots__ = ("_buffered", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._buffered = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send a piece, soon."""
        if self._buffered:
            held, self._buffered = self._buffered, b""
            if len(data) <= _LONG:
                self._transport.write(held + data)
            else:
                self._transport.write(held)
                self._transport.write(data)
        elif len(data) <= _SHORT:
            self._buffered = data
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Send what is held, then close."""
        self._flush()
        self._transport.close()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes were not sent yet."""
        return self._transport.get_write_buffer_size() + len(self._buffered)

    def _flush(self) -> None:
        if self._buffered:
            held, self._buffered = self._buffered, b""
            self._transport.write(held)
