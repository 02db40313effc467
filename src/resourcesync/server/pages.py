"""Page at the top of a Source, and its robots.txt, where the tree has none (§6.3.3, §6.3.4)."""

import asyncio
import hashlib
import html
import logging
from collections.abc import Callable, Mapping
from typing import Final, final

import msgspec
from anyio import to_thread

from resourcesync.errors import ResourceSyncError
from resourcesync.model.vocabulary import WELL_KNOWN_PATH
from resourcesync.ports import Clock
from resourcesync.server.asgi import NO_CACHE, NOSNIFF, raw_headers
from resourcesync.server.representations import InMemoryRepresentation, ResponseValidators

_LOG: Final = logging.getLogger(__name__)

_CACHE_SECONDS: Final = 5.0
"""Seconds for which the pages are cached: frequent requests cost nothing."""
_ALONE: Final = {"content-security-policy": "default-src 'none'"}
_FIRST_LIST: Final = "resourcelist"


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """Overview of a Source at a moment.

    Attributes:
        address: The address for Destinations: the one that it was published for.
        lists: The capabilities that it offers, each with the address of its document.
        resources: Number of resources that it lists; ``None`` when that is not known.
        changes: Number of changes that it has recorded; ``None`` when that is not known.
    """

    address: str
    lists: tuple[tuple[str, str], ...] = ()
    resources: int | None = None
    changes: int | None = None


class _BuiltPages(msgspec.Struct, frozen=True, kw_only=True):
    """The pages, made at the same moment."""

    front: InMemoryRepresentation
    robots: InMemoryRepresentation | None


@final
class SourcePages:
    """Pages made on request, no more often than every few seconds.

    Args:
        uri: The Capability List's address.
        look: Returns the overview; called in a thread. After a ``ResourceSyncError`` the page only
            has the link.
        clock: The clock.
    """

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
    link = {"link": f'<{uri}>; rel="resourcesync"', **_ALONE}
    first = dict(overview.lists).get(_FIRST_LIST) if overview else None
    text = f"User-agent: *\nAllow: /\nSitemap: {first}\n"
    return _BuiltPages(
        front=_represent(_page(uri, overview), "text/html", link),
        robots=_represent(text, "text/plain", {}) if first else None,
    )


def _represent(text: str, kind: str, headers: Mapping[str, str]) -> InMemoryRepresentation:
    body = text.encode("utf-8", "backslashreplace")
    tag = hashlib.sha256(body).hexdigest()[:32]
    fields = raw_headers({"content-type": f"{kind}; charset=utf-8"}, NO_CACHE, headers, NOSNIFF)
    return InMemoryRepresentation(
        body=body, validators=ResponseValidators(etag=f'"{tag}"'), headers=fields
    )


def _page(uri: str, overview: Overview | None) -> str:
    target = html.escape(uri)
    lists = "".join(map(_item, overview.lists)) if overview else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<title>ResourceSync Source</title>\n<link rel="resourcesync" href="{target}">\n</head>\n'
        "<body>\n<h1>ResourceSync Source</h1>\n"
        f"{_counts(overview)}<ul>\n"
        f'<li><a href="{target}">Capability List</a></li>\n{lists}'
        # Relative, since a proxy may serve all this below another path.
        f'<li><a href="{WELL_KNOWN_PATH[1:]}">Source Description</a></li>\n'
        f"</ul>\n{_pull_hint(overview)}</body>\n</html>\n"
    )


def _item(entry: tuple[str, str]) -> str:
    name, uri = map(html.escape, entry)
    return f'<li><a href="{uri}">{name}</a></li>\n'


def _counts(overview: Overview | None) -> str:
    if overview is None or overview.resources is None:
        return ""
    changes = (
        "" if overview.changes is None else f", {_plural(overview.changes, 'change')} recorded"
    )
    return f"<p>{_plural(overview.resources, 'resource')}{changes}.</p>\n"


def _plural(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _pull_hint(overview: Overview | None) -> str:
    if overview is None:
        return ""
    command = html.escape(f"resourcesync pull {overview.address}")
    return f"<p>To mirror these resources:</p>\n<pre><code>{command}</code></pre>\n"
