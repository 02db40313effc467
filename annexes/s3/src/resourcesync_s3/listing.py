"""Pages of a bucket's listing (ListObjectsV2 of S3): bytes in, exact keys out.

A client library that lists paths drops or refuses keys that are no paths, such as ``a//b``.
"""

from datetime import datetime
from typing import NamedTuple
from urllib.parse import unquote_plus

from resourcesync.documents.expat import SEPARATOR, XmlDriver, XmlFault
from resourcesync.model.timestamps import parse_w3c

_DEPTH = 2


class ListedObject(NamedTuple):
    """An object of a listing.

    Attributes:
        key: Its whole key, character by character; bytes that are not UTF-8 are surrogates.
        version: Its ``ETag``; empty for none.
        length: Bytes.
        modified: Time of writing, UTC.
    """

    key: str
    version: str
    length: int
    modified: datetime


class ListingPage(NamedTuple):
    """A page of a listing."""

    objects: list[ListedObject]
    next: str


def read_page(data: bytes) -> ListingPage:
    """Read a page."""
    told: dict[str, str] = {}
    rows: list[dict[str, str]] = []
    path: list[str] = []
    text: list[str] = []

    def start(name: str, _attributes: object) -> None:
        path.append(name.rpartition(SEPARATOR)[2])
        text.clear()
        if path[1:] == ["Contents"]:
            rows.append({})

    def end(_name: str) -> None:
        if path[1:-1] == ["Contents"]:
            rows[-1][path[-1]] = "".join(text)
        elif len(path) == _DEPTH:
            told[path[-1]] = "".join(text)
        text.clear()
        if path.pop() != "ListBucketResult" and not path:
            raise ValueError("the answer is no listing")

    driver = XmlDriver(_error_of)
    driver.parser.StartElementHandler = start
    driver.parser.EndElementHandler = end
    driver.parser.CharacterDataHandler = text.append
    driver.read(data)
    following = told.get("NextContinuationToken", "")
    if told.get("IsTruncated", "").strip() == "true" and not following:
        raise ValueError("the listing goes on without a token")
    is_escaped = told.get("EncodingType") == "url"
    return ListingPage([_object(row, is_escaped=is_escaped) for row in rows], following)


def _object(row: dict[str, str], *, is_escaped: bool) -> ListedObject:
    try:
        key, length = row["Key"], int(row["Size"])
        modified = parse_w3c(row["LastModified"].strip())
    except KeyError as error:
        raise ValueError(f"an object without {error}") from error
    if is_escaped:
        key = unquote_plus(key, errors="surrogateescape")
    return ListedObject(key, row.get("ETag", ""), length, modified)


def _error_of(fault: XmlFault) -> Exception:
    return ValueError(f"the listing is {fault.kind.value}: {fault.detail}")
