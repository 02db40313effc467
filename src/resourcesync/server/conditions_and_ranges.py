"""Answers for representations: 200, 206, 304, 412 or 416, as RFC 9110 has them.

Validators are in §8.8, preconditions in §13 (in the order of §13.2.2), ranges in §14. Starlette's
``FileResponse`` and ``StaticFiles`` know two of the five conditions, and answer 400 and 416 where
§14.2 has a server ignore a ``Range``.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import formatdate
from functools import lru_cache
from typing import Final, Literal

import msgspec
from starlette.responses import Response

from resourcesync.server.asgi import ChunkedResponse, Headers, HttpRequest
from resourcesync.server.files import FileState

_TAG: Final = re.compile(r'(W/)?("[\x21\x23-\x7e\x80-\xff]*")[ \t]*(?:,|$)')
_GAP: Final = re.compile(r"[ \t,]*")

_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"
_TIME: Final = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_DATES: Final = (
    re.compile(
        rf"[A-Z][a-z]{{2}}, (?P<day>[0-9]{{2}}) (?P<month>[A-Z][a-z]{{2}}) (?P<year>[0-9]{{4}})"
        rf" {_TIME} GMT"
    ),
    re.compile(
        rf"[A-Z][a-z]{{5,8}}, (?P<day>[0-9]{{2}})-(?P<month>[A-Z][a-z]{{2}})-(?P<year>[0-9]{{2}})"
        rf" {_TIME} GMT"
    ),
    re.compile(
        rf"[A-Z][a-z]{{2}} (?P<month>[A-Z][a-z]{{2}}) (?P<day>[ 0-9][0-9])"
        rf" {_TIME} (?P<year>[0-9]{{4}})"
    ),
)
_CENTURY_TURNS: Final = 70
_LAST_SECOND: Final = 253_402_300_799
"""9999-12-31T23:59:59Z: later times have no HTTP-date."""

_CONDITIONS: Final = frozenset(
    {"if-match", "if-none-match", "if-modified-since", "if-unmodified-since"}
)
PreconditionOutcome = Literal["send", "not modified", "failed"]


class ResponseValidators(msgspec.Struct, frozen=True, kw_only=True):
    """Validators that distinguish states of a resource."""

    etag: str = ""  # strong, with its quotes; empty when none can be guaranteed
    modified: int | None = None  # seconds since 1970
    is_strong_date: bool = False  # old enough to distinguish states (§8.8.2.2)


def evaluate_preconditions(
    fields: Mapping[str, str], validators: ResponseValidators
) -> PreconditionOutcome:
    """Return the outcome of the preconditions of a GET or HEAD (§13.2.2)."""
    if _CONDITIONS.isdisjoint(fields):
        return "send"
    if not _is_expected(fields, validators):
        return "failed"
    none_match = fields.get("if-none-match")
    if none_match is not None:
        return "not modified" if has_tag(none_match, validators.etag, weak=True) else "send"
    since = parse_http_date(fields.get("if-modified-since", ""))
    if since is not None and validators.modified is not None and validators.modified <= since:
        return "not modified"
    return "send"


def _is_expected(fields: Mapping[str, str], validators: ResponseValidators) -> bool:
    match = fields.get("if-match")
    if match is not None:
        return has_tag(match, validators.etag, weak=False)
    since = parse_http_date(fields.get("if-unmodified-since", ""))
    return since is None or validators.modified is None or validators.modified <= since


def allows_range(fields: Mapping[str, str], validators: ResponseValidators) -> bool:
    """True if ``If-Range`` lets a ``Range`` apply: the client has a part of this very state."""
    field = fields.get("if-range")
    if field is None:
        return True
    if '"' in field:
        return bool(validators.etag) and field.strip(" \t") == validators.etag
    return validators.is_strong_date and parse_http_date(field) == validators.modified


def has_tag(field: str, etag: str, *, weak: bool) -> bool:
    """True if a list of entity tags contains ``etag``; ``*`` contains any."""
    if field.strip(" \t") == "*":
        return True
    if not etag:
        return False
    place = 0
    while True:
        gap = _GAP.match(field, place)
        assert gap is not None  # it matches the empty string too
        tag = _TAG.match(field, gap.end())
        if tag is None:
            return False
        if tag[2] == etag and (weak or tag[1] is None):
            return True
        place = tag.end()


def parse_http_date(text: str) -> int | None:
    """Return the seconds since 1970 of an HTTP-date in any of its three forms, or ``None``."""
    if not text:
        return None
    for form in _DATES:
        match = form.fullmatch(text)
        if match is not None:
            return _to_seconds(match)
    return None


def _to_seconds(match: re.Match[str]) -> int | None:
    year = int(match["year"])
    if len(match["year"]) == len("70"):
        year += 1900 if year >= _CENTURY_TURNS else 2000
    try:
        moment = datetime(
            year,
            _MONTHS.index(match["month"]) // 3 + 1,
            int(match["day"]),
            int(match["hour"]),
            int(match["minute"]),
            # A leap second is the last second of its minute on POSIX clocks.
            min(int(match["second"]), 59),
            tzinfo=UTC,
        )
    except ValueError:
        return None
    return int(moment.timestamp())


@lru_cache(maxsize=128)
def format_http_date(seconds: int) -> str:
    """Return the HTTP-date (IMF-fixdate) of ``seconds`` since 1970; empty when it has none."""
    return formatdate(seconds, usegmt=True) if 0 <= seconds <= _LAST_SECOND else ""


_BYTES: Final = re.compile(r"[ \t]*bytes[ \t]*=", re.IGNORECASE)
_SPEC: Final = re.compile(r"[ \t,]*([0-9]*)-([0-9]*)[ \t,]*", re.ASCII)
_MOST_DIGITS: Final = 18
_LARGEST_NUMBER: Final = 10**_MOST_DIGITS
"""Past the end of any file: longer numbers are read as this one."""


def select_range(field: str, size: int) -> range | Literal["whole", "unsatisfiable"]:
    """Return which bytes of a representation a ``Range`` field selects.

    A field of another unit, of wrong grammar or of several ranges selects the whole, as a server
    may always answer (§14.2).
    """
    unit = _BYTES.match(field)
    spec = None if unit is None else _SPEC.fullmatch(field, unit.end())
    if spec is None or not (spec[1] or spec[2]):
        return "whole"
    if not spec[1]:
        length = _number(spec[2])
        if length == 0:
            return "unsatisfiable"
        # Of an empty file a suffix is satisfiable by the letter, but no Content-Range can say so.
        return range(max(0, size - length), size) if size else "whole"
    start = _number(spec[1])
    end = _number(spec[2]) if spec[2] else _LARGEST_NUMBER
    if end < start:
        return "whole"
    return range(start, min(end + 1, size)) if start < size else "unsatisfiable"


def _number(digits: str) -> int:
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) <= _MOST_DIGITS else _LARGEST_NUMBER


_SECOND_NS: Final = 1_000_000_000
_CONTENT_FIELDS: Final = {b"content-type", b"content-encoding"}
_RANGES: Final = (b"accept-ranges", b"bytes")
_MOST_VALIDATORS: Final = 4096
"""Number of validators whose header fields are cached."""


class InMemoryRepresentation(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes in memory that are served like a file."""

    body: bytes
    validators: ResponseValidators
    headers: Headers

    def response_to(self, request: HttpRequest) -> Response:
        """Return the response to a GET or HEAD."""
        response = plan_response(request, len(self.body), self.validators, self.headers)
        span = response.span
        if span is not None:
            response.fill(
                self.body if len(span) == len(self.body) else self.body[span.start : span.stop]
            )
        return response


def file_validators(condition: FileState, now: int) -> ResponseValidators:
    """Return the validators of a file whose state is stable.

    The tag is strong: size, both times and inode. Two states can share none of that, since the
    system sets ``changed_ns`` at every write and the writes are more than a tick apart.
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


def plan_response(
    request: HttpRequest, size: int, validators: ResponseValidators, headers: Headers
) -> ChunkedResponse:
    """Return the response to a GET or HEAD, without the bytes of its span."""
    marks = _validator_fields(validators)
    match evaluate_preconditions(request.fields, validators):
        case "failed":
            return _empty_response(412, (*headers, *marks))
        case "not modified":
            return ChunkedResponse(304, (*_without_content(headers), *marks))
        case "send":
            return _success_response(request, size, validators, (*headers, *marks, _RANGES))


def _empty_response(status: int, headers: Headers) -> ChunkedResponse:
    return ChunkedResponse(status, (*_without_content(headers), (b"content-length", b"0")))


def _success_response(
    request: HttpRequest, size: int, validators: ResponseValidators, headers: Headers
) -> ChunkedResponse:
    field = "" if request.is_head else request.fields.get("range", "")
    is_whole = not field or not allows_range(request.fields, validators)
    found = "whole" if is_whole else select_range(field, size)
    if found == "unsatisfiable":
        return _empty_response(416, (*headers, (b"content-range", b"bytes */%d" % size)))
    if found == "whole":
        span = None if request.is_head else range(size)
        return ChunkedResponse(200, (*headers, (b"content-length", b"%d" % size)), span)
    place = (b"content-range", b"bytes %d-%d/%d" % (found.start, found.stop - 1, size))
    return ChunkedResponse(206, (*headers, place, (b"content-length", b"%d" % len(found))), found)


def _without_content(headers: Headers) -> Headers:
    return tuple(field for field in headers if field[0] not in _CONTENT_FIELDS)


@lru_cache(maxsize=_MOST_VALIDATORS)
def _validator_fields(validators: ResponseValidators) -> Headers:
    marks: list[tuple[bytes, bytes]] = []
    if validators.etag:
        marks.append((b"etag", validators.etag.encode("ascii")))
    if validators.modified is not None:
        date = format_http_date(validators.modified)
        marks.append((b"last-modified", date.encode("ascii")))
    return tuple(marks)
