"""The head of a response, parsed strictly, and the check of a resumed body. Pure.

libcurl is lenient where servers disagree with one another about where a body ends. A head that can
be read in two ways is refused. The other fields are parsed on first access: a run of many small
resources reads none.

Parts of two bodies must never be joined. So the rest of a body is requested only with a validator
of that body, and accepted only if it begins where the first part stopped, goes to the end, and is
declared to be of that body (RFC 9110 §13.1.5, §14.4, §15.3.7): by the same validator and, unless a
digest of the whole will tell, from the same address and with the same total.

The error that the end of a transfer means is made here too, and whether a retry may help.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

import pycurl

from resourcesync import errors
from resourcesync.adapters.http.addresses import origin_of, without_query
from resourcesync.model.content_codings import content_codings
from resourcesync.ports import PartialBody, Proof, age_when_served, is_sendable

LARGEST = 64 * 1024
"""Bytes of all heads of one response together."""

MOST_FIELDS = 100
MOST_INTERIM = 10

LONGEST_WAIT = 86_400.0
"""Seconds: the longest ``Retry-After`` that is obeyed."""

_FINAL = 200
_END = "\r\n\r\n"
_END_LENGTH = len(_END)
_LINE = r"[^\0\r\n]"
_PLAIN_HEAD = re.compile(
    rf"HTTP/[0-9.]+ ([2-9][0-9]{{2}}(?: {_LINE}*)?)\r\n(?:{_LINE}+\r\n){{0,{MOST_FIELDS}}}\r\n\Z"
)
"""A final head and nothing else, as nearly all are; others are read step by step."""

_STATUS = re.compile(r"HTTP/[0-9.]+ ([1-9][0-9]{2}(?: .*)?)\Z")
_FRAMING = re.compile(
    r"\r\n(content-(?:length|encoding)|transfer-encoding)([^:\r]*)(:?)[ \t]*([^\r]*[^ \t\r])?"
)
"""The fields that say where a body ends: name, the rest of the name, colon, value."""

_DIGITS = re.compile(r"[0-9]{1,20}\Z")


class ResponseHead(Mapping[str, str]):
    """The status of a final response, and its fields by their names in lower case.

    The first value of a name counts, but ``link`` joins all of them with commas. ``has_end``: the
    end of the body is marked, by its length, by chunks, or by HTTP/2 and later.
    """

    __slots__ = ("_low", "_read", "_text", "codings", "has_end", "length", "status", "status_line")

    def __init__(self, status: int, status_line: str, text: str, uri: str) -> None:
        self.status = status
        self.status_line = status_line
        self._text, self._low = text, text.lower()  # of Latin-1, so both are of one length
        self._read: dict[str, str] | None = None
        found: dict[str, str] = {}
        for name, left, colon, value in _FRAMING.findall(self._low):
            if left and not left.isspace():
                continue  # another field, whose name begins like this one
            if left or not colon or found.setdefault(name, value) != value:
                raise _bad_head(uri, "framing", f"a field {name} that is not clear")
        self.length: int | None = None
        if "content-length" in found:
            if not _DIGITS.match(found["content-length"]):
                raise _bad_head(uri, "framing", "an invalid Content-Length")
            self.length = int(found["content-length"])
        if "transfer-encoding" in found and (
            found["transfer-encoding"] != "chunked" or self.length is not None
        ):
            raise _bad_head(uri, "framing", "a Transfer-Encoding with an ambiguous end of the body")
        coding = found.get("content-encoding")
        self.codings = content_codings(coding) if coding else ()
        is_chunked = "transfer-encoding" in found
        self.has_end = self.length is not None or is_chunked or not text.startswith("HTTP/1")

    def _fields(self) -> dict[str, str]:
        if self._read is None:
            self._read = {}
            for line in self._text.split("\r\n")[1:]:
                written, _, value = line.partition(":")
                name, value = written.lower(), value.strip(" \t")
                kept = self._read.setdefault(name, value)
                if name == "link" and kept is not value:
                    self._read[name] = f"{kept}, {value}"
        return self._read

    def __getitem__(self, name: str) -> str:
        return self._fields()[name]

    def get(self, name: str, default: str = "") -> str:  # type: ignore[override]  # text only
        """Return one field; a single lookup needs no table of all fields."""
        if self._read is not None or name == "link":
            return self._fields().get(name, default)
        start = self._low.find(f"\r\n{name}:")
        if start < 0:
            return default
        start += len(name) + 3
        end = self._text.find("\r", start)
        return self._text[start : end if end > 0 else None].strip(" \t")

    def forget(self, *names: str) -> None:
        """Leave out some fields from now on."""
        fields = self._fields()
        for name in names:
            fields.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields())

    def __len__(self) -> int:
        return len(self._fields())


def parse_head(text: str, uri: str) -> ResponseHead | None:
    """Parse the lines before the body; ``None`` if no final head is complete."""
    if len(text) > LARGEST:
        raise _bad_head(uri, "headers", f"more than {LARGEST} bytes of headers")
    plain = _PLAIN_HEAD.match(text)
    if plain is not None:
        status, line = _read_status(plain[1])
        return ResponseHead(status, line, text[:-_END_LENGTH], uri)
    return _parse_steps(text, uri)


def _parse_steps(text: str, uri: str) -> ResponseHead | None:
    ends = text.count("\r\n")
    if "\0" in text or text.count("\r") != ends or text.count("\n") != ends:
        raise _bad_head(uri, "framing", "a control character in the head")
    start = 0
    for _ in range(MOST_INTERIM + 1):
        end = text.find(_END, start)
        if end < 0:
            return None
        match = _STATUS.match(text[start : text.find("\r\n", start)])
        if match is None:
            raise _bad_head(uri, "framing", "an invalid status line")
        status, line = _read_status(match[1])
        if status >= _FINAL:
            if text.count("\r\n", start, end) > MOST_FIELDS:
                raise _bad_head(uri, "headers", f"more than {MOST_FIELDS} fields in the head")
            return ResponseHead(status, line, text[start:end], uri)
        start = end + _END_LENGTH
    raise _bad_head(uri, "interim", f"more than {MOST_INTERIM} interim responses")


@lru_cache(256)
def _read_status(line: str) -> tuple[int, str]:
    """Return the status, and the status with its reason, printable."""
    return int(line[:3]), printable(line.strip())


def printable(text: str) -> str:
    """Return a server's text fit for a terminal: short, without control characters."""
    return "".join(mark if mark.isprintable() else "?" for mark in text[:80])


def _bad_head(uri: str, code: str, got: str) -> errors.BadResponseError:
    return errors.BadResponseError(
        "the response headers are invalid", uri=uri, evidence=(("got", got),), code=code
    )


def parse_retry_after(value: str, now: datetime) -> float | None:
    """Return the seconds that a ``Retry-After`` asks for, at most a day.

    A time in the past is 0; ``None`` is an invalid value.
    """
    if value.isascii() and value.isdigit():
        return min(float(value[:12]), LONGEST_WAIT)
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - seldom

    try:
        moment = parsedate_to_datetime(value)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)) - now
    except (ValueError, OverflowError):
        return None
    return min(max(seconds.total_seconds(), 0.0), LONGEST_WAIT)


MIN_RESUMED_BYTES: Final = 16 * 1024
"""Bytes below which a body is quicker fetched again than resumed."""

_OLD_ENOUGH: Final = 60.0
_STRONG_TAG: Final = re.compile(r'"[!#-~]*"')
_CONTENT_RANGE: Final = re.compile(
    r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19})", re.IGNORECASE
)


def validator_of(fields: Mapping[str, str]) -> str:
    """Return the validator of a body; empty if there is none.

    A weak ``ETag`` means nothing for bytes, and rules ``Last-Modified`` out. A ``Last-Modified``
    counts if the response is a minute younger: the resource may change twice in a second.
    """
    tag = fields.get("etag", "")
    if tag:
        return tag if is_sendable(tag) and _STRONG_TAG.fullmatch(tag) else ""
    modified, age = fields.get("last-modified", ""), age_when_served(fields)
    return modified if age is not None and age >= _OLD_ENOUGH and is_sendable(modified) else ""


def range_fields(part: PartialBody) -> list[str]:
    """Return the fields that request the rest after a part."""
    return [f"Range: bytes={part.length}-", f"If-Range: {part.validator}"]


def is_whole(head: ResponseHead) -> bool:
    """True if a 200 is not declared to be a part, as some servers answer a range request."""
    said = head.get("content-range", "")
    if not said:
        return True
    match = _CONTENT_RANGE.fullmatch(said)
    if match is None:
        return False
    first, last, total = map(int, match.groups())
    return first == 0 and last == total - 1 and head.length in (None, total)


def is_remainder(
    head: ResponseHead, part: PartialBody, uri: str, proof: Proof = Proof.NONE
) -> bool:
    """True if a 206 has all bytes after a part, of the same body."""
    match = _CONTENT_RANGE.fullmatch(head.get("content-range", ""))
    if match is None or head.codings:
        return False
    first, last, total = map(int, match.groups())
    if first != part.length or last != total - 1 or last < first:
        return False
    if head.length is not None and head.length != total - first:
        return False
    if proof is not Proof.BYTES and (part.uri, part.total) != (uri, total):
        return False
    return _matches_validator(part.validator, head)


def _matches_validator(validator: str, fields: Mapping[str, str]) -> bool:
    tag = fields.get("etag", "")
    if validator.startswith('"'):
        return tag == validator
    # A 206 need not repeat Last-Modified; one that gives another is of another body, as is one
    # with a tag: the first part had none.
    return not tag and fields.get("last-modified", "") in {"", validator}


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


def status_error(head: ResponseHead, uri: str, retry_after: float | None) -> errors.SourceError:
    """Return the error for a status other than 200."""
    evidence = _evidence(uri, head.status_line)
    status = head.status
    if status in _MISSING:
        return errors.ResourceMissingError(
            "not found on the server", uri=uri, status=status, evidence=evidence
        )
    if status in _REFUSED:
        return errors.SourceRefusedError(
            "the server refuses access",
            uri=uri,
            status=status,
            evidence=evidence,
            hint="check the credentials for this origin"
            if status in {401, 407}
            else "check the address, or ask the operator of the server for access",
        )
    if status in _PASSING or (status in _SERVER_FAULTS and status not in {501, 505}):
        return errors.SourceUnavailableError(
            "the server is temporarily unavailable",
            uri=uri,
            status=status,
            retry_after=retry_after,
            evidence=evidence,
        )
    return errors.BadResponseError(
        "the server answered with an unexpected status", uri=uri, status=status, evidence=evidence
    )


def transport_error(number: int, text: str, uri: str) -> errors.SourceError:
    """Return the error for a transfer that libcurl ended with error ``number``."""
    evidence = _evidence(uri, text)
    known = (("curl", text), *evidence[1:])  # what says no more than the message
    if number == _TOO_LARGE:
        return bad_response_error(
            uri, "headers", "the response headers are invalid", text or "too long a line"
        )
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
    return (
        parts.netloc if parts.port else f"{parts.netloc}:{443 if parts.scheme == 'https' else 80}"
    )


def _evidence(uri: str, got: str) -> errors.Evidence:
    return (("got", got), ("sent", f"GET {without_query(uri)}"))


def too_slow_error(uri: str, got: str, *, is_late: bool) -> errors.SourceUnavailableError:
    """Return the error for a server that is slower than the minimum; late is a whole resource."""
    return errors.SourceUnavailableError(
        "the server is too slow",
        uri=uri,
        evidence=_evidence(uri, got),
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
        evidence=_evidence(uri, got),
        code="truncated",
    )


def unmarked_end_error(uri: str, readings: int) -> errors.SourceUnavailableError:
    """Return the error for a body that may be cut: its end is not marked, and it never repeats."""
    return errors.SourceUnavailableError(
        "nothing says that the response is whole",
        uri=uri,
        status=200,
        evidence=_evidence(uri, f"{readings} different bodies without a length or a marked end"),
        code="unmarked-end",
    )


def bad_response_error(uri: str, code: str, message: str, got: str) -> errors.BadResponseError:
    """Return the error for an invalid response."""
    return errors.BadResponseError(message, uri=uri, evidence=_evidence(uri, got), code=code)
