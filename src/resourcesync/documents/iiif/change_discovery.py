"""Documents of the IIIF Change Discovery API 1.0: one collection, its pages, their activities.

Reading is liberal: a text in the place of an object is its ``id``, ``@id`` and ``@type`` are
accepted, and what is not understood is ignored (§3). A writer gets exactly what the specification
demands, one activity on a line, the same bytes for the same values.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from resourcesync.errors import DocumentError, NotAListError
from resourcesync.model.timestamps import (
    format_w3c,
    parse_loosely,
    parse_w3c,
    to_microseconds,
)

CONTEXT: Final = "http://iiif.io/api/discovery/1/context.json"
"""The JSON-LD context of the specification (§3.4.1)."""
STREAM_START: Final = f'{{"@context":"{CONTEXT}","id":'.encode()
"""The first bytes of each document that is written here."""
COLLECTION: Final = "OrderedCollection"
PAGE: Final = "OrderedCollectionPage"
_BOM: Final = b"\xef\xbb\xbf"
_MOST_DESCRIPTIONS: Final = 10
_MOST_CHARACTERS: Final = 2_000
_ITEMS_START: Final = b'"orderedItems":[\n'
_ITEMS_END: Final = b"\n]}\n"
_BETWEEN: Final = b",\n"


class ActivityKind(StrEnum):
    """The types of activities that the specification defines (§3.3)."""

    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    MOVE = "Move"
    ADD = "Add"
    REMOVE = "Remove"
    REFRESH = "Refresh"


_KINDS: Final = {kind.value: kind for kind in ActivityKind}


class Description(NamedTuple):
    """A document about an object (``seeAlso``).

    Attributes:
        uri: Its URI.
        media_type: Its ``format``; empty if unknown.
    """

    uri: str
    media_type: str


class ActivityObject(NamedTuple):
    """The thing that an activity is about.

    Attributes:
        id: Its URI; empty if it has none.
        type: Its class, such as ``Manifest``; empty if unknown.
        format: Its full media type; empty if unknown.
        canonical: The URI that identifies it whatever its address; empty if unknown.
        descriptions: Documents about it, ten at most.
    """

    id: str
    type: str = ""
    format: str = ""
    canonical: str = ""
    descriptions: tuple[Description, ...] = ()


_NO_OBJECT: Final = ActivityObject("")


class Activity(NamedTuple):
    """One activity.

    Attributes:
        kind: Its type; ``None`` for a type that the specification does not define.
        object: The thing that it is about; for a move, under its old address.
        target: For a move, the thing under its new address; for ``Add``, the stream.
        origin: For ``Remove``, the URI of the stream; empty if not given.
        time: ``endTime``, or for a refresh ``startTime``, in microseconds; ``None`` if it has none,
            or none that can be read.
    """

    kind: ActivityKind | None
    object: ActivityObject
    target: ActivityObject = _NO_OBJECT
    origin: str = ""
    time: int | None = None


class ActivityCollection(NamedTuple):
    """The entry point of a stream (§3.1). Addresses are as written, empty where they are missing.

    Attributes:
        id: Its own address.
        first: The address of the page with the oldest activities.
        last: The address of the page with the newest.
        total: ``totalItems``; ``None`` if it is not given.
        has_items: True if it has activities itself, as a page has.
    """

    id: str
    first: str
    last: str
    total: int | None
    has_items: bool


class ActivityPage(NamedTuple):
    """One page of a stream (§3.2). Addresses are as written, empty where they are missing.

    Attributes:
        id: Its own address.
        previous: The address of the page with the activities before.
        start: ``startIndex``; ``None`` if it is not given.
        items: The JSON text of each activity, oldest first.
    """

    id: str
    previous: str
    start: int | None
    items: Sequence[bytes | msgspec.Raw]


class _Envelope(msgspec.Struct):
    """The members of a collection or a page; anything may be in them."""

    id: Any = None
    at_id: Any = msgspec.field(name="@id", default=None)
    type: Any = None
    at_type: Any = msgspec.field(name="@type", default=None)
    first: Any = None
    last: Any = None
    prev: Any = None
    total: Any = msgspec.field(name="totalItems", default=None)
    start: Any = msgspec.field(name="startIndex", default=None)
    items: list[msgspec.Raw] | None = msgspec.field(name="orderedItems", default=None)


_decode_envelope: Final = msgspec.json.Decoder(_Envelope).decode
_BAD: Final = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


def read_collection(text: bytes, uri: str) -> ActivityCollection:
    """Return a collection.

    Args:
        text: The document.
        uri: Its address, for errors.

    Raises:
        DocumentError: It is not JSON, or not a collection.
    """
    found = _read(text, uri, COLLECTION)
    return ActivityCollection(
        id=_id_of(found),
        first=_address(found.first),
        last=_address(found.last),
        total=_count(found.total),
        has_items=found.items is not None,
    )


def read_page(text: bytes, uri: str) -> ActivityPage:
    """Return a page; its activities are not read yet.

    Args:
        text: The document.
        uri: Its address, for errors.

    Raises:
        DocumentError: It is not JSON, or has no ``orderedItems``.
    """
    found = _read(text, uri, PAGE)
    if found.items is None:
        raise NotAListError("a page without orderedItems", uri=uri)
    return ActivityPage(
        id=_id_of(found),
        previous=_address(found.prev),
        start=_count(found.start),
        items=found.items,
    )


def _read(text: bytes, uri: str, kind: str) -> _Envelope:
    try:
        found = _decode_envelope(text.removeprefix(_BOM))
    except _BAD as error:
        is_page = text.lstrip()[:1] == b"<"
        raise NotAListError(
            "an HTML or XML page, no JSON" if is_page else f"no JSON of the expected form: {error}",
            uri=uri,
        ) from error
    given = _type_of(found.type if found.type is not None else found.at_type)
    if given not in {COLLECTION, PAGE} or (kind == COLLECTION and given != kind):
        raise DocumentError(
            f"expected the type {kind}, got {given[:100] or 'none'}", uri=uri, code="not-a-list"
        )
    return found


def _id_of(found: _Envelope) -> str:
    return _text(found.id if found.id is not None else found.at_id)


def read_activity(text: bytes | msgspec.Raw) -> Activity | None:
    """Return an activity; ``None`` if it has no type, or no object where one is needed."""
    try:
        found = msgspec.json.decode(text)
    except _BAD:
        return None
    if not isinstance(found, dict):
        return None
    name = _type_of(found.get("type", found.get("@type")))
    kind = _KINDS.get(name)
    time = found.get("endTime")
    if kind is ActivityKind.REFRESH:
        time = found.get("startTime", time)
    activity = Activity(
        kind=kind,
        object=_object(found.get("object")),
        target=_object(found.get("target")),
        origin=_address(found.get("origin")),
        time=_time(time),
    )
    if not name or (kind not in {None, ActivityKind.REFRESH} and not activity.object.id):
        return None
    return None if kind is ActivityKind.MOVE and not activity.target.id else activity


def _object(found: object) -> ActivityObject:
    if found is None:
        return _NO_OBJECT
    if not isinstance(found, dict):
        return ActivityObject(_text(found))
    described = found.get("seeAlso")
    several = described if isinstance(described, list) else [described] if described else []
    descriptions = [
        Description(_address(item), _text(item.get("format")) if isinstance(item, dict) else "")
        for item in several[:_MOST_DESCRIPTIONS]
    ]
    return ActivityObject(
        id=_address(found),
        type=_type_of(found.get("type", found.get("@type"))),
        format=_text(found.get("format")),
        canonical=_text(found.get("canonical")),
        descriptions=tuple(item for item in descriptions if _is_web_address(item.uri)),
    )


def _address(found: object) -> str:
    """Return the ``id`` of an object, or a text that stands for it."""
    if isinstance(found, dict):
        return _text(found.get("id", found.get("@id")))
    return _text(found)


def _type_of(found: object) -> str:
    if isinstance(found, list):
        return next((name for name in map(_text, found) if name), "")
    return _text(found)


def _text(found: object) -> str:
    return found.strip() if isinstance(found, str) else ""


def _is_web_address(text: str) -> bool:
    return text.startswith(("http://", "https://")) and len(text) <= _MOST_CHARACTERS


def _count(found: object) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def _time(found: object) -> int | None:
    if not isinstance(found, str):
        return None
    for parse in (parse_w3c, parse_loosely):
        try:
            moment = parse(found.strip())
        except (ValueError, OverflowError):
            continue
        return None if moment.fold else to_microseconds(moment)
    return None


def write_activity(
    kind: ActivityKind,
    time: datetime,
    thing: ActivityObject | None = None,
    started: datetime | None = None,
) -> bytes:
    """Return an activity as one line.

    Args:
        kind: Its type.
        time: The time at which it ended; of a refresh, at which it began.
        thing: The thing that it is about; none for a refresh.
        started: The time at which it began, if that is known.
    """
    entry: dict[str, object] = {"type": kind.value}
    if thing is not None:
        known = {"id": thing.id, "type": thing.type}
        entry["object"] = known | {"format": thing.format} if thing.format else known
    if started is not None:
        entry["startTime"] = format_w3c(started)
    entry["startTime" if kind is ActivityKind.REFRESH else "endTime"] = format_w3c(time)
    return msgspec.json.encode(entry)


class PageAddresses(NamedTuple):
    """The addresses in a page.

    Attributes:
        page: Its own.
        collection: That of its collection.
        previous: That of the page before; empty for the first one.
        next: That of the page after; empty for the last one.
    """

    page: str
    collection: str
    previous: str = ""
    next: str = ""


def write_page(addresses: PageAddresses, start: int, activities: Sequence[bytes]) -> bytes:
    """Return a page.

    Args:
        addresses: The addresses in it.
        start: The number of activities in the pages before.
        activities: Lines of ``write_activity``, at least one, oldest first.
    """
    head: dict[str, object] = {
        "@context": CONTEXT,
        "id": addresses.page,
        "type": PAGE,
        "startIndex": start,
        "partOf": {"id": addresses.collection, "type": COLLECTION},
    }
    for name, uri in (("prev", addresses.previous), ("next", addresses.next)):
        if uri:
            head[name] = {"id": uri, "type": PAGE}
    opening = msgspec.json.encode(head).removesuffix(b"}") + b"," + _ITEMS_START
    return opening + _BETWEEN.join(activities) + _ITEMS_END


def written_activities(page: bytes) -> list[bytes]:
    """Return the lines of activities in a page of ours; none if it is not of that form."""
    _, start, rest = page.partition(_ITEMS_START)
    if not (start and rest.endswith(_ITEMS_END)):
        return []
    return rest.removesuffix(_ITEMS_END).split(_BETWEEN)


def write_collection(uri: str, first: str, last: str, total: int) -> bytes:
    """Return a collection.

    Args:
        uri: Its own address.
        first: The address of its first page.
        last: The address of its last page.
        total: The number of its activities.
    """
    entry = {
        "@context": CONTEXT,
        "id": uri,
        "type": COLLECTION,
        "totalItems": total,
        "first": {"id": first, "type": PAGE},
        "last": {"id": last, "type": PAGE},
    }
    return msgspec.json.encode(entry) + b"\n"
