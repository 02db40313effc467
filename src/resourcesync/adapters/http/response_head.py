"""The head of a response, parsed strictly, and the check of a resumed body. Pure.

libcurl is lenient where servers disagree with one another about where a body ends. A head that can
be read in two ways is refused. The other fields are parsed on first access: a run of many small
resources reads none.

Parts of two bodies must never be joined. So the rest of a body is requested only with a validator
of that body, and accepted only if it begins where the first part stopped, goes to the end, and is
declared to be of that body (RFC 9110 §13.1.5, §14.4, §15.3.7): by the same validator and, unless a
digest of the whole will tell, from the same address and with the same total.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache, lru_cache
from typing import Final

from resourcesync.errors import BadResponseError
from resourcesync.model.content_codings import content_codings
from resourcesync.ports import PartialBody, Proof
from resourcesync.ports.fetcher import age_when_served

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

    __slots__ = ("_read", "_text", "codings", "has_end", "length", "status", "status_line")

    def __init__(self, status: int, status_line: str, text: str, uri: str) -> None:
        self.status = status
        self.status_line = status_line
        self._text = text
        self._read: dict[str, str] | None = None
        found: dict[str, str] = {}
        for name, left, colon, value in _FRAMING.findall(text.lower()):
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
        self.codings = content_codings(found.get("content-encoding", ""))
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
        match = _field(name).search(self._text)
        return default if match is None else match[1] or ""

    def forget(self, *names: str) -> None:
        """Leave out some fields from now on."""
        fields = self._fields()
        for name in names:
            fields.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields())

    def __len__(self) -> int:
        return len(self._fields())


@cache
def _field(name: str) -> re.Pattern[str]:
    return re.compile(rf"\r\n{re.escape(name)}:[ \t]*([^\r]*[^ \t\r])?", re.ASCII | re.IGNORECASE)


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
