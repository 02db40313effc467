"""The error that the end of a transfer means, and whether a retry may help. Pure."""

from urllib.parse import urlsplit

import pycurl

from resourcesync.adapters.http.addresses import origin_of, without_query
from resourcesync.adapters.http.response_head import ResponseHead
from resourcesync.errors import (
    BadResponseError,
    Evidence,
    ResourceMissingError,
    SourceError,
    SourceRefusedError,
    SourceUnavailableError,
    quoted,
)

REDIRECTS = frozenset({301, 302, 303, 307, 308})
PUSHBACK = frozenset({429, 503})
"""Statuses of a server that gets too many requests."""

_PASSING = frozenset({408, 429})
_SERVER_FAULTS = range(500, 600)
_MISSING = frozenset({404, 410})
_REFUSED = frozenset({401, 403, 407, 451})

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
_LATER = "try again later"
_HINTS = {
    "connect": "check the host and port, and that the server is running, then run it again",
    "dns": "check the host name and the network connection",
}
_UNTRUSTED = (pycurl.E_SSL_CONNECT_ERROR, pycurl.E_PEER_FAILED_VERIFICATION, 77)
"""The last is CURLE_SSL_CACERT_BADFILE, which PycURL does not name."""
_OWN_AUTHORITY = "for a private certificate authority, give its certificate: -o ca_file=FILE"
_NO_TRUST = "no trusted TLS connection is possible"
_CERTIFICATE_FAULTS = (
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
)
"""Texts of TLS libraries, what they mean, and what to do."""
_BROKEN_HANDSHAKE = ("reset", "broken pipe", "unexpected eof", "syscall", "timed out")


def status_error(head: ResponseHead, uri: str, retry_after: float | None) -> SourceError:
    """Return the error for a status other than 200."""
    evidence = _evidence(uri, head.status_line)
    status = head.status
    if status in _MISSING:
        return ResourceMissingError(
            "not found on the server", uri=uri, status=status, evidence=evidence
        )
    if status in _REFUSED:
        return SourceRefusedError(
            "the server refuses access",
            uri=uri,
            status=status,
            evidence=evidence,
            hint="check the credentials for this origin" if status in {401, 407} else "",
        )
    if status in _PASSING or (status in _SERVER_FAULTS and status not in {501, 505}):
        return SourceUnavailableError(
            "the server is temporarily unavailable",
            uri=uri,
            status=status,
            retry_after=retry_after,
            evidence=evidence,
        )
    return BadResponseError(
        "the server answered with an unexpected status", uri=uri, status=status, evidence=evidence
    )


def transport_error(number: int, text: str, uri: str) -> SourceError:
    """Return the error for a transfer that libcurl ended with error ``number``."""
    evidence = _evidence(uri, text)
    if number == _TOO_LARGE:
        return bad_response_error(
            uri, "headers", "the response headers are invalid", text or "too long a line"
        )
    if number in _UNAVAILABLE and not (number == pycurl.E_RECV_ERROR and "chunk" in text):
        code, message = _UNAVAILABLE[number]
        return SourceUnavailableError(
            message.format(_host_and_port(uri)),
            uri=uri,
            evidence=evidence,
            hint=_HINTS.get(code, _LATER),
            code=code,
        )
    if number in _UNTRUSTED:
        if number == pycurl.E_SSL_CONNECT_ERROR and _was_cut(text):
            return SourceUnavailableError(
                "the TLS handshake was interrupted", uri=uri, evidence=evidence, code="reset"
            )
        return _untrusted_error(text, uri)
    if number == pycurl.E_URL_MALFORMAT:
        return SourceRefusedError("the URL is invalid", uri=uri, evidence=evidence, code="uri")
    return BadResponseError(
        "the server violates the HTTP protocol", uri=uri, evidence=evidence, code="protocol"
    )


def _untrusted_error(text: str, uri: str) -> SourceRefusedError:
    message, hint = _NO_TRUST, ""
    if "issuer" in text or "self-signed" in text or "self signed" in text:
        hint = _OWN_AUTHORITY
    for sign, meaning, step in _CERTIFICATE_FAULTS:
        if sign in text:
            message, hint = meaning, step
    return SourceRefusedError(
        message, uri=uri, evidence=_evidence(uri, text), hint=hint, code="tls"
    )


def _host_and_port(uri: str) -> str:
    parts = urlsplit(uri)
    return (
        parts.netloc if parts.port else f"{parts.netloc}:{443 if parts.scheme == 'https' else 80}"
    )


def _was_cut(text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in _BROKEN_HANDSHAKE)


def _evidence(uri: str, got: str) -> Evidence:
    return (("got", got), ("sent", f"GET {without_query(uri)}"))


def too_slow_error(uri: str, got: str, *, is_late: bool) -> SourceUnavailableError:
    """Return the error for a server that is slower than the minimum; late is a whole resource."""
    return SourceUnavailableError(
        "the server is too slow",
        uri=uri,
        evidence=_evidence(uri, got),
        hint="run it again to continue; to wait longer for each resource: -o timeout=10m"
        if is_late
        else "",
        code="too-slow",
    )


def too_big_error(uri: str, limit: int, got: str) -> BadResponseError:
    """Return the error for a body over its limit, in bytes."""
    return BadResponseError(
        "the response is larger than allowed",
        uri=uri,
        status=200,
        evidence=(("got", got), ("limit", f"{limit} bytes")),
        code="too-big",
    )


def blocked_error(uri: str, address: str) -> SourceRefusedError:
    """Return the error for an address that policy forbids."""
    return SourceRefusedError(
        "the address is not public, and the operator did not allow one for its origin",
        uri=uri,
        evidence=(("tried", address),),
        hint="name the origin, or allow private addresses, if this is meant: "
        f"--allow-origin {quoted(origin_of(uri) or '', 'URL')}",
        code="egress",
    )


def truncated_error(uri: str, got: str) -> SourceUnavailableError:
    """Return the error for a truncated body."""
    return SourceUnavailableError(
        "the response is truncated",
        uri=uri,
        status=200,
        evidence=_evidence(uri, got),
        code="truncated",
    )


def unmarked_end_error(uri: str, readings: int) -> SourceUnavailableError:
    """Return the error for a body that may be cut: its end is not marked, and it never repeats."""
    return SourceUnavailableError(
        "nothing says that the response is whole",
        uri=uri,
        status=200,
        evidence=_evidence(uri, f"{readings} different bodies without a length or a marked end"),
        code="unmarked-end",
    )


def bad_response_error(uri: str, code: str, message: str, got: str) -> BadResponseError:
    """Return the error for an invalid response."""
    return BadResponseError(message, uri=uri, evidence=_evidence(uri, got), code=code)
