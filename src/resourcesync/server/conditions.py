"""Conditional requests: the validators of a representation, and a request's preconditions.

RFC 9110 §8.8 (validators) and §13 (preconditions, in the order of §13.2.2).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal

_TAG: Final = re.compile(r'(W/)?("[\x21\x23-\x7e\x80-\xff]*")[ \t]*(?:,|$)')
_GAP: Final = re.compile(r"[ \t,]*")

_MONTHS: Final = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
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

PreconditionOutcome = Literal["send", "not modified", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseValidators:
    """Validators that distinguish states of a resource.

    Attributes:
        etag: A strong entity tag with its quotes; empty when none can be guaranteed.
        modified: Last-Modified in seconds since 1970; ``None`` when there is none.
        is_strong_date: True if ``modified`` is old enough to distinguish states (§8.8.2.2).
    """

    etag: str = ""
    modified: int | None = None
    is_strong_date: bool = False


def evaluate_preconditions(
    fields: Mapping[str, str], validators: ResponseValidators
) -> PreconditionOutcome:
    """Return the outcome of the preconditions of a GET or HEAD (§13.2.2).

    Args:
        fields: The request's fields by lower-case name, repeated ones joined by commas.
        validators: Those of the present representation.

    Returns:
        ``send`` for 200 or 206, ``not modified`` for 304, ``failed`` for 412.
    """
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
    """True if a list of entity tags contains ``etag``; ``*`` contains any. One pass over the field.

    Args:
        field: The value of ``If-Match`` or ``If-None-Match``; the rest after a fault is not read.
        etag: A strong tag; the empty one is in no list.
        weak: True if a weak tag in the list may match (§8.8.3.2).
    """
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
            _MONTHS.index(match["month"]) + 1,
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
    if not 0 <= seconds <= _LAST_SECOND:
        return ""
    moment = datetime.fromtimestamp(seconds, UTC)
    return (
        f"{_DAYS[moment.weekday()]}, {moment.day:02d} {_MONTHS[moment.month - 1]} {moment.year:04d}"
        f" {moment.hour:02d}:{moment.minute:02d}:{moment.second:02d} GMT"
    )
