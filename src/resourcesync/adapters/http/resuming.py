"""Ranges: when the rest of a body is requested instead of all, and which answer is it. Pure.

Parts of two bodies must never be joined. So the rest of a body is requested only with a validator
of that body, and accepted only if it begins where the first part stopped, goes to the end, and is
declared to be of that body (RFC 9110 §13.1.5, §14.4, §15.3.7): by the same validator and, unless a
digest of the whole will tell, from the same address and with the same total.
"""

import re
from collections.abc import Mapping
from typing import Final

from resourcesync.adapters.http.origins import RequestState
from resourcesync.adapters.http.response_head import ResponseHead
from resourcesync.ports import PartialBody, Proof, is_sendable
from resourcesync.ports.validators_and_dates import age_when_served

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


def resumable_part(
    head: ResponseHead, errand: RequestState, received: int, total: int | None
) -> PartialBody | None:
    """Return the received part of a body, if its rest may be requested; else it begins again."""
    proof, known = errand.request.proof, errand.part
    if received < MIN_RESUMED_BYTES or (total is None and proof is not Proof.BYTES):
        return None
    validator = validator_of(head) if known is None else known.validator
    if not validator:
        return None
    return PartialBody(length=received, validator=validator, uri=errand.uri, total=total)


def range_fields(part: PartialBody) -> list[str]:
    """Return the fields that request the rest after a part."""
    return [f"Range: bytes={part.length}-", f"If-Range: {part.validator}"]


def is_whole(head: ResponseHead) -> bool:
    """True if a 200 with a ``Content-Range`` is of all bytes; some servers answer a range so."""
    match = _CONTENT_RANGE.fullmatch(head["content-range"])
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
