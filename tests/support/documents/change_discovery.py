"""The demands of the IIIF Change Discovery API 1.0 on what a publisher writes."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

CONTEXT = "http://iiif.io/api/discovery/1/context.json"
KINDS = ("Create", "Update", "Delete", "Move", "Add", "Remove", "Refresh")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")

Json = dict[str, Any]
Fetch = Callable[[str], bytes]


class WrittenStream:
    """A stream as a client finds it from the address of its collection.

    Args:
        uri: The address.
        fetch: Returns the bytes at an address.
    """

    def __init__(self, uri: str, fetch: Fetch) -> None:
        self.uri = uri
        self.collection: Json = json.loads(fetch(uri))
        self.pages: list[Json] = []
        self._texts: dict[str, bytes] = {}
        following = self.collection["last"]["id"]
        while following:
            assert following not in self._texts, "the pages lead in a circle"
            self._texts[following] = fetch(following)
            page = json.loads(self._texts[following])
            self.pages.insert(0, page | {"fetched": following})
            following = page.get("prev", {}).get("id", "")

    @property
    def activities(self) -> list[Json]:
        """Return all activities, oldest first."""
        return [item for page in self.pages for item in page["orderedItems"]]

    @property
    def closed(self) -> Mapping[str, bytes]:
        """Return the bytes of the pages that have a next one."""
        last = self.collection["last"]["id"]
        return {uri: text for uri, text in self._texts.items() if uri != last}

    def objects(self) -> dict[str, str]:
        """Return the type of each object that exists, as the algorithm of §3.5.2 finds them."""
        seen: set[str] = set()
        found: dict[str, str] = {}
        for item in reversed(self.activities):
            if item["type"] == "Refresh":
                break
            thing = item["object"]
            if thing["id"] not in seen and item["type"] != "Delete":
                found[thing["id"]] = thing["type"]
            seen.add(thing["id"])
        return found


def _is_web(value: object) -> bool:
    return isinstance(value, str) and re.match(r"https?://[^\s]+$", value) is not None


def _is_reference(value: object, kind: str) -> bool:
    return isinstance(value, dict) and _is_web(value.get("id")) and value.get("type") == kind


def _documents(stream: WrittenStream) -> Iterator[Json]:
    yield stream.collection
    yield from stream.pages


def _time_of(item: Json) -> str:
    text = str(item.get("endTime", item.get("startTime")))
    return text if "." in text else text.replace("Z", ".000000Z")


def _page(check: Callable[[Json], bool]) -> Callable[[WrittenStream], bool]:
    return lambda stream: all(map(check, stream.pages))


def _activity(check: Callable[[Json], bool]) -> Callable[[WrittenStream], bool]:
    return lambda stream: all(map(check, stream.activities))


MUSTS: dict[str, Callable[[WrittenStream], bool]] = {
    "2.1.2 lists are ordered, the most recent last": lambda stream: (
        (times := [_time_of(item) for item in stream.activities]) == sorted(times)
    ),
    "3.1 a collection is at its id": lambda stream: stream.collection["id"] == stream.uri,
    "3.1 id of a collection is an HTTP(S) URI": lambda stream: _is_web(stream.collection["id"]),
    "3.1 type of a collection": lambda stream: stream.collection["type"] == "OrderedCollection",
    "3.1 first, if given": lambda stream: _is_reference(
        stream.collection.get("first"), "OrderedCollectionPage"
    ),
    "3.1 first is the first page": lambda stream: (
        stream.collection["first"]["id"] == stream.pages[0]["id"]
    ),
    "3.1 last": lambda stream: _is_reference(
        stream.collection.get("last"), "OrderedCollectionPage"
    ),
    "3.1 totalItems is a number": lambda stream: (
        type(stream.collection["totalItems"]) is int and stream.collection["totalItems"] >= 0
    ),
    "3.1 totalItems is that of all activities": lambda stream: (
        stream.collection["totalItems"] == len(stream.activities)
    ),
    "3.2 at least one page": lambda stream: bool(stream.pages),
    "3.2 a page is at its id": _page(lambda page: page["id"] == page["fetched"]),
    "3.2 type of a page": _page(lambda page: page["type"] == "OrderedCollectionPage"),
    "3.2 partOf is the collection": lambda stream: all(
        _is_reference(page["partOf"], "OrderedCollection") and page["partOf"]["id"] == stream.uri
        for page in stream.pages
    ),
    "3.2 startIndex counts the activities before": lambda stream: (
        [page["startIndex"] for page in stream.pages]
        == [
            sum(len(before["orderedItems"]) for before in stream.pages[:number])
            for number in range(len(stream.pages))
        ]
    ),
    "3.2 next leads to the next page, and the last page has none": lambda stream: (
        [page.get("next", {}).get("id") for page in stream.pages]
        == [*(page["id"] for page in stream.pages[1:]), None]
    ),
    "3.2 prev is there, except on the first page": lambda stream: all(
        _is_reference(page.get("prev"), "OrderedCollectionPage") for page in stream.pages[1:]
    ),
    "3.2 orderedItems has at least one": _page(lambda page: len(page["orderedItems"]) >= 1),
    "3.3 type of an activity": _activity(lambda item: item["type"] in KINDS),
    "3.3 object, except of a refresh": _activity(
        lambda item: (
            (item["type"] == "Refresh" and not {"object", "target"} & item.keys())
            or (_is_web(item["object"]["id"]) and bool(item["object"]["type"]))
        )
    ),
    "3.3 endTime is in UTC, and there at level 2": _activity(
        lambda item: item["type"] == "Refresh" or _TIME.fullmatch(item["endTime"]) is not None
    ),
    "3.3 startTime is in UTC, and not after endTime": _activity(
        lambda item: (
            "startTime" not in item
            or (
                _TIME.fullmatch(item["startTime"]) is not None
                and _time_of({"endTime": item["startTime"]}) <= _time_of(item)
            )
        )
    ),
    "3.4.1 @context is there, and first": lambda stream: all(
        document["@context"] == CONTEXT and next(iter(document)) == "@context"
        for document in _documents(stream)
    ),
}
"""Each demand with its section, and its check."""


def faults(stream: WrittenStream) -> list[str]:
    """Return the demands that a stream does not meet."""
    return [demand for demand, check in MUSTS.items() if not _is_met(check, stream)]


def _is_met(check: Callable[[WrittenStream], bool], stream: WrittenStream) -> bool:
    try:
        return check(stream)
    except (KeyError, IndexError, TypeError, AttributeError):  # not even of that form
        return False
