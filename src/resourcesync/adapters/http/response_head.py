"""The head of a response, parsed strictly, and the check of a resumed body. Pure.

libcurl is lenient where servers disagree with one another about where a body ends. A head that can
be read in two ways is refused. The other fields are parsed on first access: a run of many small
resources reads none.

Parts of two bodies must never be joined. So the rest of a body is requested only with a validator
of that body, and accepted only if it begins where the first part stopped, goes to the end, and is
declared to be of that body (RFC 9110 §13.1.5, §14.4, §15.3.7).
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Final

from resourcesync.errors import BadResponseError
from resourcesync.ports import PartialBody
from resourcesync.ports.fetcher import age_when_served

LARGEST = 64 * 1024
"""Bytes of all heads of one response together."""

MOST_FIELDS = 100
MOST_INTERIM = 10

LONGEST_WAIT = 86_400.0
"""Seconds: the longest ``Retry-After`` that is obeyed."""

_FINAL = 200
_END = "\r\n\r\n"
_STATUS = re.compile(r"HTTP/[0-9.]+ ([1-9][0-9]{2})(?: (.*))?\Z")
_DIGITS = re.compile(r"[0-9]{1,20}\Z")


class HeaderFields(Mapping[str, str]):
    """The fields of a head by their names in lower case.

    The first value of a name counts, but ``link`` joins all of them with commas.
    """

    __slots__ = ("_lower", "_read", "_text")

    def __init__(self, text: str, lowered: str | None = None) -> None:
        self._text = text
        self._lower = lowered
        self._read: dict[str, str] | None = None

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
        if self._read is None and name != "link":
            if self._lower is None:
                self._lower = self._text.lower()
            start = self._lower.find(f"\r\n{name}:")
            if start < 0:
                return default
            end = self._text.find("\r\n", start + 2)
            return self._text[start + len(name) + 3 : end if end >= 0 else None].strip(" \t")
        return self._fields().get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields())

    def __len__(self) -> int:
        return len(self._fields())


class ResponseHead:
    """The status and the fields of a final response.

    Attributes:
        status: The number.
        fields: The fields.
        length: Bytes of the body as announced, ``None`` if they are not.
        coding: ``Content-Encoding`` in lower case, empty when there is none.
        status_line: The status line, as evidence.
    """

    __slots__ = ("coding", "fields", "length", "status", "status_line")

    def __init__(self, status: int, said: str, text: str, uri: str) -> None:
        self.status = status
        self.status_line = said
        lowered = text.lower()
        self.fields = HeaderFields(text, lowered)
        length = _find(lowered, "\r\ncontent-length", uri)
        transfer = _find(lowered, "\r\ntransfer-encoding", uri)
        if length is not None and not _DIGITS.match(length):
            raise _bad_head(uri, "framing", "an invalid Content-Length")
        if transfer is not None and (transfer != "chunked" or length is not None):
            raise _bad_head(uri, "framing", "a Transfer-Encoding with an ambiguous end of the body")
        self.length = None if length is None else int(length)
        self.coding = _find(lowered, "\r\ncontent-encoding", uri) or ""


def parse_head(text: str, uri: str) -> ResponseHead | None:
    """Parse the lines before the body; ``None`` if no final head is complete.

    Raises:
        BadResponseError: ``headers``: they are too large; ``interim``: too many interim responses;
            ``framing``: lines that are no head, or an ambiguous end of the body.
    """
    if len(text) > LARGEST:
        raise _bad_head(uri, "headers", f"more than {LARGEST} bytes of headers")
    ends = text.count("\r\n")
    if "\0" in text or text.count("\r") != ends or text.count("\n") != ends:
        raise _bad_head(uri, "framing", "a control character in the head")
    start = 0
    for _ in range(MOST_INTERIM + 1):
        end = text.find(_END, start)
        if end < 0:
            return None
        status, said = _read_status(text[start : text.find("\r\n", start)])
        if status >= _FINAL:
            return _read_final(status, said, text[start:end], uri)
        if not status:
            raise _bad_head(uri, "framing", "an invalid status line")
        start = end + len(_END)
    raise _bad_head(uri, "interim", f"more than {MOST_INTERIM} interim responses")


@lru_cache(256)
def _read_status(line: str) -> tuple[int, str]:
    """Return the status, and the status with its reason; 0 if it is no status line."""
    match = _STATUS.match(line)
    if match is None:
        return 0, ""
    return int(match[1]), printable(f"{match[1]} {match[2] or ''}".strip())


def printable(text: str) -> str:
    """Return a server's text fit for a terminal: short, without control characters."""
    return "".join(mark if mark.isprintable() else "?" for mark in text[:80])


def _read_final(status: int, said: str, text: str, uri: str) -> ResponseHead:
    if text.count("\r\n") > MOST_FIELDS:
        raise _bad_head(uri, "headers", f"more than {MOST_FIELDS} fields in the head")
    return ResponseHead(status, said, text, uri)


def _find(lowered: str, start: str, uri: str) -> str | None:
    """Return the one value of a field; ``start`` is its name after the end of the line before."""
    found = None
    at = lowered.find(start)
    while at >= 0:
        begin = at + len(start)
        end = lowered.find("\r\n", begin)
        name_left, colon, value = lowered[begin : end if end >= 0 else None].partition(":")
        value = value.strip(" \t")
        if not name_left.strip(" \t") and (name_left or not colon or found not in {None, value}):
            raise _bad_head(uri, "framing", f"a field {start.strip()} that is not clear")
        if not name_left:
            found = value
        at = lowered.find(start, begin)
    return found


def _bad_head(uri: str, code: str, got: str) -> BadResponseError:
    return BadResponseError(
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

_LONGEST: Final = 1024
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
        return tag if len(tag) <= _LONGEST and _STRONG_TAG.fullmatch(tag) else ""
    modified, age = fields.get("last-modified", ""), age_when_served(fields)
    return modified if age is not None and age >= _OLD_ENOUGH and is_sendable(modified) else ""


def is_sendable(validator: str) -> bool:
    """True if a validator, perhaps from a file, can be sent without ending its header field."""
    return 0 < len(validator) <= _LONGEST and validator.isascii() and validator.isprintable()


def range_fields(part: PartialBody) -> list[str]:
    """Return the fields that request the rest after a part."""
    return [f"Range: bytes={part.length}-", f"If-Range: {part.validator}"]


def is_remainder(head: ResponseHead, part: PartialBody) -> bool:
    """True if a 206 has all bytes after a part, of the same body."""
    match = _CONTENT_RANGE.fullmatch(head.fields.get("content-range", ""))
    if match is None or head.coding not in {"", "identity"}:
        return False
    first, last, total = int(match[1]), int(match[2]), int(match[3])
    if first != part.length or last != total - 1 or last < first:
        return False
    if head.length is not None and head.length != total - first:
        return False
    return _matches_validator(part.validator, head.fields)


def _matches_validator(validator: str, fields: Mapping[str, str]) -> bool:
    if validator.startswith('"'):
        return fields.get("etag", "") == validator
    # A 206 need not repeat Last-Modified; one that gives another is of another body.
    return fields.get("last-modified", "") in {"", validator}
