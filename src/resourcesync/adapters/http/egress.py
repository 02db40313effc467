"""Network addresses that a Source, rather than the operator, may make us connect to. Pure.

``ipaddress`` alone is not enough: its ``is_global`` is true for several ways to write a private
address (NAT64, 6to4, IPv4-compatible) and for all of multicast.
"""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_BLOCKED_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
        ),
    )
)
_BLOCKED_6 = tuple(
    map(
        IPv6Network,
        (
            "::/96",
            "64:ff9b::/96",
            "64:ff9b:1::/48",
            "100::/64",
            "2001::/32",
            "2001:db8::/32",
            "2002::/16",
            "3fff::/20",
            "5f00::/16",
            "fc00::/7",
            "fe80::/10",
            "fec0::/10",
            "ff00::/8",
        ),
    )
)
_LAST_LABEL_IS_A_NUMBER = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)\.?\Z", re.IGNORECASE)


def is_public(address: str) -> bool:
    """True if an address belongs to the public Internet; false for an invalid address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return _is_public_4(parsed.ipv4_mapped)
        return parsed.is_global and not any(parsed in network for network in _BLOCKED_6)
    return _is_public_4(parsed)


def _is_public_4(address: IPv4Address) -> bool:
    return address.is_global and not any(address in network for network in _BLOCKED_4)


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
