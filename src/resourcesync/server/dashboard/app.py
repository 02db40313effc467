"""The ASGI application of pages for operators: of the mirrors of a service, or of a Source."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from http import HTTPStatus
from typing import Final, final
from urllib.parse import parse_qs

from anyio import to_thread
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from resourcesync.errors import ResourceSyncError
from resourcesync.server import asgi
from resourcesync.server.caching import NO_STORE
from resourcesync.server.content_encoding import compress
from resourcesync.server.dashboard.layout import STYLE, missing_page
from resourcesync.server.dashboard.mirror_page import mirror_page
from resourcesync.server.dashboard.mirror_selection import MirrorQuery, select_mirrors
from resourcesync.server.dashboard.mirrors_page import mirrors_page
from resourcesync.server.dashboard.operator_actions import ACT_PATH, OperatorApplication
from resourcesync.server.dashboard.source_page import source_page
from resourcesync.server.dashboard.views import SourceView, Views

_LOG: Final = logging.getLogger(__name__)

_POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
# Not "no-referrer": a form would come from the origin "null", and be refused.
_SAFE: Final = {**NO_STORE, **asgi.NOSNIFF, "referrer-policy": "same-origin"}
_STYLE_PATH: Final = b"/style.css"
_LIVE: Final = frozenset({b"", b"/"})
"""Pages that are loaded again every 30 seconds, unless their query says that they stay still."""
_READERS: Final = 2
_MOST_QUERY: Final = 16_384

_Query = dict[str, str]
_Page = Callable[[_Query], str | None]


@final
class Pages:
    """Pages by their paths; other paths go to another application."""

    def __init__(
        self,
        pages: Mapping[bytes, _Page],
        now: Callable[[], datetime],
        others: ASGIApp,
        operator: OperatorApplication | None = None,
    ) -> None:
        self._pages, self._now, self._fallback = pages, now, others
        self._operator = operator
        self._readers = asyncio.Semaphore(_READERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as ASGI 3 requires."""
        path = asgi.path_within(scope) if scope["type"] == "http" else None
        if self._operator is not None and path == ACT_PATH:
            await self._operator(scope, receive, send)
        elif path is None or path not in {*self._pages, _STYLE_PATH}:
            await self._fallback(scope, receive, send)
        else:
            await asgi.answer(self._respond, scope, receive, send)

    async def _respond(self, request: asgi.HttpRequest) -> Response:
        path, query = request.raw_path, request.query
        if path == _STYLE_PATH:
            return await compress(request, Response(STYLE, 200, _SAFE, "text/css"))
        if len(query) > _MOST_QUERY:
            return asgi.refuse(414, "The query is too long.")
        async with self._readers:
            page = await to_thread.run_sync(self._make, path, query)
        return await compress(request, page)

    def _make(self, path: bytes, query: bytes) -> Response:
        asked = _parse_query(query)
        try:
            found = self._pages[path](asked)
        except ResourceSyncError as error:
            _LOG.warning("no page: %s", error)
            why = f"{error.message}. {error.hint}" if error.hint else error.message
            return self._missing(503, why)
        except OSError as error:  # a folder without permission to read, or one that is gone
            _LOG.warning("no page: %s", error)
            return self._missing(503, f"{error.strerror}.")
        if found is None:
            return self._missing(404, "There is no such page.")
        is_live = path in _LIVE and "still" not in asked
        return _html(200, found, **({"refresh": "30"} if is_live else {}))

    def _missing(self, status: int, why: str) -> Response:
        head = "Not found" if status == HTTPStatus.NOT_FOUND else "Not available"
        return _html(status, missing_page(head, why, self._now()))


def mirror_pages(
    views: Views, others: ASGIApp, operator: OperatorApplication | None = None
) -> Pages:
    """Return the pages of the mirrors of a service; with a form for operators who may act."""

    def overview(query: _Query) -> str:
        return mirrors_page(select_mirrors(views.mirrors(), MirrorQuery.parse(query)), views.now())

    def mirror(query: _Query) -> str | None:
        found = views.mirror(query.get("name", ""))
        return None if found is None else mirror_page(found, can_act=operator is not None)

    pages: dict[bytes, _Page] = {b"": overview, b"/": overview, b"/mirror": mirror}
    return Pages(pages, views.now, others, operator)


def source_pages(
    view: Callable[[], SourceView], now: Callable[[], datetime], others: ASGIApp
) -> Pages:
    """Return the page of a Source."""

    def page(_: _Query) -> str:
        return source_page(view())

    return Pages({b"": page, b"/": page}, now, others)


def _parse_query(query: bytes) -> _Query:
    with suppress(ValueError):
        found = parse_qs(query.decode("latin-1"), errors="replace", max_num_fields=20)
        return {name: values[0] for name, values in found.items()}
    return {}


def _html(status: int, page: str, **more: str) -> Response:
    body = page.encode("utf-8", "backslashreplace")
    fields = {**_SAFE, "content-security-policy": _POLICY, **more}
    return Response(body, status, fields, "text/html")
