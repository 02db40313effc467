"""Shares of a server's connections: no client address may hold more than its own.

An IPv6 client has a whole /64 network, so that counts as one address.
"""

from collections import Counter
from collections.abc import Iterable
from ipaddress import IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from resourcesync.server.asgi import refuse

_NETWORK_BITS: Final = 64


class Connection(Protocol):
    """A connection of a client."""

    def is_idle(self) -> bool:
        """Return whether no request is under way."""

    def give_up(self) -> None:
        """Close the connection at once, and count it no longer."""


class ConnectionShares:
    """The connections of each client; the one that is idle longest makes room for a new one."""

    def __init__(self, most: int, share: int, proxies: Iterable[str] = ()) -> None:
        self._most, self._share = most, share
        self._proxies = [ip_network(proxy) for proxy in proxies]
        # Both in the order of the last requests.
        self._held: dict[str, dict[Connection, None]] = {}
        self._clients: dict[Connection, str] = {}

    def admit(self, connection: Connection, host: str) -> bool:
        """Return whether a client may have one more connection, which is counted then."""
        client = client_of(host)
        own = self._held.get(client, {})
        if len(own) >= self._share and not self.is_proxy(host) and not self._close_idle(own):
            return False
        if len(self._clients) >= self._most:
            self._close_idle(self._clients)
        self._count(connection, client)
        return True

    def _count(self, connection: Connection, client: str) -> None:
        self._held.setdefault(client, {})[connection] = None
        self._clients[connection] = client

    def note_request(self, connection: Connection) -> None:
        """Record that a request of a connection begins."""
        client = self._clients.get(connection)
        if client is not None:
            self.release(connection)
            self._count(connection, client)

    def release(self, connection: Connection) -> None:
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

    def _close_idle(self, among: Iterable[Connection]) -> bool:
        """Close the connection that is idle longest, if there is one."""
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
