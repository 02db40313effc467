"""The application within others, and others within it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from resourcesync.adapters.system import SystemClock
from resourcesync.errors import ConfigurationError, StorageError
from resourcesync.server.app import Application, ServedSource, create_app
from resourcesync.server.asgi import run_lifespan
from resourcesync.server.uvicorn_server import ServerThread, serve_forever
from tests.support.servers.asgi import ask
from tests.support.servers.served_tree import LINK, LIST_URI, media_type, plant


@pytest.fixture
def served(tmp_path: Path) -> ServedSource:
    root = plant(tmp_path / "tree")
    return ServedSource(root=root, capability_list_uri=LIST_URI, media_type=media_type)


def make(served: ServedSource, **mounts: ASGIApp) -> Application:
    paths = {"/" + name.replace("_", "/"): app for name, app in mounts.items()}
    return create_app(served, clock=SystemClock(), mounts=paths)


class Echo:
    """Says what it was asked, and remembers its life."""

    def __init__(self, log: list[str], name: str = "echo") -> None:
        self._log, self._name = log, name
        self._app = Starlette(
            routes=[
                Route("/", self._say, methods=["GET", "POST"]),
                Route("/{rest:path}", self._say, methods=["GET", "POST"]),
            ],
            lifespan=self._live,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    @contextlib.asynccontextmanager
    async def _live(self, _: Starlette) -> AsyncIterator[dict[str, str]]:
        self._log.append(f"{self._name} starts")
        yield {"secret": self._name}
        self._log.append(f"{self._name} ends")

    async def _say(self, request: Request) -> PlainTextResponse:
        secret = getattr(request.state, "secret", "")
        inner = request.path_params.get("rest", "")
        return PlainTextResponse(f"{self._name} {request.method} {inner} {secret}".strip())


async def fail(scope: Scope, receive: Receive, send: Send) -> None:
    raise StorageError("the register is gone")


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    assert (await receive())["type"] == "lifespan.startup"
    await send({"type": "lifespan.startup.failed", "message": "no disk"})


async def hang(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await asyncio.sleep(60)


@pytest.mark.parametrize("root_path", ["/data", "/data/", "/a b/ü"])
def test_below_a_path_of_another_server_all_is_as_at_the_top(
    served: ServedSource, root_path: str
) -> None:
    app = make(served)
    prefix = {"/a b/ü": "/a%20b/%C3%BC"}.get(root_path, "/data")

    answers = {
        path: ask(app, prefix + path, root_path=root_path)
        for path in ("/a/one.txt", "/.well-known/resourcesync", "/", "", "/../tree/a/one.txt")
    }

    assert [answer.status for answer in answers.values()] == [200, 200, 200, 200, 404]
    assert answers["/a/one.txt"].body == b"0123456789"
    assert answers["/a/one.txt"].fields["link"] == LINK
    assert ask(app, "/a/one.txt", root_path=root_path).body == b"0123456789"  # taken away already
    assert ask(app, "/database/a/one.txt", root_path=root_path).status == 404


def test_it_mounts_in_starlette_with_what_is_mounted_in_it(served: ServedSource) -> None:
    log: list[str] = []
    source = make(served, hub=Echo(log))
    app = Starlette(
        routes=[
            Route("/other", lambda _: PlainTextResponse("other")),
            Mount("/data", app=source),
        ],
        lifespan=lambda _: source.lifespan(),
    )

    async def live() -> None:
        async with run_lifespan(app):
            log.append("served")

    asyncio.run(live())

    assert log == ["echo starts", "served", "echo ends"]
    assert ask(app, "/data/a/one.txt").body == b"0123456789"
    assert ask(app, "/data/.well-known/resourcesync").body == b"<description/>"
    assert ask(app, "/data/hub/x", method="POST").body == b"echo POST x echo"
    assert ask(app, "/data/").fields["link"] == LINK
    assert ask(app, "/other").body == b"other"
    assert ask(app, "/a/one.txt").status == 404


def test_a_mounted_application_gets_what_is_below_its_path_and_no_more(
    served: ServedSource,
) -> None:
    log: list[str] = []
    app = make(served, hub=Echo(log, "hub"), hub_deep=Echo(log, "deep"), a=Echo(log, "a"))

    assert ask(app, "/hub", method="POST").status == 307  # Starlette's way to say: /hub/
    assert ask(app, "/hub/", method="POST").body == b"hub POST"
    assert ask(app, "/hub/x/y%2Fz").body == b"hub GET x/y/z"
    assert ask(app, "/h%75b/x").status == 200
    assert ask(app, "/hub/deep/x").body == b"deep GET x"
    assert ask(app, "/a/one.txt").body == b"a GET one.txt"
    assert ask(app, "/hubs").status == 404
    assert ask(app, "/x/hub").status == 404
    assert ask(app, "/empty.txt", method="POST").status == 405


def test_nothing_is_served_when_a_mounted_application_cannot_start(served: ServedSource) -> None:
    log: list[str] = []

    with pytest.raises(StorageError, match="register"):
        serve_forever(
            make(served, one=Echo(log, "one"), two=fail), "127.0.0.1", 0, on_ready=log.append
        )
    with pytest.raises(ConfigurationError) as caught:
        serve_forever(make(served, two=refuse), "127.0.0.1", 0, on_ready=log.append)

    assert log == ["one starts", "one ends"]
    assert caught.value.evidence == (("said", "no disk"),)


def test_an_application_that_does_not_end_is_cut_off(
    served: ServedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resourcesync.server.asgi.PATIENCE", 0.05)
    log: list[str] = []

    with ServerThread(make(served, one=Echo(log, "one"), two=hang)):
        pass

    assert log == ["one starts", "one ends"]


@pytest.mark.parametrize("value", ["<a>\r\nx: y", "a", "<a b>", "<ü>", ""])
def test_what_cannot_stand_in_a_link_field_is_never_sent(served: ServedSource, value: str) -> None:
    app = create_app(served, clock=SystemClock(), links=lambda _: (value,))

    assert isinstance(ask(app, "/empty.txt").error, ConfigurationError)
