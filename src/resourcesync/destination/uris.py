"""URIs that can be trusted, in the one form that equivalent spellings share (RFC 3986). Pure.

A Source may list anything. What some other software would read in another way - a host that is a
number in disguise, a dot segment in disguise, a control character - is refused, not repaired. What
all software reads in one way, and writes in another, is written so: see `encoded`.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final
from urllib.parse import quote

from resourcesync.discovery.addresses import is_accepted
from resourcesync.errors import OutOfScopeError

MAX_URI: Final = 2_048
"""Characters of a URI, as written and normalised."""

_PORTS: Final = {"http": 80, "https": 443}
_MAX_HOST: Final = 253
_MAX_PORT: Final = 65_535

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9._~!$&'()*+,;=:@/?#\[\]%-]")
_PARTS: Final = re.compile(
    r"([a-z][a-z0-9+.-]*)://([^/?#]+)([^?#\[\]]*)(\?[^#\[\]]*)?(?:#[^#\[\]]*)?", re.IGNORECASE
)
_BAD_TRIPLET: Final = re.compile(r"%(?:00|0[AaDd]|(?![0-9A-Fa-f]{2}))")
_ESCAPED_CONTROL: Final = re.compile(r"%(?:00|0[AaDd])")
_TRIPLET: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_AUTHORITY: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::(.*))?")
_NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NUMERIC: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
# What needs no second look: no escape, no fragment, an authority of plain lower-case characters.
_PLAIN: Final = re.compile(r"(https?)://([a-z0-9.-]+(?::[0-9]+)?)/[A-Za-z0-9._~!$&'()*+,;=:@/?-]*")
# What browsers write as %XX, besides control characters, which nobody means to write.
_TO_ENCODE: Final = re.compile(r"""[ "<>`{}|^]|[^\x00-\x7f]""")
_LOOSE: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)([^/?#\\@]*)([/?#].*|)", re.DOTALL)
_DEVIATING: Final = re.compile("[\u00df\u1e9e\u03c2\u200c\u200d]")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def normalise(uri: str) -> str:
    """Return the form that all equivalent spellings of a URI share (RFC 3986 §6.2.2).

    Scheme and host in lower case; no default port, no dot after the host, no fragment; triplets in
    upper case, and decoded where they stand for unreserved characters; ``/`` for an empty path.
    Slashes and the query stay as they are.

    Raises:
        OutOfScopeError: It is no absolute URI of http, https or a scheme that a transport was
            named for, or it cannot be trusted. ``code`` is one
            of ``URL_TOO_LONG``, ``URL_SCHEME``, ``URL_ILLEGAL``, ``URL_NOT_ABSOLUTE``,
            ``URL_USERINFO``, ``URL_HOST``, ``URL_PORT`` and ``URL_DOT_SEGMENT``.
    """
    plain = _PLAIN.fullmatch(uri)
    if plain is not None and "/." not in uri and len(uri) <= MAX_URI:
        scheme, authority = plain.groups()
        if _authority(scheme, authority) == authority:
            return uri
    return _normalise(uri)


def percent_encode(uri: str) -> str:
    """Return a URI with what no URI may hold written as browsers send it; else the very same.

    Characters beyond ASCII and blanks become %XX of their UTF-8, a host beyond ASCII its ``xn--``
    form. What browsers and servers read in several ways - a backslash, a bracket, a lone ``%``, a
    letter that the versions of IDNA think differently of - stays, and so is no URI.
    """
    if not _TO_ENCODE.search(uri):
        return uri
    match = _LOOSE.fullmatch(uri)
    if match is None:
        return uri
    scheme, authority, rest = match.groups()
    host = _ascii_host(authority)
    if host is None:
        return uri
    return f"{scheme}{host}{_TO_ENCODE.sub(lambda found: quote(found[0], safe=''), rest)}"


def _ascii_host(authority: str) -> str | None:
    """Return host and port in ASCII; ``None`` when that may mean another host to others."""
    if authority.isascii():
        return authority
    host, colon, port = authority.partition(":")
    if _DEVIATING.search(host):
        return None
    try:
        name = host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return None
    return f"{name}{colon}{port}" if _NAME.fullmatch(name) else None


def origin(uri: str) -> str:
    """Return ``scheme://host``, with ``:port`` unless it is the default, normalised.

    Raises:
        OutOfScopeError: As for ``normalise``.
    """
    normal = normalise(uri)
    return normal[: normal.index("/", normal.index("://") + 3)]


def tls_counterpart(home: str) -> str:
    """Return the origin that is this one with TLS, or without; empty where a port is named."""
    scheme, _, authority = home.partition("://")
    if ":" in authority.rpartition("]")[2]:
        return ""
    other = {"http": "https", "https": "http"}.get(scheme)
    return f"{other}://{authority}" if other else ""


def _normalise(uri: str) -> str:
    if len(uri) > MAX_URI:
        raise _refused(uri, "URL_TOO_LONG", f"is longer than {MAX_URI:,} characters")
    match = _PARTS.fullmatch(uri)
    if match is None or not is_accepted(match[1].lower()):
        raise _unreadable(uri)
    if _ILLEGAL.search(uri) or _BAD_TRIPLET.search(uri):
        raise _unreadable(uri)
    scheme, authority, path, query = match.groups(default="")
    scheme = scheme.lower()
    if "@" in authority:
        raise _refused(uri, "URL_USERINFO", "has a user name or a password")
    canonical = _authority(scheme, authority)
    if isinstance(canonical, _UriFault):
        raise _refused(uri, canonical.code, canonical.reason)
    path = _decode_unreserved(path)
    _refuse_dot_segments(uri, path)
    normal = f"{scheme}://{canonical}{path or '/'}{_decode_unreserved(query)}"
    if len(normal) > MAX_URI:
        raise _refused(uri, "URL_TOO_LONG", f"is longer than {MAX_URI:,} characters")
    return normal


def _refused(uri: str, code: str, reason: str) -> OutOfScopeError:
    return OutOfScopeError(f"the URI {reason}", uri=uri, code=code)


def _unreadable(uri: str) -> OutOfScopeError:
    """Say why a URI does not have the form of one, most telling reason first."""
    scheme = _SCHEME.match(uri)
    if scheme is not None and not is_accepted(scheme[1].lower()):
        return _refused(uri, "URL_SCHEME", "is neither http nor https")
    if not uri.isascii():
        reason = "has characters beyond ASCII: write them as %XX, and the host as xn--"
        return _refused(uri, "URL_ILLEGAL", reason)
    if _ILLEGAL.search(uri):
        return _refused(uri, "URL_ILLEGAL", "has characters that no URI may have")
    if scheme is None or not re.match(r"[^:]*://[^/?#]", uri):
        return _refused(uri, "URL_NOT_ABSOLUTE", "has no host: it must be absolute")
    control = _ESCAPED_CONTROL.search(uri)
    if control is not None:
        reason = f"has an escaped line break or zero byte ({control[0]}): no name here can have one"
        return _refused(uri, "URL_ILLEGAL", reason)
    return _refused(uri, "URL_ILLEGAL", "has a bad %XX, or a bracket or # out of place")


def _decode_unreserved(text: str) -> str:
    return _TRIPLET.sub(_normal_triplet, text) if "%" in text else text


def _normal_triplet(match: re.Match[str]) -> str:
    character = chr(int(match[0][1:], 16))
    return character if character in _UNRESERVED else match[0].upper()


def _refuse_dot_segments(uri: str, path: str) -> None:
    # An escaped backslash counts as a separator here: some servers and systems take it for one.
    segments = path.replace("%5C", "/").split("/")
    if "." in segments or ".." in segments:
        raise _refused(uri, "URL_DOT_SEGMENT", "has a dot segment")


@dataclass(frozen=True, slots=True)
class _UriFault:
    code: str
    reason: str


@lru_cache(maxsize=256)
def _authority(scheme: str, text: str) -> str | _UriFault:
    """Return host and port in their one form, or what is wrong with them."""
    match = _AUTHORITY.fullmatch(_decode_unreserved(text))
    if match is None:
        return _UriFault("URL_HOST", "has a host that is none")
    host, port = match[1].lower(), match[2]
    host = host.removesuffix(".")
    if not _is_host(host):
        return _UriFault("URL_HOST", "has a host that is no name and no plain address")
    if port is None:
        return host
    if not _PORT.fullmatch(port) or int(port) > _MAX_PORT:
        return _UriFault("URL_PORT", "has a port that is none")
    return host if int(port) == _PORTS.get(scheme) else f"{host}:{port}"


def _is_host(host: str) -> bool:
    """Whether it is a name, a dotted quad, or an IPv6 address without a zone.

    What other software might read as a number (``127.1``, ``0x7f.1``) must be a dotted quad.
    """
    try:
        if host.startswith("["):
            return "%" not in host and bool(IPv6Address(host[1:-1]).packed)
        if _NUMERIC.fullmatch(host):
            return bool(IPv4Address(host).packed)
    except AddressValueError:
        return False
    return len(host) <= _MAX_HOST and _NAME.fullmatch(host) is not None
