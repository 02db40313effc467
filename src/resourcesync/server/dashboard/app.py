"""ASGI applications that answer with the dashboard's pages."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final, final
from urllib.parse import parse_qs

from anyio import to_thread
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from resourcesync.errors import ResourceSyncError
from resourcesync.server.asgi import (
    NO_STORE,
    NOSNIFF,
    ChunkedResponse,
    HttpRequest,
    answer,
    path_within,
    raw_headers,
    refuse,
    wait_for,
)
from resourcesync.server.content_encoding import compress
from resourcesync.server.dashboard.detail_pages import (
    audits_page,
    events_page,
    missing_page,
    resource_page,
    run_page,
)
from resourcesync.server.dashboard.layout import (
    DEFAULT_DAYS,
    SCRIPT,
    STYLE,
    WINDOWS,
    parse_range,
    report_policy,
    with_menu,
)
from resourcesync.server.dashboard.mirror_page import mirror_page
from resourcesync.server.dashboard.mirror_selection import MirrorQuery, select_mirrors
from resourcesync.server.dashboard.mirrors_page import mirrors_page
from resourcesync.server.dashboard.operator_actions import ACT_PATH, OperatorApplication
from resourcesync.server.dashboard.source_page import (
    DEPTHS,
    SOURCE_MENU,
    explore_page,
    explored_page,
    source_page,
    sources_page,
    validating_page,
)
from resourcesync.server.dashboard.views import SourceViews, Views

_LOG: Final = logging.getLogger(__name__)

_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:;"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Not "no-referrer": a form would come from the origin "null", and be refused.
_SAFE: Final = {**NO_STORE, **NOSNIFF, "referrer-policy": "same-origin"}
_FILES: Final = {b"/style.css": ("text/css", STYLE), b"/live.js": ("text/javascript", SCRIPT)}
_EXPLORE: Final = b"/explore"
_VALIDATE: Final = b"/validate"
_STREAM: Final = b"/events.stream"
_READERS: Final = 2
_MOST_FOLLOWERS: Final = 50
_MOST_QUERY: Final = 16_384
_POLL_SECONDS: Final = 1.0
_HEARTBEATS: Final = 15

_Query = dict[str, str]


@final
class Dashboard:
    """The pages of the dashboard; other paths go to another application."""

    def __init__(
        self,
        views: Views,
        others: ASGIApp,
        operator: OperatorApplication | None = None,
    ) -> None:
        self._views, self._fallback = views, others
        self._operator = operator
        self._readers = asyncio.Semaphore(_READERS)
        # A request to explore a Source waits for the network: it keeps no other page waiting.
        self._explorers = asyncio.Semaphore(1)
        self._followers = 0
        self._pages: dict[bytes, Callable[[_Query], str | None]] = {
            b"": self._mirrors,
            b"/": self._mirrors,
            b"/mirror": self._mirror,
            b"/resource": self._resource,
            b"/run": self._run,
            b"/audits": lambda _: audits_page(views.audits(), views.now()),
            _EXPLORE: self._explore,
            b"/events": self._list_events,
            b"/audit": lambda query: views.audit(_field(query, "name"), _field(query, "run")),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as ASGI 3 requires."""
        path = path_within(scope) if scope["type"] == "http" else None
        if self._operator is not None and path == ACT_PATH:
            await self._operator(scope, receive, send)
            return
        if path is None or path not in {*self._pages, *_FILES, _STREAM}:
            await self._fallback(scope, receive, send)
            return
        await answer(self._respond, scope, receive, send)

    async def _respond(self, request: HttpRequest) -> Response:
        path, query = request.raw_path, request.query
        if path == _STREAM:
            return self._follow(request)
        if path in _FILES:
            return await compress(request, _text_response(*_FILES[path]))
        if len(query) > _MOST_QUERY:
            return refuse(414, "The query is too long.")
        async with self._explorers if path == _EXPLORE else self._readers:
            page = await to_thread.run_sync(self._make, path, query)
        return await compress(request, page)

    def _make(self, path: bytes, query: bytes) -> Response:
        """Make a page, in a thread."""
        try:
            found = self._pages[path](_parse_query(query))
        except ResourceSyncError as error:
            _LOG.info("no page: %s", error)
            why = f"{error.message}. {error.hint}" if error.hint else error.message
            return _html(503, missing_page(why, self._views.now()))
        except OSError as error:  # a folder without permission to read, or one that is gone
            _LOG.warning("no page: %s", error)
            return _html(503, missing_page(f"{error.strerror}.", self._views.now()))
        if found is None:
            return _html(404, missing_page("There is no such page.", self._views.now()))
        if path == b"/audit":
            page = with_menu(found, self._views.now(), here="Audits")
            return _html(200, page, report_policy(page))
        return _html(200, found)

    def _mirrors(self, query: _Query) -> str:
        selection = select_mirrors(self._views.mirrors(), MirrorQuery.parse(query))
        names = [summary.name for summary in selection.shown if not summary.error]
        activity, running = self._views.activity(names), self._views.running()
        return mirrors_page(selection, activity, running, self._views.now())

    def _list_events(self, query: _Query) -> str:
        only_problems = query.get("only") == "problems"
        return events_page(self._views.events(), self._views.now(), only_problems=only_problems)

    def _mirror(self, query: _Query) -> str | None:
        chosen = parse_range(query)
        found = self._views.mirror(_field(query, "name"), chosen.length)
        if found is None:
            return None
        can_act = self._operator is not None
        return mirror_page(found, chosen, can_act=can_act)

    def _resource(self, query: _Query) -> str | None:
        name = _field(query, "name")
        found = self._views.resource(name, _field(query, "resource"))
        return None if found is None else resource_page(name, found, self._views.now())

    def _run(self, query: _Query) -> str | None:
        name = _field(query, "name")
        found = self._views.run(name, _field(query, "run"))
        return None if found is None else run_page(name, found, self._views.now())

    def _explore(self, query: _Query) -> str | None:
        name = _field(query, "name")
        if not name:
            return sources_page(self._views.sources(), self._views.now())
        found = self._views.explore(name, _depth(query))
        return None if found is None else explore_page(found)

    def _follow(self, request: HttpRequest) -> Response:
        """Return the stream of Server-Sent Events of runs that ended."""
        if self._followers >= _MOST_FOLLOWERS:
            return refuse(503, "Too many clients already.")
        self._followers += 1
        request.at_end(self._release)
        headers = raw_headers({"content-type": "text/event-stream"}, _SAFE)
        return ChunkedResponse(200, headers, chunks=self._events(request.stopping))

    def _release(self) -> None:
        self._followers -= 1

    async def _events(self, stopping: asyncio.Event) -> AsyncIterator[bytes]:
        """Yield an event for each change, and every few seconds, until the server stops."""
        known, silent = self._views.version(), 0
        while not await wait_for(stopping, _POLL_SECONDS):
            version, silent = self._views.version(), silent + 1
            if version != known or silent >= _HEARTBEATS:
                yield b"data: %d\n\n" % version
                known, silent = version, 0


@final
class SourceDashboard:
    """The pages of a Source; other paths go to another application."""

    def __init__(self, views: SourceViews, others: ASGIApp) -> None:
        self._views, self._fallback = views, others
        self._readers = asyncio.Semaphore(1)
        self._explorers = asyncio.Semaphore(1)
        self._pages: dict[bytes, Callable[[_Query], str]] = {
            b"": self._source,
            b"/": self._source,
            _EXPLORE: lambda query: explored_page(views.explore(_depth(query))),
            _VALIDATE: self._validate,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as ASGI 3 requires."""
        path = path_within(scope) if scope["type"] == "http" else None
        if path is None or path not in {*self._pages, *_FILES}:
            await self._fallback(scope, receive, send)
            return
        await answer(self._respond, scope, receive, send)

    async def _respond(self, request: HttpRequest) -> Response:
        path, query = request.raw_path, request.query
        if path in _FILES:
            return await compress(request, _text_response(*_FILES[path]))
        async with self._explorers if path in {_EXPLORE, _VALIDATE} else self._readers:
            page = await to_thread.run_sync(self._make, path, query[:_MOST_QUERY])
        return await compress(request, page)

    def _make(self, path: bytes, query: bytes) -> Response:
        try:
            page = self._pages[path](_parse_query(query))
        except ResourceSyncError as error:
            _LOG.warning("no page: %s", error)
            return refuse(503, f"Not available now: {error.message}")
        return _html(200, page, report_policy(page) if "<style>" in page else _POLICY)

    def _source(self, query: _Query) -> str:
        return source_page(self._views.source(_days(query)))

    def _validate(self, query: _Query) -> str:
        found = self._views.validate(again="again" in query)
        if isinstance(found, str):
            return with_menu(found, here="Source", menu=SOURCE_MENU)
        return validating_page(found)


def _days(query: _Query) -> int:
    return next((window for window in WINDOWS if str(window) == query.get("days")), DEFAULT_DAYS)


def _depth(query: _Query) -> int:
    return next((depth for depth in DEPTHS if str(depth) == query.get("depth")), DEPTHS[0])


def _field(query: _Query, name: str) -> str:
    return query.get(name, "")


def _parse_query(query: bytes) -> _Query:
    """Return the fields of a query; of several with one name, the first."""
    with suppress(ValueError):
        found = parse_qs(query.decode("latin-1"), errors="replace", max_num_fields=20)
        return {name: values[0] for name, values in found.items()}
    return {}


def _html(status: int, page: str, policy: str = _POLICY) -> Response:
    body = page.encode("utf-8", "backslashreplace")
    fields = {**_SAFE, "content-security-policy": policy}
    return Response(body, status, fields, "text/html")


def _text_response(kind: str, text: str) -> Response:
    return Response(text, 200, _SAFE, kind)
