"""The application within others, and others within it."""

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from resourcesync.adapters.system import SystemClock
from resourcesync.errors import ConfigurationError
from resourcesync.server.app import Application, ServedSource, create_app
from tests.support.servers.asgi import ask
from tests.support.servers.served_tree import LINK, LIST_URI, media_type, plant


@pytest.fixture
def served(tmp_path: Path) -> ServedSource:
    root = plant(tmp_path / "tree")
    return ServedSource(root=root, capability_list_uri=LIST_URI, media_type=media_type)


def make(served: ServedSource, **mounts: ASGIApp) -> Application:
    paths = {"/" + name.replace("_", "/"): app for name, app in mounts.items()}
    return create_app(served, clock=SystemClock(), mounts=paths)


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Say what was asked."""
    text = f"{scope['method']} {scope['root_path']} {scope['path']}"
    await PlainTextResponse(text)(scope, receive, send)


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
    app = Starlette(
        routes=[
            Route("/other", lambda _: PlainTextResponse("other")),
            Mount("/data", app=make(served, hub=echo)),
        ]
    )

    assert ask(app, "/data/a/one.txt").body == b"0123456789"
    assert ask(app, "/data/.well-known/resourcesync").body == b"<description/>"
    assert ask(app, "/data/hub/x", method="POST").body == b"POST /data/hub /data/hub/x"
    assert ask(app, "/data/").fields["link"] == LINK
    assert ask(app, "/other").body == b"other"
    assert ask(app, "/a/one.txt").status == 404


def test_a_mounted_application_gets_what_is_below_its_path_and_no_more(
    served: ServedSource,
) -> None:
    app = make(served, hub=echo, a=echo)

    assert ask(app, "/hub", method="POST").body == b"POST /hub /hub"
    assert ask(app, "/hub/x/y%2Fz").body == b"GET /hub /hub/x/y/z"
    assert ask(app, "/h%75b/x").status == 200
    assert ask(app, "/a/one.txt").body == b"GET /a /a/one.txt"
    assert ask(app, "/hubs").status == 404
    assert ask(app, "/x/hub").status == 404
    assert ask(app, "/empty.txt", method="POST").status == 405


@pytest.mark.parametrize("value", ["<a>\r\nx: y", "a", "<a b>", "<ü>", ""])
def test_what_cannot_stand_in_a_link_field_is_never_sent(served: ServedSource, value: str) -> None:
    app = create_app(served, clock=SystemClock(), links=lambda _: (value,))

    assert isinstance(ask(app, "/empty.txt").error, ConfigurationError)
