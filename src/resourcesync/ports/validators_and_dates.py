"""Validators and dates of an HTTP answer: which may be stored for a later conditional request."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import lru_cache, partial
from typing import Final, NamedTuple

from resourcesync.model.timestamps import known_microseconds

_STABLE_AFTER: Final = 1.0
"""Seconds from a change until its ``Last-Modified`` can belong to no later change."""
_MARKS: Final = ",  : GMT"  # of Sun, 06 Nov 1994 08:49:37 GMT (RFC 9110 §5.6.7)
_MONTHS: Final = {
    f" {name} ": f"{number:02}"
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}


class CacheValidators(NamedTuple):
    """Validators for a later conditional request; empty for none.

    Attributes:
        etag: For ``Request.etag``.
        last_modified: For ``Request.last_modified``.
    """

    etag: str
    last_modified: str


_new_validators: Final[Callable[[tuple[str, str]], CacheValidators]] = partial(
    tuple.__new__, CacheValidators
)


def validators_of(headers: Mapping[str, str]) -> CacheValidators:
    """Return the validators of an answer that will not stay the same when the thing changes.

    A ``Last-Modified`` counts when it is a second older than the answer's ``Date``: until then
    there may be another change in its second (RFC 9110 §8.8.2.2). A tag that a server makes of
    such a time is no better, so while it is not old enough a weak ``ETag`` does not count, and
    in the second of the change itself none does.

    Args:
        headers: The answer's fields, names in lower case.
    """
    tag, modified = headers.get("etag", ""), headers.get("last-modified", "")
    age = age_when_served(headers)
    if modified and (age is None or age < _STABLE_AFTER):
        tag = "" if age == 0 or tag.startswith("W/") else tag
        modified = ""
    return _new_validators((tag, modified))


def age_when_served(headers: Mapping[str, str]) -> float | None:
    """Return the seconds from ``Last-Modified`` to ``Date``; ``None`` if one is absent."""
    earlier, later = modified_at(headers), parse_http_date(headers.get("date", ""))
    return None if earlier is None or later is None else (later - earlier).total_seconds()


def served_at(headers: Mapping[str, str]) -> int | None:
    """Return the server's time of an answer (``Date``) in microseconds; ``None`` if absent."""
    return known_microseconds(parse_http_date(headers.get("date", "")))


def modified_at(headers: Mapping[str, str]) -> datetime | None:
    """Return the time of the last change that an answer has; ``None`` if absent."""
    return parse_http_date(headers.get("last-modified", ""))


@lru_cache(maxsize=64)  # most answers of a second have the same Date
def parse_http_date(text: str) -> datetime | None:
    """Return a date of HTTP; ``None`` if it is not valid."""
    if not text:
        return None
    month = _MONTHS.get(text[7:12])
    if month is not None and text[3:5] + text[16:17] + text[22:23] + text[25:] == _MARKS:
        with suppress(ValueError):
            return datetime.fromisoformat(f"{text[12:16]}-{month}-{text[5:7]}T{text[17:25]}Z")
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - for some servers only

    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else None
