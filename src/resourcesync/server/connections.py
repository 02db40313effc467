"""Sends the head and the body of an answer in one piece.

Stands before uvicorn's protocol: what clients may take of the server, connection by connection.

uvicorn alone waits for ever for the first request of a connection, and for a client that takes no
bytes.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast, final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

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


EXTRA_CONNECTIONS: Final = 50
"""Connections that are still answered, with 503, beyond those that may be."""

DROP: Final = "resourcesync.drop"
"""The key in ASGI's state of what drops the connection of a request, unanswered.

For servers that are to fail on purpose.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What clients may take of the server.

    Attributes:
        connections: From this many on, requests are answered 503; 50 more and connections are
            dropped unanswered. Each takes up to two file descriptors.
        patience: Seconds until a client is dropped that sends no whole request, or takes no bytes.
            It may take up to twice that.
        keep_alive: Seconds an idle connection is kept for the next request.
        grace: Seconds that answers on their way are given at the end.
        header_bytes: Most bytes of a request's header.
    """

    connections: int = 400
    client_timeout: float = 20.0
    keep_alive: int = 15
    grace: int = 10
    header_bytes: int = 32 * 1024


class GuardConfig(Protocol):
    """What is asked of uvicorn's settings, beside what uvicorn asks.

    Attributes:
        limits: What clients may take.
        spared: The port whose connections are not counted.
    """

    limits: ConnectionLimits
    exempt_port: int | None


@final
class ConnectionGuard(asyncio.Protocol):
    """Stands before uvicorn's protocol and drops connections that get nowhere."""

    def __init__(
        self,
        config: GuardConfig,
        server_state: Any,  # uvicorn's own, handed through
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
        """Take a connection, unless there are far too many."""
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
        """Let a connection go."""
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
        """Pass the end of the client's sending on."""
        if self._transport is not None:
            self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass on that the client takes bytes too slowly."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the client took bytes."""
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
        """Return what the connection waits for; the same twice is no progress."""
        assert self._transport is not None
        if self._transport.is_closing():
            return "end", self._transport.get_write_buffer_size()
        if self._inner.flow.write_paused:
            return "client", self._drains
        cycle = self._inner.cycle
        if cycle is None or cycle.response_complete:
            return "request", cycle
        return None
