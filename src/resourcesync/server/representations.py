"""Answers for representations: 200, 206, 304, 412 or 416."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from resourcesync.server.conditions import (
    ResponseValidators,
    allows_range,
    evaluate_preconditions,
    format_http_date,
)
from resourcesync.server.exchange import Headers, HttpReply, HttpRequest
from resourcesync.server.files import FileState
from resourcesync.server.ranges import ByteRange, select_ranges

_SECOND_NS: Final = 1_000_000_000
_CONTENT_FIELDS: Final = {b"content-type", b"content-encoding"}
_BOUNDARY: Final = 16
_RANGES: Final = (b"accept-ranges", b"bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class InMemoryRepresentation:
    """Bytes in memory that are served like a file."""

    body: bytes
    validators: ResponseValidators
    headers: Headers

    def reply_to(self, request: HttpRequest) -> HttpReply:
        """Return the answer to a GET or HEAD."""
        reply = build_reply(request, len(self.body), self.validators, self.headers)
        if not reply.pieces:
            return reply
        slices = [
            piece if isinstance(piece, bytes) else self.body[piece.start : piece.stop]
            for piece in reply.pieces
        ]
        return with_body(reply, slices[0] if len(slices) == 1 else b"".join(slices))


def file_validators(condition: FileState, now: int) -> ResponseValidators:
    """Return the validators of a file whose state is stable.

    The tag is strong: size, both times and inode. Two states can share none of that, since the
    system sets ``changed_ns`` at every write and the writes are more than a tick apart.

    Args:
        condition: The state from ``stat``.
        now: Nanoseconds since 1970.
    """
    tag = (
        f"{condition.size:x}-{condition.modified_ns & (2**64 - 1):x}"
        f"-{condition.changed_ns:x}-{condition.inode:x}"
    )
    # A time in the future is no Last-Modified (RFC 9110 §8.8.2.1).
    modified = condition.modified_ns // _SECOND_NS
    is_told = condition.modified_ns <= now and format_http_date(modified) != ""
    return ResponseValidators(
        etag=f'"{tag}"',
        modified=modified if is_told else None,
        is_strong_date=is_told and now - condition.changed_ns >= 2 * _SECOND_NS,
    )


def build_reply(
    request: HttpRequest, size: int, validators: ResponseValidators, headers: Headers
) -> HttpReply:
    """Return the answer to a GET or HEAD; a 200 or 206 has pieces and no bytes yet.

    Args:
        request: The request.
        size: Bytes of the representation.
        validators: The validators of its present state.
        headers: Further fields of a 200, such as the media type.
    """
    marks = _validator_fields(validators)
    match evaluate_preconditions(request.fields, validators):
        case "failed":
            none = (b"content-length", b"0")
            return HttpReply(status=412, headers=(*_without_type(headers), *marks, none))
        case "not modified":
            return HttpReply(status=304, headers=(*_without_type(headers), *marks))
        case "send":
            return _success_reply(request, size, validators, (*headers, *marks, _RANGES))


def _success_reply(
    request: HttpRequest, size: int, validators: ResponseValidators, headers: Headers
) -> HttpReply:
    field = request.fields.get("range", "") if request.method == "GET" else ""
    if field and not allows_range(request.fields, validators):
        field = ""
    found = select_ranges(field, size) if field else "whole"
    if found == "unsatisfiable":
        none = ((b"content-range", b"bytes */%d" % size), (b"content-length", b"0"))
        return HttpReply(status=416, headers=(*_without_type(headers), *none))
    if found == "whole" or (len(found) > 1 and _is_coded(headers)):
        length = (b"content-length", b"%d" % size)
        return HttpReply(
            status=200, headers=(*headers, length), pieces=(ByteRange(start=0, stop=size),)
        )
    if len(found) > 1:
        return _multipart_reply(found, size, headers)
    [span] = found
    fields = (
        (b"content-range", _content_range(span, size)),
        (b"content-length", b"%d" % span.length),
    )
    return HttpReply(status=206, headers=(*headers, *fields), pieces=found)


def _is_coded(headers: Headers) -> bool:
    """True if bytes are coded: no field can apply to the parts without their delimiters."""
    return any(name == b"content-encoding" for name, _ in headers)


def _multipart_reply(spans: Sequence[ByteRange], size: int, headers: Headers) -> HttpReply:
    """Return several spans as parts of one body (RFC 9110 §14.6)."""
    boundary = secrets.token_hex(_BOUNDARY).encode()  # unknown in advance, so in no file
    kind = b"".join(
        b"content-type: %s\r\n" % chunk for name, chunk in headers if name == b"content-type"
    )
    pieces: list[ByteRange | bytes] = []
    for span in spans:
        head = b"\r\n--%s\r\n%scontent-range: %s\r\n\r\n" % (
            boundary,
            kind,
            _content_range(span, size),
        )
        pieces += (head, span)
    pieces.append(b"\r\n--%s--\r\n" % boundary)
    length = sum(len(piece) if isinstance(piece, bytes) else piece.length for piece in pieces)
    fields = (
        (b"content-type", b"multipart/byteranges; boundary=%s" % boundary),
        (b"content-length", b"%d" % length),
    )
    return HttpReply(status=206, headers=(*_without_type(headers), *fields), pieces=tuple(pieces))


def _content_range(span: ByteRange, size: int) -> bytes:
    return b"bytes %d-%d/%d" % (span.start, span.stop - 1, size)


def with_body(reply: HttpReply, body: bytes) -> HttpReply:
    """Return ``reply`` with the bytes of its pieces."""
    return HttpReply(status=reply.status, headers=reply.headers, body=body)


def _without_type(headers: Headers) -> Headers:
    return tuple(field for field in headers if field[0] not in _CONTENT_FIELDS)


def _validator_fields(validators: ResponseValidators) -> Headers:
    marks: list[tuple[bytes, bytes]] = []
    if validators.etag:
        marks.append((b"etag", validators.etag.encode("ascii")))
    if validators.modified is not None:
        date = format_http_date(validators.modified)
        marks.append((b"last-modified", date.encode("ascii")))
    return tuple(marks)
