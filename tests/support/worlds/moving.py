"""A Source that moves: behind TLS by redirects, or to another host, as a person says."""

from dataclasses import replace
from typing import Any

from msgspec import structs

from resourcesync.destination.reports import RunReport
from resourcesync.ports import FetchRequest
from tests.support.worlds.network import BASE, Answer, Serve
from tests.support.worlds.world import World

_LISTS = (".xml", "list", "resourcesync")


class Moving:
    def __init__(self, entry: str = "") -> None:
        self.home = BASE
        self._entry = entry
        self._known = ""
        self._redirects = False

    def move_behind_tls(self) -> None:
        """From now on the server leads whoever comes without TLS to the same address with it."""
        self.home = self.home.replace("http:", "https:")
        self._redirects = True

    def move(self, home: str) -> None:
        self.home, self._redirects = home, False

    def route(self, request: FetchRequest, serve: Serve) -> Answer | Exception:
        before = self.home.replace("https:", "http:")
        came_to = before if self._redirects and request.uri.startswith(before) else self.home
        if not request.uri.startswith(came_to):
            return Answer(status=404)
        path = request.uri.removeprefix(came_to)
        answer = serve(structs.replace(request, uri=BASE + path))
        if not isinstance(answer, Answer) or self.home == BASE:
            return answer
        body = answer.body
        if path.endswith(_LISTS):
            body = body.replace(BASE.encode(), self.home.encode())
        return replace(answer, body=body, uri=self.home + path)

    def pull(self, world: World[Any], **options: object) -> RunReport:
        host = self.home.partition("://")[2]
        moved = None if host == self._known else f"{self.home}{self._entry}"
        if not self._known:
            report = world.pull(moved, **options)
        else:
            report = world.pull(None, **{"moved": moved, **options} if moved else options)
        self._known = host
        return report
