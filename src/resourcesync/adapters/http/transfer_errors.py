"""The errors of transfers that broke, are too slow or too big, or go where they must not.

Each says whether a retry may help, what was seen, and what to do. Those of a proxy are apart: the
Source never got the request.
"""

from typing import Any, Final
from urllib.parse import urlsplit

import pycurl

from resourcesync import errors
from resourcesync.adapters.http.addresses import origin_of
from resourcesync.adapters.http.response_head import SERVER_FAULTS, SUCCESS, request_evidence

NEEDS_SECRET: Final = 407

_FORBIDDEN: Final = 403
_BAD_GATEWAY: Final = 502
_SOCKS: Final = 97  # CURLE_PROXY, which PycURL does not name
_TLS: Final = frozenset({pycurl.E_SSL_CONNECT_ERROR, pycurl.E_PEER_FAILED_VERIFICATION})
_SOCKS_SECRET: Final = frozenset({10, 11, 12, 33})
"""Values of CURLproxycode for failed logins: too long, no common method, refused."""
_SOCKS_RULE: Final = 23  # CURLPX_REPLY_NOT_ALLOWED

_LOGIN_HINT = "name the proxy's user and password: -o proxy_auth=NAME (with a table [auth.NAME])"
_RULE_HINT = "ask the proxy's operator to allow this host, or use another proxy: -o proxy=URL"
_DEAD_HINT = "check the proxy's address, or HTTP_PROXY and HTTPS_PROXY: -o proxy=URL"

_HTTP2_STREAM = 92  # CURLE_HTTP2_STREAM, which PycURL does not name
_TOO_LARGE = 100  # CURLE_TOO_LARGE, which PycURL does not name
_UNAVAILABLE = {
    pycurl.E_COULDNT_RESOLVE_HOST: ("dns", "cannot resolve the host name"),
    pycurl.E_COULDNT_RESOLVE_PROXY: ("dns", "cannot resolve the proxy's host name"),
    pycurl.E_COULDNT_CONNECT: ("connect", "cannot connect to {}"),
    pycurl.E_OPERATION_TIMEDOUT: ("timeout", "the connection timed out"),
    pycurl.E_PARTIAL_FILE: ("truncated", "the response is truncated"),
    pycurl.E_GOT_NOTHING: ("reset", "the connection was closed without a response"),
    pycurl.E_RECV_ERROR: ("reset", "the connection broke while receiving"),
    pycurl.E_SEND_ERROR: ("reset", "the connection broke while sending"),
    pycurl.E_HTTP2: ("reset", "the HTTP/2 connection broke"),
    _HTTP2_STREAM: ("reset", "the HTTP/2 stream broke"),
}
_HINTS = {
    "connect": "check the host and port, and that the server is running, then run it again",
    "dns": "check the host name and the network connection",
}
_UNTRUSTED = (pycurl.E_SSL_CONNECT_ERROR, pycurl.E_PEER_FAILED_VERIFICATION, 77)
"""The last is CURLE_SSL_CACERT_BADFILE, which PycURL does not name."""
_OWN_AUTHORITY = "for a private certificate authority, give its certificate: -o ca_file=FILE"
_NO_TRUST = "no trusted TLS connection is possible"
_OTHER_NAME = (
    "the certificate of the server is for another name",
    "correct the address, or ask the operator of the server for a certificate with this name",
)
_CERTIFICATE_FAULTS = (
    ("subject name", *_OTHER_NAME),  # libcurl
    ("mismatch, certificate is not valid", *_OTHER_NAME),  # ssl
    (
        "certificate has expired",
        "the certificate of the server has expired",
        "the operator of the server must renew it; if it is valid, set the clock of this machine",
    ),
    (
        "not yet valid",
        "the certificate of the server is not valid yet",
        "check the clock of this machine",
    ),
    (
        "wrong version number",
        _NO_TRUST,
        "the server may speak plain HTTP at this port: try http:// instead of https://",
    ),
    *((sign, _NO_TRUST, _OWN_AUTHORITY) for sign in ("issuer", "self-signed", "self signed")),
)
"""Texts of TLS libraries, what they mean, and what to do; the first that fits counts."""
_BROKEN_HANDSHAKE = ("reset", "broken pipe", "unexpected eof", "syscall", "timed out")


def transport_error(number: int, text: str, uri: str) -> errors.SourceError:
    """Return the error for a transfer that libcurl ended with error ``number``."""
    evidence = request_evidence(uri, text)
    known = (("curl", text), *evidence[1:])  # what says no more than the message
    if number == _TOO_LARGE:
        got, message = text or "too long a line", "the response headers are invalid"
        return bad_response_error(uri, "headers", message, got)
    if number in _UNAVAILABLE and not (number == pycurl.E_RECV_ERROR and "chunk" in text):
        code, message = _UNAVAILABLE[number]
        return errors.SourceUnavailableError(
            message.format(_host_and_port(uri)),
            uri=uri,
            evidence=known if code in _HINTS else evidence,
            hint=_HINTS.get(code, ""),
            code=code,
        )
    if number in _UNTRUSTED:
        is_cut = any(word in text.lower() for word in _BROKEN_HANDSHAKE)
        if number == pycurl.E_SSL_CONNECT_ERROR and is_cut:
            return errors.SourceUnavailableError(
                "the TLS handshake was interrupted", uri=uri, evidence=evidence, code="reset"
            )
        message, hint = certificate_fault(text)
        told = evidence if message in {_NO_TRUST, _OTHER_NAME[0]} else known
        return errors.SourceRefusedError(message, uri=uri, evidence=told, hint=hint, code="tls")
    if number == pycurl.E_URL_MALFORMAT:
        return errors.SourceRefusedError(
            "the URL is invalid", uri=uri, evidence=evidence, code="uri"
        )
    return errors.BadResponseError(
        "the server violates the HTTP protocol", uri=uri, evidence=evidence, code="protocol"
    )


def certificate_fault(text: str) -> tuple[str, str]:
    """Return what a text of a TLS library means, and what to do; empty if that is not known."""
    known = ((meaning, step) for sign, meaning, step in _CERTIFICATE_FAULTS if sign in text)
    return next(known, (_NO_TRUST, ""))


def _host_and_port(uri: str) -> str:
    parts = urlsplit(uri)
    usual = 443 if parts.scheme == "https" else 80
    return parts.netloc if parts.port else f"{parts.netloc}:{usual}"


def too_slow_error(uri: str, got: str, *, is_late: bool) -> errors.SourceUnavailableError:
    """Return the error for a server that is slower than the minimum; late is a whole resource."""
    return errors.SourceUnavailableError(
        "the server is too slow",
        uri=uri,
        evidence=request_evidence(uri, got),
        hint="run it again to continue; to wait longer for each resource: -o timeout=10m"
        if is_late
        else "",
        code="too-slow",
    )


def too_big_error(uri: str, limit: int, got: str) -> errors.BadResponseError:
    """Return the error for a body over its limit, in bytes."""
    return errors.BadResponseError(
        "the response is larger than allowed",
        uri=uri,
        status=200,
        evidence=(("got", got), ("limit", f"{limit} bytes")),
        code="too-big",
    )


def blocked_error(uri: str, address: str) -> errors.SourceRefusedError:
    """Return the error for an address that policy forbids."""
    origin = errors.quoted(origin_of(uri) or "", "URL")
    return errors.SourceRefusedError(
        "the address is not public, and the operator did not allow one for its origin",
        uri=uri,
        evidence=(("tried", address),),
        hint=f"if the Source of a mirror moved there: --moved {origin}; if it also is there, or "
        f"private addresses are meant: --allow-origin {origin}",
        code="egress",
    )


def truncated_error(uri: str, got: str) -> errors.SourceUnavailableError:
    """Return the error for a truncated body."""
    return errors.SourceUnavailableError(
        "the response is truncated",
        uri=uri,
        status=200,
        evidence=request_evidence(uri, got),
        code="truncated",
    )


def unmarked_end_error(uri: str, readings: int) -> errors.SourceUnavailableError:
    """Return the error for a body that may be cut: its end is not marked, and it never repeats."""
    return errors.SourceUnavailableError(
        "nothing says that the response is whole",
        uri=uri,
        status=200,
        evidence=request_evidence(
            uri, f"{readings} different bodies without a length or a marked end"
        ),
        code="unmarked-end",
    )


def bad_response_error(uri: str, code: str, message: str, got: str) -> errors.BadResponseError:
    """Return the error for an invalid response."""
    return errors.BadResponseError(message, uri=uri, evidence=request_evidence(uri, got), code=code)


def with_proxy_evidence(error: errors.SourceError, proxy: str) -> errors.SourceError:
    """Return an error whose evidence names the proxy, if there is one."""
    if proxy and not any(label == "proxy" for label, _ in error.evidence):
        error.evidence = (*error.evidence, ("proxy", proxy))
    return error


def proxy_failure(curl: Any, number: int, text: str, *, uri: str, proxy: str) -> errors.SourceError:
    """Return the error for a transfer by a proxy that libcurl ended with error ``number``."""
    status = int(curl.getinfo(pycurl.HTTP_CONNECTCODE))
    got = f"CONNECT: {status}" if status else text
    evidence: errors.Evidence = (("got", got), ("proxy", proxy))
    if number == _SOCKS:
        reason = int(curl.getinfo(pycurl.PROXY_ERROR))
        if reason in _SOCKS_SECRET:
            return proxy_refusal(NEEDS_SECRET, uri, evidence)
        return proxy_refusal(_FORBIDDEN if reason == _SOCKS_RULE else _BAD_GATEWAY, uri, evidence)
    if status and status not in SUCCESS:
        return proxy_refusal(status, uri, evidence)
    if number in {pycurl.E_COULDNT_CONNECT, pycurl.E_COULDNT_RESOLVE_PROXY}:
        return errors.SourceUnavailableError(
            f"the proxy {proxy} does not answer",
            uri=uri,
            evidence=evidence,
            hint=_DEAD_HINT,
            code="proxy",
        )
    if number in _TLS and curl.getinfo(pycurl.PROXY_SSL_VERIFYRESULT):
        return errors.SourceRefusedError(
            f"the proxy {proxy} has a certificate that is not trusted",
            uri=uri,
            evidence=evidence,
            hint="name the file of its authority: -o ca_file=FILE",
            code="tls",
        )
    return with_proxy_evidence(transport_error(number, text, uri), proxy)


def proxy_refusal(status: int, uri: str, evidence: errors.Evidence) -> errors.SourceError:
    """Return the error for a proxy that refuses a request; the status is the proxy's own."""
    proxy = dict(evidence)["proxy"]
    if status in SERVER_FAULTS:
        return errors.SourceUnavailableError(
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
    return errors.SourceRefusedError(message, uri=uri, evidence=evidence, hint=hint, code="proxy")
