"""URIs as they may be sent, and the origin of each. Pure.

libcurl has its own reader of URIs. Two readers that disagree are a hole, so anything that two
readers could take in two ways is refused here before libcurl sees it.
"""

import re
from typing import NamedTuple
from urllib.parse import quote

from resourcesync.errors import SourceRefusedError

LONGEST_URI = 8192

_DEFAULT_PORTS = {"http": "80", "https": "443"}
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
_URI = re.compile(
    r"((https?)://(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253})(?::([0-9]{1,5}))?)(?=[/?#]|\Z)[!-~]*\Z",
    re.IGNORECASE | re.ASCII,
)


class Address(NamedTuple):
    """A URI taken apart as far as policy needs.

    Attributes:
        uri: What to send: no fragment, ASCII.
        authority: Scheme, host and port as written; equal ones have equal origins.
    """

    uri: str
    authority: str


def parse_address(uri: str) -> Address:
    """Return what a URI addresses.

    Raises:
        SourceRefusedError: ``uri``: no plain absolute http or https URI; it has user information,
            control characters, spaces, foreign letters in the host, or is too long.
    """
    ascii_uri = uri if uri.isascii() else quote(uri, safe=_PRINTABLE)
    match = _URI.match(ascii_uri) if len(ascii_uri) <= LONGEST_URI else None
    if match is None:
        raise SourceRefusedError(
            "the address is no plain absolute http or https URI", uri=uri, code="uri"
        )
    if "#" in ascii_uri:
        ascii_uri = ascii_uri.partition("#")[0]
    return Address(ascii_uri, match[1])


def origin_of(authority: str) -> str | None:
    """Return ``scheme://host[:port]`` in its one spelling, or ``None`` when it is no origin."""
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
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def without_query(uri: str) -> str:
    """Return a URI as it may be shown: queries often hold secrets."""
    path, mark, _ = uri.partition("?")
    return f"{path}?…" if mark else path
