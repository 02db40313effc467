"""Page at the top of a Source, and its robots.txt, where the tree has none (§6.3.3, §6.3.4)."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final, final

import msgspec
from anyio import to_thread

from resourcesync.errors import ResourceSyncError
from resourcesync.model import formatting
from resourcesync.model.vocabulary import WELL_KNOWN_PATH, Capability
from resourcesync.ports import Clock
from resourcesync.server.asgi import NO_CACHE, NOSNIFF, raw_headers
from resourcesync.server.dashboard.layout import ICON, card, report_page, report_policy, row, table
from resourcesync.server.dashboard.markup import Markup, Piece, tag
from resourcesync.server.representations import InMemoryRepresentation, ResponseValidators

_LOG: Final = logging.getLogger(__name__)

_TITLE: Final = "ResourceSync Source"
_HEADS: Final = ("Document", "#Size", "Written")
_CACHE_SECONDS: Final = 5.0
"""Seconds for which the pages are cached: frequent requests cost nothing."""


class OfferedList(msgspec.Struct, frozen=True, kw_only=True):
    """A document that a Source offers for a capability.

    Attributes:
        uri: The address of the document.
        size: Its size in bytes; ``None`` when that is not known.
        written: The time when it was written, UTC; ``None`` when that is not known.
    """

    capability: Capability
    uri: str
    size: int | None = None
    written: datetime | None = None


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """Overview of a Source at a moment.

    Attributes:
        address: The address for Destinations: the one that it was published for.
        lists: The documents that it offers, one for each capability.
        resources: Number of resources that it lists; ``None`` when that is not known.
        changes: Number of changes that it has recorded; ``None`` when that is not known.
    """

    address: str
    lists: tuple[OfferedList, ...] = ()
    resources: int | None = None
    changes: int | None = None


class _BuiltPages(msgspec.Struct, frozen=True, kw_only=True):
    """The pages, made at the same moment."""

    front: InMemoryRepresentation
    robots: InMemoryRepresentation | None


@final
class SourcePages:
    """Pages made on request, no more often than every few seconds."""

    def __init__(self, uri: str, look: Callable[[], Overview] | None, clock: Clock) -> None:
        self._uri = uri
        self._load_overview = look
        self._clock = clock
        self._made: _BuiltPages | None = None
        self._until = 0.0
        self._busy = asyncio.Lock()

    async def front(self) -> InMemoryRepresentation:
        """Return the page."""
        return (await self._latest()).front

    async def robots(self) -> InMemoryRepresentation | None:
        """Return ``robots.txt``; ``None`` when no list is known."""
        return (await self._latest()).robots

    async def _latest(self) -> _BuiltPages:
        async with self._busy:
            now = self._clock.monotonic()
            if self._made is None or now >= self._until:
                self._made = _build_pages(self._uri, await self._overview())
                self._until = now + _CACHE_SECONDS
            return self._made

    async def _overview(self) -> Overview | None:
        if self._load_overview is None:
            return None
        try:
            return await to_thread.run_sync(self._load_overview)
        except ResourceSyncError as error:
            _LOG.warning("%s", error)
            return None


def _build_pages(uri: str, overview: Overview | None) -> _BuiltPages:
    page = _page(uri, overview)
    fields = {
        "link": f'<{uri}>; rel="resourcesync"',
        "content-security-policy": report_policy(page),
    }
    lists = overview.lists if overview else ()
    first = next((item for item in lists if item.capability is Capability.RESOURCE_LIST), None)
    robots = None
    if first is not None:
        text = f"User-agent: *\nAllow: /\nSitemap: {first.uri}\n"
        robots = _represent(text, "text/plain", {})
    return _BuiltPages(front=_represent(page, "text/html", fields), robots=robots)


def _represent(text: str, kind: str, headers: Mapping[str, str]) -> InMemoryRepresentation:
    body = text.encode("utf-8", "backslashreplace")
    tag = hashlib.sha256(body).hexdigest()[:32]
    fields = raw_headers({"content-type": f"{kind}; charset=utf-8"}, NO_CACHE, headers, NOSNIFF)
    return InMemoryRepresentation(
        body=body, validators=ResponseValidators(etag=f'"{tag}"'), headers=fields
    )


def _page(uri: str, overview: Overview | None) -> str:
    """Return the page; it names no version, since anybody may read it."""
    return report_page(
        _TITLE,
        tag("h1", _TITLE),
        None if overview is None else tag("p", overview.address, class_="muted"),
        None if overview is None else tag("p", _counts(overview)),
        card(table(_HEADS, _rows(uri, overview)), title="Documents"),
        None if overview is None else _pull_hint(overview.address),
        head=(ICON, tag("link", rel="resourcesync", href=uri)),
        foot="All times are UTC.",
    )


def _rows(uri: str, overview: Overview | None) -> Iterator[Piece]:
    """Yield a row for each document, the two entry points first."""
    # Relative, since a proxy may serve all this below another path.
    yield row(_HEADS, (tag("a", "Source Description", href=WELL_KNOWN_PATH[1:]), None, None))
    yield row(_HEADS, (tag("a", Capability.CAPABILITY_LIST.phrase, href=uri), None, None))
    for item in overview.lists if overview else ():
        yield row(
            _HEADS,
            (
                tag("a", item.capability.phrase, href=item.uri),
                None if item.size is None else formatting.size(item.size),
                None if item.written is None else formatting.moment(item.written),
            ),
        )


def _counts(overview: Overview) -> str:
    """Return the number of resources and changes; empty when they are not known."""
    if overview.resources is None:
        return ""
    resources = formatting.counted(overview.resources, "resource")
    if overview.changes is None:
        return f"{resources}."
    return f"{resources}, {formatting.counted(overview.changes, 'change')} recorded."


def _pull_hint(address: str) -> Markup:
    command = tag("pre", tag("code", f"resourcesync pull {address}"), tabindex="0")
    return card(command, title="To mirror these resources")
