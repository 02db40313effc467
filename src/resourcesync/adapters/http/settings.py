"""Settings of the fetcher, with their defaults and units; its proxies and trusted authorities."""

import os
import stat
from collections.abc import Mapping
from functools import cache
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
import pycurl

from resourcesync import errors
from resourcesync.adapters.http.addresses import origin_of
from resourcesync.model.settings import RequestSettings
from resourcesync.ports import Purpose


class ProxyRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules that choose the proxy of a request.

    Attributes:
        http: Proxy for ``http://`` addresses: ``http://``, ``https://`` or ``socks5h://`` with host
            and port, without user and password; empty for none.
        https: The same for ``https://`` addresses.
        bypass: Hosts that are reached without a proxy, as in ``NO_PROXY``: a name with all names
            below it, an IP address, a network such as ``10.0.0.0/8``, each with or without a port;
            ``*`` is every host.
        secrets: User and password by proxy; they are sent to nobody else.
    """

    http: str = ""
    https: str = ""
    bypass: tuple[str, ...] = ()
    secrets: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return f"ProxyRules(bypass={self.bypass!r})"

    def choose(self, uri: str) -> str:
        """Return the proxy for an ``http`` or ``https`` address; empty for none."""
        proxy = self.https if uri[4:5] in {"s", "S"} else self.http
        return "" if proxy and self.bypass and _is_bypassed(uri, self.bypass) else proxy


def one_proxy(proxy: str, secret: tuple[str, str] | None = None) -> ProxyRules:
    """Return the rules that send every request to one proxy; for an empty one, to none."""
    return ProxyRules(http=proxy, https=proxy, secrets={} if secret is None else {proxy: secret})


def _is_bypassed(uri: str, bypass: tuple[str, ...]) -> bool:
    parts = urlsplit(uri)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return any(_names(entry, (parts.hostname or "").rstrip("."), port) for entry in bypass)


def _names(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    network = _network_of(entry)
    if network is not None:
        try:
            return ip_address(host) in network
        except ValueError:
            return False
    name, colon, its_port = entry.rpartition(":")
    if colon and its_port.isascii() and its_port.isdigit():
        return int(its_port) == port and _names(name, host, port)
    name = entry.removeprefix("*").strip(".").lower()
    return bool(name) and (host == name or host.endswith(f".{name}"))


@cache
def _network_of(entry: str) -> Any:  # of either version of IP
    try:
        return ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return None


def connection_options() -> list[tuple[int, object]]:
    """Return the options of libcurl for connections to any proxy.

    The fields of a request are for the origin: CONNECT has none of them. With plain HTTP the proxy
    sees the fields, as does everybody else on the way.
    """
    return [
        (pycurl.PROXY, ""),
        (pycurl.NOPROXY, ""),
        (pycurl.HEADEROPT, pycurl.HEADER_SEPARATE),
        (pycurl.PROXY_SSL_VERIFYPEER, 1),
        (pycurl.PROXY_SSL_VERIFYHOST, 2),
        (pycurl.PROXY_SSLVERSION, pycurl.SSLVERSION_TLSv1_2),
        (pycurl.PROXYAUTH, pycurl.HTTPAUTH_BASIC),
    ]


def set_proxy(curl: Any, proxy: str, secret: tuple[str, str] | None) -> None:
    """Set the proxy of an easy handle, and the secret for it alone."""
    curl.setopt(pycurl.PROXY, proxy)
    if secret is None:
        curl.unsetopt(pycurl.PROXYUSERNAME)
        curl.unsetopt(pycurl.PROXYPASSWORD)
    else:
        curl.setopt(pycurl.PROXYUSERNAME, secret[0].encode())
        curl.setopt(pycurl.PROXYPASSWORD, secret[1].encode())


KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

BODY_LIMITS: Mapping[Purpose, int] = {
    Purpose.DISCOVERY: MIB,
    Purpose.DOCUMENT: 64 * MIB,
    Purpose.RESOURCE: 16 * GIB,
    Purpose.MESSAGE: 4 * KIB,
    Purpose.STREAM: 1 << 62,
}

FAIR_RATE = 16 * KIB
"""Bytes per second of a transfer that does not look stalled."""

_POSITIVE = (
    "jobs",
    "per_host",
    "first_window",
    "timeout",
    "connect_timeout",
    "backoff",
    "deadline",
    "deadline_rate",
    "rate",
    "bandwidth",
)

Header = tuple[str, str]


class FetchSettings(RequestSettings, frozen=True, kw_only=True):
    """The limits, politeness and secrets of a fetcher.

    Attributes:
        first_window: Transfers at a time that an origin starts with.
        minimum_rate: Bytes per second below which a body is aborted as too slow.
        connect_timeout: Seconds for name, connection and TLS handshake together.
        deadline: Seconds that a try may take in all, besides one second for every
            ``deadline_rate`` bytes of its body: of those that are announced, or that came.
        deadline_rate: Bytes per second, see ``deadline``; less where ``bandwidth`` leaves less.
        backoff: Seconds before the first retry; later ones wait longer, with jitter.
        max_wait: Longest seconds to wait for one origin to become ready. An origin that asks for
            more (``Retry-After``) has its requests fail at once, with ``retry_after``.
        redirects: Most redirects of one request.
        allow_private: Allow connections to loopback, private and other special addresses; ``auto``
            allows them to ``trusted_origins`` only.
        trusted_origins: Origins (``scheme://host[:port]``) that the operator named.
        source_host: The name of the Source's host, if only its address tells that it may be
            private: not once it was public. Empty for none.
        headers: Fields to send, by the one origin they are ever sent to. Secrets belong here.
        proxies: Which requests take which proxy. A proxy does the dialling, so that of the address
            policy only the rules on literal addresses are left.
        body_limits: Most bytes of a body, on the wire and decoded, by purpose.
    """

    first_window: int = 4
    minimum_rate: int = KIB
    connect_timeout: float = 10.0
    deadline: float = 60.0
    deadline_rate: int = FAIR_RATE
    backoff: float = 1.0
    max_wait: float = 60.0
    redirects: int = 5
    allow_private: Literal["auto", "always", "never"] = "auto"
    trusted_origins: frozenset[str] = frozenset()
    source_host: str = ""
    headers: Mapping[str, tuple[Header, ...]] = msgspec.field(default_factory=dict)
    proxies: ProxyRules = msgspec.field(default_factory=ProxyRules)
    body_limits: Mapping[Purpose, int] = msgspec.field(default_factory=lambda: BODY_LIMITS)

    def __repr__(self) -> str:
        shown = [name for name in self.__struct_fields__ if name != "headers"]
        return f"FetchSettings({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise errors.ConfigurationError(f"{name} must be more than 0, not {value}")
        for name in ("retries", "max_wait", "redirects", "minimum_rate"):
            if getattr(self, name) < 0:
                raise errors.ConfigurationError(f"{name} must not be negative")
        secrets = [pair for fields in self.headers.values() for pair in fields]
        for name, value in (("From", self.contact), *secrets):
            if not _may_be_sent(name, value):
                raise errors.ConfigurationError(
                    f"the header {name!r} has characters that cannot be sent"
                )
        for origin in (*self.trusted_origins, *self.headers):
            _require_origin(origin)


def _require_origin(origin: str) -> None:
    if origin_of(origin) is None:
        raise errors.ConfigurationError(
            f"{origin!r} is not an origin", hint="write it as https://host or http://host:port"
        )


def _may_be_sent(name: str, value: str) -> bool:
    return (
        bool(name)
        and name.isascii()
        and all(character.isalnum() or character in "-_" for character in name)
        and value.isascii()
        and all(character.isprintable() or character == "\t" for character in value)
    )


MOST_BYTES: Final = 16 * 1024 * 1024

_SYSTEM: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/usr/local/etc/ssl/cert.pem",
)


def system_authorities() -> str:
    """Return the file of the system's authorities, empty for libcurl's default."""
    return next((path for path in _SYSTEM if Path(path).is_file()), "")


def check_authorities(ca_file: str) -> None:
    """Refuse an invalid file of authorities; an empty name means no file."""
    reason = _fault(ca_file)
    if reason:
        raise errors.ConfigurationError(
            f"cannot use the CA file {ca_file}: {reason}",
            evidence=(("file", ca_file),),
            hint="name a file of certificates (PEM) by SSL_CERT_FILE, or by -o ca_file=FILE",
        )


def _fault(ca_file: str) -> str:
    if not ca_file:
        return ""
    import ssl  # noqa: PLC0415 - most runs use the system's authorities, which need no look

    try:
        info = os.stat(ca_file)  # noqa: PTH116 - a name with a zero byte is told below
        if not stat.S_ISREG(info.st_mode):
            return "it is not a regular file"
        if info.st_size > MOST_BYTES:
            return f"it has more than {MOST_BYTES} bytes"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(ca_file)
    except ssl.SSLError:
        return "it is not a PEM file of certificates"
    except OSError as error:
        return error.strerror or str(error)
    except ValueError:
        return "it is no name of a file"
    return "" if context.cert_store_stats()["x509"] else "it has no certificate"
