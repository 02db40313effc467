"""A publisher of IIIF Change Discovery in memory, written from the specification alone."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from resourcesync.errors import SourceUnavailableError
from resourcesync.ports import FetchRequest
from tests.support.worlds.network import Answer, MemoryFetcher

HOME = "https://iiif.example/"
ALL = f"{HOME}activity/all-changes"
START = datetime(2026, 3, 1, tzinfo=UTC)

Json = dict[str, Any]


def activity(kind: str, name: str, time: str | None, **more: Any) -> Json:
    """Return an activity about a manifest."""
    made: Json = {"type": kind, "object": manifest(name)} | more
    return made if time is None else made | {"endTime": time}


def manifest(name: str) -> Json:
    """Return the reference to a manifest."""
    return {"id": uri_of(name), "type": "Manifest"}


def uri_of(name: str) -> str:
    """Return the URI of a manifest."""
    return f"{HOME}iiif/{name}/manifest"


def moment(number: int) -> str:
    """Return the time of the activity of a number."""
    return f"{START + timedelta(minutes=number):%Y-%m-%dT%H:%M:%SZ}"


class ActivityStream:
    """Activities in pages of some, the newest last.

    Attributes:
        activities: All of them, oldest first.
        size: The number of activities of a page.
        changed: Called with a document before it is sent, and its address.
        failing: The number of answers until it fails; ``None``: it does not.
        dropped: The number of pages at the beginning that are withdrawn.
        hurried: Called before each answer, with the number of answers so far.
    """

    def __init__(self, size: int = 20) -> None:
        self.activities: list[Json] = []
        self.size = size
        self.changed: Callable[[str, Json], object] = lambda _uri, document: document
        self.hurried: Callable[[int], object] = lambda _: None
        self.failing: int | None = None
        self.dropped = 0
        self.fetcher = MemoryFetcher(self._serve)

    def add(self, kind: str, name: str, **more: Any) -> None:
        """Add an activity, a minute after the one before."""
        self.activities.append(activity(kind, name, moment(len(self.activities)), **more))

    @contextmanager
    def fails(self, after: int) -> Iterator[None]:
        """Fail after some answers."""
        self.failing = after
        yield
        self.failing = None

    @property
    def count(self) -> int:
        """Return the number of pages."""
        return -(-len(self.activities) // self.size)

    def document(self, name: str) -> Json | None:
        """Return the collection, or one of its pages."""
        context = {"@context": "http://iiif.io/api/discovery/1/context.json"}
        collection = {"id": ALL, "type": "OrderedCollection"}
        if name == "all-changes":
            ends: Json = {"totalItems": len(self.activities)}
            if self.activities:
                ends |= {"first": _page(self.dropped), "last": _page(self.count - 1)}
            return context | collection | ends
        number = int(name.removeprefix("page-"))
        if not self.dropped <= number < self.count:
            return None
        page: Json = context | _page(number) | {"partOf": collection}
        if number > self.dropped:
            page["prev"] = _page(number - 1)
        if number + 1 < self.count:
            page["next"] = _page(number + 1)
        start = number * self.size
        return page | {"orderedItems": self.activities[start : start + self.size]}

    def _serve(self, request: FetchRequest) -> Answer | Exception:
        self.hurried(self.fetcher.requests)
        if self.failing is not None:
            if not self.failing:
                return SourceUnavailableError("it does not answer", uri=request.uri)
            self.failing -= 1
        name = request.uri.rpartition("/")[2]
        found = self.document(name) if request.uri.startswith(f"{HOME}activity/") else None
        if found is None:
            return Answer(status=404)
        sent = self.changed(name, found)
        return Answer(body=sent if isinstance(sent, bytes) else json.dumps(sent).encode())


def _page(number: int) -> Json:
    return {"id": f"{HOME}activity/page-{number}", "type": "OrderedCollectionPage"}
