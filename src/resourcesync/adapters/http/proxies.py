"""Proxies: which one a request takes, the credentials sent to it, the meaning of its failures."""

from collections.abc import Mapping
from functools import cache
from ipaddress import ip_address, ip_network
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import pycurl

from resourcesync.adapters.http.transfer_errors import transport_error
from resourcesync.errors import (
    Evidence,
    SourceError,
    SourceRefusedError,
    SourceUnavailableError,
)

NEEDS_SECRET: Final = 407

_FORBIDDEN: Final = 403
_BAD_GATEWAY: Final = 502
_SOCKS: Final = 97  # CURLE_PROXY, which PycURL does not name
_TLS: Final = frozenset({pycurl.E_SSL_CONNECT_ERROR, pycurl.E_PEER_FAILED_VERIFICATION})
_SUCCESS: Final = range(200, 300)
_SERVER_FAULTS: Final = range(500, 600)
_SOCKS_SECRET: Final = frozenset({10, 11, 12, 33})
"""Values of CURLproxycode for failed logins: too long, no common method, refused."""
_SOCKS_RULE: Final = 23  # CURLPX_REPLY_NOT_ALLOWED

_LOGIN_HINT: Final = (
    "name the proxy's user and password: -o proxy_auth=NAME (with a table [auth.NAME])"
)
_RULE_HINT: Final = (
    "ask the proxy's operator to allow this host, or use another proxy: -o proxy=URL"
)
_DEAD_HINT: Final = "check the proxy's address, or HTTP_PROXY and HTTPS_PROXY: -o proxy=URL"


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
    """True if an entry of ``NO_PROXY`` names a host."""
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


def with_proxy_evidence(error: SourceError, proxy: str) -> SourceError:
    """Return an error whose evidence names the proxy, if there is one."""
    if proxy and not any(label == "proxy" for label, _ in error.evidence):
        error.evidence = (*error.evidence, ("proxy", proxy))
    return error


def proxy_failure(curl: Any, number: int, text: str, *, uri: str, proxy: str) -> SourceError:
    """Return the error for a transfer by a proxy that libcurl ended with error ``number``."""
    status = int(curl.getinfo(pycurl.HTTP_CONNECTCODE))
    got = f"CONNECT: {status}" if status else text
    evidence: Evidence = (("got", got), ("proxy", proxy))
    if number == _SOCKS:
        reason = int(curl.getinfo(pycurl.PROXY_ERROR))
        if reason in _SOCKS_SECRET:
            return proxy_refusal(NEEDS_SECRET, uri, evidence)
        return proxy_refusal(_FORBIDDEN if reason == _SOCKS_RULE else _BAD_GATEWAY, uri, evidence)
    if status and status not in _SUCCESS:
        return proxy_refusal(status, uri, evidence)
    if number in {pycurl.E_COULDNT_CONNECT, pycurl.E_COULDNT_RESOLVE_PROXY}:
        return SourceUnavailableError(
            f"the proxy {proxy} does not answer",
            uri=uri,
            evidence=evidence,
            hint=_DEAD_HINT,
            code="proxy",
        )
    if number in _TLS and curl.getinfo(pycurl.PROXY_SSL_VERIFYRESULT):
        return SourceRefusedError(
            f"the proxy {proxy} has a certificate that is not trusted",
            uri=uri,
            evidence=evidence,
            hint="name the file of its authority: -o ca_file=FILE",
            code="tls",
        )
    return with_proxy_evidence(transport_error(number, text, uri), proxy)


def proxy_refusal(status: int, uri: str, evidence: Evidence) -> SourceError:
    """Return the error for a proxy that refuses a request.

    The status is the proxy's, not the Source's: the Source never got the request.
    """
    proxy = dict(evidence)["proxy"]
    if status in _SERVER_FAULTS:
        return SourceUnavailableError(
            f"the proxy {proxy} cannot reach the Source now",
            uri=uri,
            evidence=evidence,
            hint="try again later, or name another proxy: -o proxy=URL",
            code="proxy",
        )
    if status == NEEDS_SECRET:
        message, hint = f"the proxy {proxy} requires a user and a password", _LOGIN_HINT
    else:
        message, hint = f"the proxy {proxy} refuses to reach the Source", _RULE_HINT
    return SourceRefusedError(message, uri=uri, evidence=evidence, hint=hint, code="proxy")
