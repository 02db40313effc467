"""URIs in the form to send, the origin of each, and which IP addresses are private. Pure.

libcurl parses URIs itself. Two parsers that disagree are a security hole, so any URI that two
parsers could read differently is refused before libcurl sees it. What all read alike is encoded as
in the lists.

Where a Source, rather than the operator, may make us connect to: ``ipaddress`` alone is not enough.
Its ``is_global`` is true for several ways to write a private address (NAT64, 6to4, IPv4-compatible)
and for all of multicast.
"""

import re
from collections.abc import Callable
from functools import partial
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, NamedTuple

from resourcesync.discovery.uris import percent_encode
from resourcesync.errors import SourceRefusedError

LONGEST_URI = 8192

_DEFAULT_PORTS = {"http": "80", "https": "443"}
_URI = re.compile(
    rf"(?=.{{0,{LONGEST_URI}}}\Z)"
    r"((https?)://(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253})(?::([0-9]{1,5}))?)(?=[/?#]|\Z)[!-~]*\Z",
    re.IGNORECASE | re.ASCII,
)


class Address(NamedTuple):
    """A URI, parsed as far as policy needs."""

    uri: str  # to send: no fragment, ASCII
    authority: str  # scheme, host and port as written


# The class's constructor is Python code, and each request has an address.
_new_address: Final[Callable[[tuple[str, str]], Address]] = partial(tuple.__new__, Address)


def parse_address(uri: str) -> Address:
    """Return the address of a URI."""
    ascii_uri = percent_encode(uri)
    match = _URI.match(ascii_uri)
    if match is None:
        raise SourceRefusedError(
            "the address is no plain absolute http or https URI", uri=uri, code="uri"
        )
    if "#" in ascii_uri:
        ascii_uri = ascii_uri.partition("#")[0]
    return _new_address((ascii_uri, match[1]))


def origin_of(authority: str) -> str | None:
    """Return ``scheme://host[:port]`` in normal form, or ``None`` if it is no origin."""
    match = _URI.match(authority)
    if match is None or match.end(1) < len(authority):
        return None
    scheme, host, port = match[2].lower(), match[3].lower(), match[4]
    if port is None or port == _DEFAULT_PORTS[scheme]:
        return f"{scheme}://{host}"
    return f"{scheme}://{host}:{int(port)}" if 0 < int(port) < 1 << 16 else None


def host_of(origin: str) -> str:
    """Return the host of an origin, an IPv6 address without its brackets."""
    host = origin.partition("://")[2]
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def without_query(uri: str) -> str:
    """Return a URI fit for messages: queries often contain secrets."""
    path, mark, _ = uri.partition("?")
    return f"{path}?…" if mark else path


_SPECIAL: Final = """
0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24
224.0.0.0/4 240.0.0.0/4
::/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/32 2001:db8::/32 2002::/16 3fff::/20
5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8
"""
_BLOCKED: Final = tuple(map(ip_network, _SPECIAL.split()))
_LAST_LABEL_IS_A_NUMBER = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)\.?\Z", re.IGNORECASE)


def is_public(address: str) -> bool:
    """True if an address belongs to the public Internet; false for an invalid address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return parsed.is_global and not any(parsed in network for network in _BLOCKED)


def is_address(host: str) -> bool:
    """True if a host is a literal address rather than a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_ambiguous_number(host: str) -> bool:
    """True if a resolver may read a host as an address though it is no strict dotted quad.

    ``127.1``, ``0x7f.1``, ``2130706433`` and ``127.0.0.1.`` all reach 127.0.0.1.
    """
    return ":" not in host and bool(_LAST_LABEL_IS_A_NUMBER.search(host)) and not is_address(host)
