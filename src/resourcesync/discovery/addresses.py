"""Addresses in documents, pages and fields: joined safely, compared by origin.

Discovery follows a link within its origin without being asked to: another origin could be
anybody's.
"""

from collections.abc import Iterable
from typing import Final
from urllib.parse import urljoin, urlsplit

_PORTS: Final = {"http": 80, "https": 443}
_MAX_ADDRESS: Final = 8_192

Origin = tuple[str, str, int]


def join(base: str, target: str) -> str | None:
    """Return ``target`` as an absolute URI, or ``None`` when it is no address at all."""
    target = target.strip()
    if not target or len(target) > _MAX_ADDRESS:
        return None
    try:
        return urljoin(base, target)
    except ValueError:
        return None


def origin_of(uri: str) -> Origin | None:
    """Return scheme, host and port of an http or https URI; ``None`` for anything else."""
    try:
        parts = urlsplit(uri)
        scheme, host, port = parts.scheme.lower(), parts.hostname, parts.port
    except ValueError:
        return None
    if scheme not in _PORTS or not host:
        return None
    return scheme, host.lower().rstrip("."), port or _PORTS[scheme]


def is_at_home(uri: str, homes: Iterable[str]) -> bool:
    """True if a URI is of the origin of one of the others, or of its twin behind TLS."""
    found = origin_of(uri)
    if found is None:
        return False
    known = {origin_of(home) for home in homes}
    scheme, host, port = found
    is_twin = (scheme, port) == ("https", 443) and ("http", host, 80) in known
    return found in known or is_twin
