"""Limits for client connections, enforced before uvicorn's protocol, and joined writes.

uvicorn alone waits for ever for the first request of a connection, and for a client that reads no
bytes.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast, final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

_SHORT: Final = 4 * 1024
"""Largest size in bytes of a piece that may be a head."""
_LONG: Final = 64 * 1024
"""Size in bytes from which on copying costs more than a second system call."""


@final
class JoiningTransport:
    """Transport that delays a short piece until the next one, or the next turn of the loop.

    uvicorn writes head and body one after the other, and asyncio sends each at once: two calls of
    the system and two packets for each small answer, where one does.

    Args:
        transport: The transport that sends.
    """

    __slots__ = ("_buffered", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._buffered = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send a piece, possibly with the next one."""
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
        """Send the delayed piece, then close."""
        self._flush()
        self._transport.close()

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that were not sent yet."""
        return self._transport.get_write_buffer_size() + len(self._buffered)

    def _flush(self) -> None:
        if self._buffered:
            held, self._buffered = self._buffered, b""
            self._transport.write(held)


EXTRA_CONNECTIONS: Final = 50
"""Number of connections above the limit that are still answered, with 503."""

DROP: Final = "resourcesync.drop"
"""Key in ASGI's state of a function that drops a request's connection unanswered.

It is for servers that fail on purpose.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits for clients.

    Attributes:
        connections: From this many on, requests are answered 503; 50 more and connections are
            dropped unanswered. Each takes up to two file descriptors.
        client_timeout: Seconds until a client is dropped that sends no whole request or reads no
            bytes. It may take up to twice that.
        keep_alive: Seconds until an idle connection is closed.
        grace: Seconds for unfinished answers when the server stops.
        header_bytes: Most bytes of a request's header.
    """

    connections: int = 400
    client_timeout: float = 20.0
    keep_alive: int = 15
    grace: int = 10
    header_bytes: int = 32 * 1024


class GuardConfig(Protocol):
    """Settings of the connection guard, besides uvicorn's own.

    Attributes:
        limits: The limits for clients.
        exempt_port: The port whose connections are not counted.
    """

    limits: ConnectionLimits
    exempt_port: int | None


@final
class ConnectionGuard(asyncio.Protocol):
    """Protocol before uvicorn's that drops connections without progress."""

    def __init__(
        self,
        config: GuardConfig,
        server_state: Any,  # uvicorn's own, passed on
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        make = cast("Callable[..., Any]", AutoHTTPProtocol)
        state = {**app_state, DROP: self.drop}
        self._inner: Any = make(config=config, server_state=server_state, app_state=state)
        self._limits = config.limits
        self._exempt_port = config.exempt_port
        self._connections: set[object] = server_state.connections
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._unread = 0
        self._drains = 0
        self._cycle: object = None
        self._mark: tuple[str, object] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept a connection, unless there are far too many."""
        # Not asserted: the transports of other loops (uvloop) are of no such class.
        transport = cast("asyncio.Transport", transport)
        is_spared = transport.get_extra_info("sockname")[1] == self._exempt_port
        if is_spared:
            self._inner.limit_concurrency = None
        elif len(self._connections) >= self._limits.connections + EXTRA_CONNECTIONS:
            transport.abort()
            return
        self._transport = cast("asyncio.Transport", JoiningTransport(transport))
        self._inner.connection_made(self._transport)
        self._schedule_check()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release a connection."""
        if self._timer is not None:
            self._timer.cancel()
            self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on, but no endless header, and no endless body after the answer."""
        if self._transport is None:
            return
        cycle = self._inner.cycle
        if cycle is not self._cycle:
            self._cycle, self._unread = cycle, 0
        if cycle is None or cycle.response_complete:
            self._unread += len(data)
            if self._unread > 2 * self._limits.header_bytes:
                self._transport.abort()
                return
        self._inner.data_received(data)

    def drop(self) -> None:
        """Close the connection at once; what was not sent yet is lost."""
        if self._transport is not None:
            self._transport.abort()

    def eof_received(self) -> None:
        """Pass on that the client finished sending."""
        if self._transport is not None:
            self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass on that the client reads too slowly."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the client reads again."""
        self._drains += 1
        self._inner.resume_writing()

    def _schedule_check(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._limits.client_timeout, self._check_progress)

    def _check_progress(self) -> None:
        assert self._transport is not None
        mark = self._find_blocker()
        if mark is not None and mark == self._mark:
            self._transport.abort()
            return
        self._mark = mark
        self._schedule_check()

    def _find_blocker(self) -> tuple[str, object] | None:
        """Return what the connection waits for; the same result twice means no progress."""
        assert self._transport is not None
        if self._transport.is_closing():
            return "end", self._transport.get_write_buffer_size()
        if self._inner.flow.write_paused:
            return "client", self._drains
        cycle = self._inner.cycle
        if cycle is None or cycle.response_complete:
            return "request", cycle
        return None
