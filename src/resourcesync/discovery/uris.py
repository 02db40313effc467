"""URIs in normal form, which all equivalent spellings share (RFC 3986). Pure.

A Source may list anything. What other software might read differently - a disguised number as host,
a disguised dot segment, a control character - is refused, not repaired. What all software reads
alike but writes differently is encoded: see `percent_encode`. An address from outside - of a list,
a link, a redirect, an operator - is read by `read_address`, or encoded first where its normal form
is not wanted.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from itertools import takewhile
from posixpath import splitext
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

import msgspec

from resourcesync.errors import OutOfScopeError
from resourcesync.model.own_names import MAX_URI, decode_unreserved

_PORTS: Final = {"http": 80, "https": 443}
_MAX_REFERENCE: Final = 8_192
_MAX_HOST: Final = 253
_MAX_PORT: Final = 65_535

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9._~!$&'()*+,;=:@/?#\[\]%-]")
_PARTS: Final = re.compile(
    r"([a-z][a-z0-9+.-]*)://([^/?#]+)([^?#\[\]]*)(\?[^#\[\]]*)?(?:#[^#\[\]]*)?", re.IGNORECASE
)
_BAD_TRIPLET: Final = re.compile(r"%(?:00|0[AaDd]|(?![0-9A-Fa-f]{2}))")
_ESCAPED_CONTROL: Final = re.compile(r"%(?:00|0[AaDd])")
_AUTHORITY: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::(.*))?")
_NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NUMERIC: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
# The common case: no escape, no fragment, an authority of plain lower-case characters.
_PLAIN: Final = re.compile(r"(https?)://([a-z0-9.-]+(?::[0-9]+)?)/[A-Za-z0-9._~!$&'()*+,;=:@/?-]*")
# What browsers write as %XX, by what they do not: a range up to the last character compiles slowly.
_TO_ENCODE: Final = re.compile(r"[^\x00-\x1f!#-;=?-Z\\_a-z~\x7f]")
_LOOSE: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)([^/?#\\@]*)([/?#].*|)", re.DOTALL)
_DEVIATING: Final = re.compile("[\u00df\u1e9e\u03c2\u200c\u200d]")


def normalise(uri: str) -> str:
    """Return the normal form of a URI (RFC 3986 §6.2.2).

    Scheme and host in lower case; no default port, no dot after the host, no fragment; triplets in
    upper case, and decoded where they stand for unreserved characters; ``/`` for an empty path.
    Slashes and the query stay unchanged.
    """
    plain = _PLAIN.fullmatch(uri)
    if plain is not None and "/." not in uri and len(uri) <= MAX_URI:
        scheme, authority = plain.groups()
        if _authority(scheme, authority) == authority:
            return uri
    return _normalise(uri)


def percent_encode(uri: str) -> str:
    """Return a URI with invalid characters encoded as browsers do; else the same URI.

    Characters beyond ASCII, blanks, and brackets that are not those of an IPv6 host become %XX of
    their UTF-8, a host beyond ASCII its ``xn--`` form. What browsers and servers read differently -
    a backslash, a lone ``%``, a letter that the versions of IDNA treat differently - stays, and so
    makes the URI invalid.
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
    encoded = f"{scheme}{host}{_TO_ENCODE.sub(lambda found: quote(found[0], safe=''), rest)}"
    return uri if encoded == uri else encoded


def read_address(text: str) -> str:
    """Return the normal form of an address as somebody wrote it."""
    return normalise(percent_encode(text))


def _ascii_host(authority: str) -> str | None:
    if authority.isascii():
        return authority
    host, colon, port = authority.partition(":")
    if _DEVIATING.search(host):
        return None
    try:
        name = host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return None
    is_coded = "xn--" in name  # else it is a name, or a number, in disguise
    return f"{name}{colon}{port}" if is_coded and _NAME.fullmatch(name) else None


def origin(uri: str) -> str:
    """Return ``scheme://host``, with ``:port`` unless it is the default, normalised."""
    normal = read_address(uri)
    return normal[: normal.index("/", normal.index("://") + 3)]


def origin_if_any(uri: str) -> str:
    """Return the origin of an address; empty for what is no address of http or https."""
    try:
        return origin(uri)
    except OutOfScopeError:
        return ""


def is_at_home(uri: str, homes: Iterable[str]) -> bool:
    """True if a URI is of the origin of one of the others, or of its twin behind TLS.

    Discovery follows no other link without being asked to: it could be anybody's.
    """
    found, known = origin_if_any(uri), set(map(origin_if_any, homes))
    twin = tls_counterpart(found) if found.startswith("https:") else ""
    return bool(found) and (found in known or (twin != "" and twin in known))


def join(base: str, target: str) -> str | None:
    """Return ``target`` as an absolute URI, or ``None`` when it is no address at all."""
    target = target.strip()
    if not target or len(target) > _MAX_REFERENCE:
        return None
    try:
        return urljoin(base, target)
    except ValueError:
        return None


_ENDING: Final = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}")
_DOCUMENT_ENDINGS: Final = (".xml", ".xml.gz", ".txt", ".txt.gz", "/resourcesync")
_MOST_ABOVE: Final = 3


def has_ending(name: str) -> bool:
    """True if a name has an ending as files have: not ``intro``, nor ``v1.2``."""
    return _ENDING.fullmatch(splitext(name)[1]) is not None


def folder_of(uri: str) -> str:
    """Return the folder that an address stands for: its own; that of the page, if it is a page."""
    parts = urlsplit(uri)
    folder, _, name = parts.path.rpartition("/")
    path = f"{folder}/" if not name or has_ending(name) else f"{parts.path}/"
    return parts._replace(path=path, query="", fragment="").geturl()


def is_document(uri: str) -> bool:
    """True if an address ends as that of a document does, not as that of a site or a page."""
    return urlsplit(uri).path.lower().endswith(_DOCUMENT_ENDINGS)


def site_folder(uri: str) -> str:
    """Return the folder that an address stands for; empty for that of a file or a query."""
    parts = urlsplit(uri)
    is_file = is_document(uri) or has_ending(parts.path.rpartition("/")[2])
    return "" if is_file or parts.query else folder_of(uri)


def common_beginning(one: str, other: str) -> str:
    """Return the text with which two texts begin."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return "".join(first for first, _ in same)


def folders_above(folder: str) -> list[str]:
    """Return the folders above a folder, the nearest first; of many the nearest, and the root."""
    above = [folder := urljoin(folder, "..") for _ in urlsplit(folder).path.split("/")[2:]]
    return [*above[:-1][:_MOST_ABOVE], *above[-1:]]


def tls_counterpart(home: str) -> str:
    """Return the same origin with TLS, or without; empty if it has a port."""
    scheme, _, authority = home.partition("://")
    if ":" in authority.rpartition("]")[2]:
        return ""
    other = {"http": "https", "https": "http"}.get(scheme)
    return f"{other}://{authority}" if other else ""


def host_twin(home: str) -> str:
    """Return the origin of the same host with ``www.``, or without it; empty if there is none."""
    scheme, _, host = home.partition("://")
    bare = host.removeprefix("www.")
    if scheme not in _PORTS or ":" in host or "." not in bare or _NUMERIC.fullmatch(bare):
        return ""
    return f"{scheme}://{bare if bare != host else f'www.{host}'}"


def _normalise(uri: str) -> str:
    if len(uri) > MAX_URI:
        raise _refused(uri, "URL_TOO_LONG", f"is longer than {MAX_URI:,} characters")
    match = _PARTS.fullmatch(uri)
    if match is None or match[1].lower() not in _PORTS:
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
    path = decode_unreserved(path)
    # An escaped backslash counts as a separator: some servers and systems treat it as one.
    segments = path.replace("%5C", "/").split("/")
    if "." in segments or ".." in segments:
        raise _refused(uri, "URL_DOT_SEGMENT", "has a dot segment")
    normal = f"{scheme}://{canonical}{path or '/'}{decode_unreserved(query)}"
    if len(normal) > MAX_URI:
        raise _refused(uri, "URL_TOO_LONG", f"is longer than {MAX_URI:,} characters")
    return normal


def _refused(uri: str, code: str, reason: str) -> OutOfScopeError:
    return OutOfScopeError(f"the URI {reason}", uri=uri, evidence=(("uri", uri),), code=code)


def _unreadable(uri: str) -> OutOfScopeError:
    scheme = _SCHEME.match(uri)
    if scheme is not None and scheme[1].lower() not in _PORTS:
        return _refused(uri, "URL_SCHEME", "is neither http nor https")
    if not uri.isascii():
        reason = "has non-ASCII characters: write them as %XX, and the host as xn--"
        return _refused(uri, "URL_ILLEGAL", reason)
    if _ILLEGAL.search(uri):
        return _refused(uri, "URL_ILLEGAL", "has invalid characters")
    if scheme is None or not re.match(r"[^:]*://[^/?#]", uri):
        return _refused(uri, "URL_NOT_ABSOLUTE", "has no host: it must be absolute")
    control = _ESCAPED_CONTROL.search(uri)
    if control is not None:
        reason = f"has an escaped line break or zero byte ({control[0]})"
        return _refused(uri, "URL_ILLEGAL", reason)
    return _refused(uri, "URL_ILLEGAL", "has an invalid %XX, or a misplaced bracket or #")


class _UriFault(msgspec.Struct, frozen=True):
    code: str
    reason: str


@lru_cache(maxsize=256)
def _authority(scheme: str, text: str) -> str | _UriFault:
    match = _AUTHORITY.fullmatch(decode_unreserved(text))
    if match is None:
        return _UriFault("URL_HOST", "has an invalid host")
    host, port = match[1].lower(), match[2]
    host = host.removesuffix(".")
    if not _is_host(host):
        return _UriFault("URL_HOST", "has a host that is neither a name nor a plain address")
    if port is None:
        return host
    if not _PORT.fullmatch(port) or int(port) > _MAX_PORT:
        return _UriFault("URL_PORT", "has an invalid port")
    return host if int(port) == _PORTS.get(scheme) else f"{host}:{port}"


def _is_host(host: str) -> bool:
    """True for a name, a dotted quad, or IPv6 without a zone; not for other numbers (``127.1``)."""
    try:
        if host.startswith("["):
            return "%" not in host and bool(IPv6Address(host[1:-1]).packed)
        if _NUMERIC.fullmatch(host):
            return bool(IPv4Address(host).packed)
    except AddressValueError:
        return False
    return len(host) <= _MAX_HOST and _NAME.fullmatch(host) is not None


def normalise_if_possible(uri: str) -> str:
    """Return the form that all spellings of a URI share, as mirrors store it."""
    try:
        return read_address(uri)
    except OutOfScopeError:  # such as urn:isbn:…
        return uri


_SCHEMELESS: Final = re.compile(
    r"(?:(?P<near>localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3})"
    r"|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,63})(?::(?P<port>[0-9]{1,5}))?(?:/|\Z)"
)


def with_likely_scheme(text: str) -> str:
    """Return the address that a text without a scheme stands for; empty if it is not like one."""
    host = _SCHEMELESS.match(text)
    if host is None:
        return ""
    is_plain = host["port"] != "443" and (host["port"] or host["near"])
    return f"{'http' if is_plain else 'https'}://{text}"


def is_same(uri: str, other: str) -> bool:
    """True if two URIs are one in their normal form, with a slash behind a folder or without."""
    one, two = normalise_if_possible(uri), normalise_if_possible(other)
    return one == two or "" != site_folder(one) == site_folder(two)


def own_entries(uri: str, parts: Iterable[str]) -> list[str]:
    """Return the entries of an index that lead to itself, with TLS or without."""
    own = normalise_if_possible(uri).partition("://")[2]
    return [part for part in parts if normalise_if_possible(part).partition("://")[2] == own]
