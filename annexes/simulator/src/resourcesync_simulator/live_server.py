"""Serves the Source of a scenario over HTTP in real time."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from resourcesync.errors import ConfigurationError
from resourcesync.ports import Clock
from resourcesync.server.asgi import HttpRequest, answer, raw_headers, refuse
from resourcesync.server.caching import NO_CACHE
from resourcesync.server.conditions_and_ranges import (
    InMemoryRepresentation,
    ResponseValidators,
    format_http_date,
)
from resourcesync.server.connection_limits import DROP, ConnectionLimits
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.source.naming import SourceNaming
from resourcesync_simulator.live import LiveAnswer, ScenarioSource
from resourcesync_simulator.scenario import Scenario
from resourcesync_simulator.simulation import simulate_source

_LIMITS: Final = ConnectionLimits(connections=100)
_MAX_ANSWERS: Final = 8
"""Most answers in memory at a time; further ones wait."""
_PACKAGES: Final = 2
"""Most packages among them."""
_WILDCARD_HOSTS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - not an address for clients
_MAX_STEP: Final = 0.5
"""Most seconds of simulated time in one step, where the machine is slower than real time."""
_OK: Final = 200


class LiveAddress(msgspec.Struct, frozen=True, kw_only=True):
    """The address and the speed of a live Source.

    Attributes:
        host: The address to listen on.
        port: The port; 0 takes a free one.
        base_uri: The URI of its root, where clients use another one than the server's address;
            everything below it comes to the root of the server.
        speed: Seconds that pass for the Source in each second.
    """

    host: str = "127.0.0.1"
    port: int = 0
    base_uri: str = ""
    speed: float = 1.0


class LiveApplication:
    """Answers for a live Source (ASGI)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._places = asyncio.Semaphore(_MAX_ANSWERS)
        self._packages = asyncio.Semaphore(_PACKAGES)
        self.answer: Callable[[str, bool], LiveAnswer] | None = None
        """Answers a path, perhaps not from a cache; ``None`` before the Source has started."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer GET and HEAD, or let the connection drop."""
        if scope["type"] == "http":
            await answer(self._respond, scope, receive, send)

    async def _respond(self, request: HttpRequest) -> Response:
        if self.answer is None:
            return refuse(503, "The Source has not started.", {"retry-after": "1"})
        path: str = request.scope["path"].removeprefix("/")
        places = self._packages if path.endswith(".zip") else self._places
        await places.acquire()
        request.at_end(places.release)
        is_uncached = "no-cache" in request.fields.get("cache-control", "").lower()
        # In a thread: due events happen first, which may be a publication.
        found = await asyncio.to_thread(self.answer, path, is_uncached)
        if not found.status:
            request.end()
        await asyncio.sleep(found.wait)
        return self._response(found, request) if found.status else _DroppedConnection()

    def _response(self, found: LiveAnswer, request: HttpRequest) -> Response:
        headers = {"content-type": found.media_type, **NO_CACHE}
        if found.lastmod is not None and found.lastmod <= self._clock.now():
            headers["last-modified"] = format_http_date(int(found.lastmod.timestamp()))
        if found.status != _OK:
            return Response(found.body, found.status, headers)
        # By its tag alone: resources change more than once in a second.
        validators = ResponseValidators(etag=found.etag)
        return InMemoryRepresentation(
            body=found.body, validators=validators, headers=raw_headers(headers)
        ).response_to(request)


class _DroppedConnection(Response):
    """An answer that never comes: the connection is closed instead."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del send
        scope["state"][DROP]()
        while (await receive())["type"] != "http.disconnect":
            pass


class RunningSimulation(NamedTuple):
    """A live Source that is being served.

    Attributes:
        uri: Its root.
        advance: Runs the events that are due; otherwise they run at the next request.
    """

    uri: str
    advance: Callable[[], None]


@contextmanager
def serve_live(
    scenario: Scenario, place: LiveAddress, *, clock: Clock
) -> Iterator[RunningSimulation]:
    """Serve a live Source while the ``with`` block runs."""
    application = LiveApplication(clock)
    server = ServerThread(application, host=place.host, port=place.port, limits=_LIMITS)
    with ExitStack() as world, server:  # the server ends first: it may still send files
        uri = _root(place, server.uri)
        time, source = world.enter_context(simulate_source(scenario, uri))
        began, speed = clock.monotonic(), place.speed
        living = ScenarioSource(
            scenario,
            uri,
            time,
            source,
            lambda: (clock.monotonic() - began) * speed,
            _MAX_STEP * speed,
        )
        application.answer = lambda path, uncached: living.answer(path, uncached=uncached)
        try:
            yield RunningSimulation(uri, living.advance)
        finally:
            living.stop()


def _root(place: LiveAddress, served: str) -> str:
    uri = SourceNaming(base_uri=place.base_uri).base_uri if place.base_uri else served
    if urlsplit(uri).hostname in _WILDCARD_HOSTS:
        raise ConfigurationError(
            f"the lists would contain {uri}, which clients cannot reach",
            hint="name the address that clients reach: --base-uri http://HOST:PORT/",
        )
    return uri
