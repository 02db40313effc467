"""Reader of a stream of activities: its collection, and its pages from the newest backwards."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit, urlunsplit

import msgspec

from resourcesync.discovery.addresses import Origin, is_at_home, join, origin_of
from resourcesync.documents.iiif.change_discovery import (
    Activity,
    ActivityCollection,
    ActivityKind,
    ActivityPage,
    read_activity,
    read_collection,
    read_page,
)
from resourcesync.errors import BadResponseError, Remedy, ResourceMissingError, SourceRefusedError
from resourcesync.ports import Fetcher, FetchFailure, FetchRequest, Purpose

MAX_BYTES: Final = 16 * 1024 * 1024
"""The most bytes of a collection or a page."""
MAX_PAGES: Final = 500_000
"""The most pages of one stream."""
MAX_ACTIVITIES: Final = 100_000_000
"""The most activities of one stream."""
_MAX_EMPTY: Final = 100
_FEW: Final = 10
_PART: Final = 10
_WITHOUT_OBJECT: Final = frozenset({None, ActivityKind.REFRESH})
_ACCEPT: Final = 'application/ld+json;profile="http://iiif.io/api/discovery/1/context.json"'
_FIELDS: Final = (("Accept", f"{_ACCEPT}, application/ld+json, application/json;q=0.9"),)
_RETAINED: Final = ("kept", "what was recorded before")

FetcherFactory = Callable[[str], AbstractContextManager[Fetcher]]
"""Opens a fetcher for the origin of a URL."""


class StreamPage(NamedTuple):
    """A page of a stream, with the activities of it.

    Attributes:
        uri: The address that it was fetched from.
        page: Its values.
        activities: Its activities, oldest first; ``None`` for one that is unusable.
        digests: For each activity a digest of it and all before it in the page.
    """

    uri: str
    page: ActivityPage
    activities: Sequence[Activity | None]
    digests: Sequence[bytes]

    @property
    def digest(self) -> bytes:
        """Return a digest of all activities; empty without any."""
        return self.digests[-1] if self.digests else b""

    @property
    def is_in_order(self) -> bool:
        """True if each activity of an object has a time, and none is earlier than one before it."""
        known = [
            item.time for item in self.activities if item is not None and item.time is not None
        ]
        return known == sorted(known) and not any(
            item is not None and item.time is None and item.kind not in _WITHOUT_OBJECT
            for item in self.activities
        )


class StreamHead(NamedTuple):
    """The collection and the last page of a stream, as they were at one time.

    Attributes:
        uri: The address of the collection, after redirects.
        last: Its last page; ``None`` if the stream is empty.
    """

    uri: str
    collection: ActivityCollection
    last: StreamPage | None

    def is_same(self, other: "StreamHead") -> bool:
        """True if another head has the same collection, and a last page of equal activities."""
        if self.last is None or other.last is None:
            return self.last is other.last
        return (self.collection, self.last.uri, self.last.digests) == (
            other.collection,
            other.last.uri,
            other.last.digests,
        )


class _MemorySink:
    """A sink into memory; the fetcher limits the size."""

    def __init__(self) -> None:
        self._body = bytearray()

    def write(self, chunk: bytes) -> None:
        self._body += chunk

    def restart(self) -> None:
        self._body.clear()

    def content(self) -> bytes:
        """Return the bytes that arrived."""
        return bytes(self._body)


class StreamReader:
    """A reader of one stream.

    Pages are read on the origin of the collection, on its twin behind TLS, and on origins that the
    operator named: who writes an address into a document need not be who runs that server.

    Args:
        fetcher: Opens a fetcher for an origin.
        address: The address of the collection.
        origins: Further origins on which pages may be.
    """

    def __init__(self, fetcher: FetcherFactory, address: str, origins: Sequence[str] = ()) -> None:
        self._open = fetcher
        self._address = address
        self._homes = [address, *origins]
        self._stack = ExitStack()
        self._fetchers: dict[Origin | None, Fetcher] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    def head(self) -> StreamHead:
        """Read the collection and its last page.

        Raises:
            SourceError: They cannot be had, or the collection names no last page.
            DocumentError: One of them is no document of the specification.
        """
        text, uri = self._get(self._address)
        collection = read_collection(text, uri)
        if collection.last:
            return StreamHead(uri, collection, self._last(collection, uri))
        if collection.has_items:  # a short stream without pages, which the specification excludes
            return StreamHead(uri, collection, _stream_page(text, uri))
        if collection.total == 0:
            return StreamHead(uri, collection, None)
        raise _bad("the collection names no last page (§3.1)", uri)

    def _last(self, collection: ActivityCollection, uri: str) -> StreamPage | None:
        try:
            return self._page(collection.last, uri)
        except ResourceMissingError:
            if collection.total == 0:  # some name the page before the first one
                return None
            raise

    def first(self, head: StreamHead) -> StreamPage | None:
        """Read the page with the oldest activities; ``None`` if there is none at that address.

        Raises:
            SourceError: It cannot be had.
            DocumentError: It is no page.
        """
        if not head.collection.first:
            return None
        try:
            return self._page(head.collection.first, head.uri)
        except ResourceMissingError:  # ``first`` is optional, and wrong in some streams
            return None

    def pages(self, head: StreamHead) -> Iterator[StreamPage]:
        """Yield the pages from the last one backwards; the end of the iteration is the first one.

        Raises:
            SourceError: A page cannot be had, leads to another origin or in a circle, ends the
                stream before its first page, or there are too many.
            DocumentError: One is no page.
        """
        seen: set[bytes] = set()
        page, empty, count = head.last, 0, 0
        while page is not None:
            if _key(page.uri) in seen:
                raise _bad("the pages of the stream lead in a circle", page.uri)
            seen.add(_key(page.uri))
            empty = 0 if page.activities else empty + 1
            count += len(page.activities)
            if len(seen) > MAX_PAGES or count > MAX_ACTIVITIES or empty > _MAX_EMPTY:
                raise _bad("the stream has too many pages, activities or empty pages", page.uri)
            yield page
            if not page.page.previous:
                self._check_is_first(head, page)
                return
            page = self._page(page.page.previous, page.uri)

    def _check_is_first(self, head: StreamHead, page: StreamPage) -> None:
        """Refuse a stream whose pages end too early: what is missing would count as deleted."""
        first = head.collection.first
        if first and _key(self._resolve(first, head.uri)) != _key(page.uri):
            found = self.first(head)
            if found is not None and found.digests[:1] != page.digests[:1]:
                raise _bad("the pages end before the first one: a page has no prev", page.uri)
        if page.page.start is not None and page.page.start > 1:  # some count from 1
            raise _bad("activities before the first page are missing (startIndex)", page.uri)

    def _page(self, address: str, base: str) -> StreamPage:
        text, uri = self._get(self._resolve(address, base))
        return _stream_page(text, uri)

    def _resolve(self, address: str, base: str) -> str:
        """Return the absolute address of a page; https stays https on the same host."""
        uri = join(base, address) or ""
        found, home = origin_of(uri), origin_of(base)
        if found is None:
            raise _bad(f"the address of a page is none: {address[:200]!r}", base)
        if home is not None and home[0] == "https" and found == ("http", home[1], 80):
            return urlunsplit(urlsplit(uri)._replace(scheme="https", netloc=urlsplit(base).netloc))
        if not is_at_home(uri, [*self._homes, base]):
            raise SourceRefusedError(
                "a page of the stream is on another origin",
                uri=uri,
                evidence=(("collection", self._address), _RETAINED),
                hint="if that is right, name the origin by the option origins",
                remedy=Remedy("set-option", value=f"origins={found[0]}://{urlsplit(uri).netloc}"),
            )
        return uri

    def _get(self, uri: str) -> tuple[bytes, str]:
        """Return the bytes of a document, and its address after redirects."""
        sink = _MemorySink()
        request = FetchRequest(
            uri=uri,
            sink=sink,
            purpose=Purpose.DOCUMENT,
            limit=MAX_BYTES,
            fields=_FIELDS,
            is_explicit=True,
        )
        (answer,) = self._fetcher(uri).fetch([request])
        if isinstance(answer, FetchFailure):
            raise answer.error
        return sink.content(), answer.uri

    def _fetcher(self, uri: str) -> Fetcher:
        origin = origin_of(uri)
        if origin not in self._fetchers:
            self._fetchers[origin] = self._stack.enter_context(self._open(uri))
        return self._fetchers[origin]


def _stream_page(text: bytes, uri: str) -> StreamPage:
    page = read_page(text, uri)
    running, digests = hashlib.sha256(), []
    for item in page.items:
        running.update(hashlib.sha256(item).digest())
        digests.append(running.digest()[:16])
    activities = [read_activity(item) for item in page.items]
    bad = activities.count(None)
    if bad > max(_FEW, len(activities) // _PART):
        raise _bad(f"{bad:,} of {len(activities):,} activities of a page are unusable", uri)
    return StreamPage(uri, page, activities, digests)


def _key(uri: str) -> bytes:
    return hashlib.sha256(uri.partition("#")[0].encode()).digest()[:16]


def _bad(message: str, uri: str) -> BadResponseError:
    return BadResponseError(
        message,
        uri=uri,
        status=200,
        evidence=(_RETAINED,),
        hint="open that address in a browser, and report it to who runs the stream",
    )


class ActivityPosition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A position in a stream: all activities up to one of them are processed.

    Attributes:
        page: The address of the page with that activity; empty before the first one.
        items: The number of activities of that page up to it.
        digest: A digest of them, in hexadecimal.
        time: The time of that activity, in microseconds; ``None`` if it has none.
    """

    page: str = ""
    items: int = 0
    digest: str = ""
    time: int | None = None

    def find_in(self, page: StreamPage) -> int | None:
        """Return the number of processed activities in a page; ``None`` if it is another page."""
        if page.uri != self.page or not 0 < self.items <= len(page.digests):
            return None
        return self.items if page.digests[self.items - 1].hex() == self.digest else None


def end_of(page: StreamPage) -> ActivityPosition:
    """Return the position after all activities of a page."""
    times = [item.time for item in page.activities if item is not None and item.time is not None]
    return ActivityPosition(
        page=page.uri,
        items=len(page.digests),
        digest=page.digest.hex(),
        time=max(times, default=None),
    )


def encode_position(position: ActivityPosition) -> str:
    """Return a position as text."""
    return msgspec.json.encode(position).decode()
