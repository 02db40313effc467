"""The rest of a body that broke off: what may be asked for, and what may be taken. Pure.

Two bodies must never be joined into one that never was. So the rest is asked for only when
something tells that it is of the same body, and taken only when it begins where we stopped, goes
to the end, and is said to be of that body (RFC 9110 §13.1.5, §14.4, §15.3.7).
"""

import re
from collections.abc import Mapping
from typing import Final

from resourcesync.adapters.http.head import ResponseHead
from resourcesync.ports import PartialBody
from resourcesync.ports.fetcher import age_when_served

MIN_RESUMED_BYTES: Final = 16 * 1024
"""Bytes below which a body is quicker fetched anew than continued."""

_LONGEST: Final = 1024
_OLD_ENOUGH: Final = 60.0
_STRONG_TAG: Final = re.compile(r'"[!#-~]*"')
_CONTENT_RANGE: Final = re.compile(
    r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19})", re.IGNORECASE
)


def validator_of(fields: Mapping[str, str]) -> str:
    """Return what can tell later that a body is still the same; empty when nothing can.

    A weak ``ETag`` means nothing for bytes, and rules ``Last-Modified`` out. A ``Last-Modified``
    counts when the answer is a minute younger: the resource may change twice in a second.
    """
    tag = fields.get("etag", "")
    if tag:
        return tag if len(tag) <= _LONGEST and _STRONG_TAG.fullmatch(tag) else ""
    modified, age = fields.get("last-modified", ""), age_when_served(fields)
    return modified if age is not None and age >= _OLD_ENOUGH and is_sendable(modified) else ""


def is_sendable(validator: str) -> bool:
    """Whether a validator, perhaps from a file, can be sent without ending its field."""
    return 0 < len(validator) <= _LONGEST and validator.isascii() and validator.isprintable()


def range_fields(part: PartialBody) -> list[str]:
    """Return the fields that ask for what comes after a part."""
    return [f"Range: bytes={part.length}-", f"If-Range: {part.validator}"]


def is_remainder(head: ResponseHead, part: PartialBody) -> bool:
    """Whether a 206 brings all that comes after a part, of the same body."""
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
