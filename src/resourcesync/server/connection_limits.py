"""Limits for clients: silent or slow ones, endless headers and bodies, and too many connections.

No client address may hold more connections than its share. An IPv6 client has a whole /64 network,
so that counts as one address.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from ipaddress import IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final, cast, final

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from resourcesync.server.asgi import refuse

_NETWORK_BITS: Final = 64
EXTRA_CONNECTIONS: Final = 50
"""Number of connections above the limit that are still answered, with 503."""

DROP: Final = "resourcesync.drop"
"""Key in ASGI's state of a function that drops a request's connection unanswered.

It is for servers that fail on purpose.
"""


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for clients.

    From so many ``connections`` on, the one that is idle longest makes room for a new one. If none
    is idle, requests are answered 503; 50 more and connections are dropped unanswered. Each takes
    up to two file descriptors. ``share`` is the same for one client address: if none is idle, the
    new one is dropped. ``proxies`` in front may hold any number: ``X-Forwarded-For`` tells their
    clients.
    """

    connections: int = 400
    share: int = 100
    proxies: tuple[str, ...] = ()
    client_timeout: float = 20.0  # seconds, or up to twice that, to send a request or to read
    keep_alive: int = 15  # seconds
    grace: int = 10  # seconds for unfinished answers when the server stops
    header_bytes: int = 32 * 1024


@final
class ConnectionGuard(asyncio.Protocol):
    """Protocol before uvicorn's that drops connections without progress."""

    def __init__(
        self,
        config: Any,  # uvicorn's own, with our limits
        server_state: Any,  # uvicorn's own, passed on
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        make = cast("Callable[..., Any]", AutoHTTPProtocol)
        state = {**app_state, DROP: self.drop}
        self._inner: Any = make(config=config, server_state=server_state, app_state=state)
        self._limits: ConnectionLimits = config.limits
        self._shares: ConnectionShares = config.shares
        self._connections: set[object] = server_state.connections
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._unread = 0
        self._drains = 0
        self._cycle: object = None
        self._mark: tuple[str, object] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept a connection, unless there are far too many, or its client has its share."""
        # Not asserted: the transports of other loops (uvloop) are of no such class.
        transport = cast("asyncio.Transport", transport)
        host = str((transport.get_extra_info("peername") or ("",))[0])
        is_full = len(self._connections) >= self._limits.connections + EXTRA_CONNECTIONS
        if is_full or not self._shares.admit(self, host):
            transport.abort()
            return
        self._transport = transport
        self._inner.connection_made(self._transport)
        self._schedule_check()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release a connection."""
        self._shares.release(self)
        if self._timer is not None:
            self._timer.cancel()
            self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on, but no endless header, and no endless body after the answer."""
        if self._transport is None:
            return
        self._note_request()
        if self._awaits_request():
            self._unread += len(data)
            if self._unread > 2 * self._limits.header_bytes:
                self._transport.abort()
                return
        self._inner.data_received(data)
        self._note_request()

    def _note_request(self) -> None:
        if self._inner.cycle is not self._cycle:
            self._cycle, self._unread = self._inner.cycle, 0
            self._shares.note_request(self)

    def _awaits_request(self) -> bool:
        return self._inner.cycle is None or bool(self._inner.cycle.response_complete)

    def is_idle(self) -> bool:
        """Return whether no answer is under way; of a request that is not whole there is none."""
        assert self._transport is not None
        return self._awaits_request() and not self._transport.get_write_buffer_size()

    def give_up(self) -> None:
        """Close the connection at once; uvicorn counts it no longer either."""
        self._connections.discard(self._inner)
        self.drop()

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
        assert self._transport is not None
        if self._transport.is_closing():
            return "end", self._transport.get_write_buffer_size()
        if self._inner.flow.write_paused:
            return "client", self._drains
        return ("request", self._inner.cycle) if self._awaits_request() else None


class ConnectionShares:
    """The connections of each client; the one that is idle longest makes room for a new one."""

    def __init__(self, most: int, share: int, proxies: Iterable[str] = ()) -> None:
        self._most, self._share = most, share
        self._proxies = [ip_network(proxy) for proxy in proxies]
        # Both in the order of the last requests.
        self._held: dict[str, dict[ConnectionGuard, None]] = {}
        self._clients: dict[ConnectionGuard, str] = {}

    def admit(self, connection: ConnectionGuard, host: str) -> bool:
        """Return whether a client may have one more connection, which is counted then."""
        client = client_of(host)
        own = self._held.get(client, {})
        if len(own) >= self._share and not self.is_proxy(host) and not self._close_idle(own):
            return False
        if len(self._clients) >= self._most:
            self._close_idle(self._clients)
        self._count(connection, client)
        return True

    def _count(self, connection: ConnectionGuard, client: str) -> None:
        self._held.setdefault(client, {})[connection] = None
        self._clients[connection] = client

    def note_request(self, connection: ConnectionGuard) -> None:
        """Record that a request of a connection begins."""
        client = self._clients.get(connection)
        if client is not None:
            self.release(connection)
            self._count(connection, client)

    def release(self, connection: ConnectionGuard) -> None:
        """Count a connection no longer."""
        client = self._clients.pop(connection, None)
        if client is None:
            return
        del self._held[client][connection]
        if not self._held[client]:
            del self._held[client]

    def is_proxy(self, host: str) -> bool:
        """True if an address is that of a proxy."""
        if not self._proxies:
            return False
        try:
            address = ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self._proxies)

    def _close_idle(self, among: Iterable[ConnectionGuard]) -> bool:
        longest = next((held for held in among if held.is_idle()), None)
        if longest is None:
            return False
        self.release(longest)
        longest.give_up()
        return True


class RequestShares:
    """An application whose clients may have only so many requests under way at a time.

    Behind a proxy all connections are the proxy's, so the share is that of the requests.
    """

    def __init__(self, app: ASGIApp, share: int, shares: ConnectionShares) -> None:
        self._app, self._share, self._shares = app, share, shares
        self._under_way: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it 503."""
        host = str((scope.get("client") or ("",))[0])
        client = client_of(host)
        if self._under_way[client] >= self._share and not self._shares.is_proxy(host):
            response = refuse(503, "Too many requests at a time.", {"retry-after": "10"})
            await response(scope, receive, send)
            return
        self._under_way[client] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way[client] -= 1
            if not self._under_way[client]:
                del self._under_way[client]


def client_of(host: str) -> str:
    """Return the client that an address belongs to: a host of IPv4, a /64 network of IPv6."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address), _NETWORK_BITS), strict=False))
