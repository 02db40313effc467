"""What the application answers, asked in process."""

import asyncio
import logging
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from resourcesync.adapters.system import SystemClock
from resourcesync.errors import ConfigurationError
from resourcesync.server.app import Application, ServedSource
from tests.support.servers.asgi import ask
from tests.support.servers.served_tree import (
    BIG,
    LINK,
    LIST_URI,
    application,
    media_type,
    plant,
    served_source,
    settled,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return plant(tmp_path / "tree")


@pytest.fixture
def app(root: Path) -> ASGIApp:
    return application(root, settled())


@pytest.mark.founding("0.9 §9.3.3", "Each served resource has a Link header", "`serve`")
def test_a_resource_is_served_with_all_that_a_destination_needs(app: ASGIApp) -> None:
    answer = ask(app, "/a/one.txt")

    assert answer.status == 200
    assert answer.body == b"0123456789"
    assert answer.fields["content-length"] == "10"
    assert answer.fields["content-type"] == "text/plain"
    assert answer.fields["last-modified"] == "Sun, 13 Sep 2020 12:26:40 GMT"
    assert answer.fields["etag"].startswith('"')
    assert answer.fields["accept-ranges"] == "bytes"
    assert answer.fields["link"] == LINK
    assert answer.fields["x-content-type-options"] == "nosniff"
    assert "cache-control" not in answer.fields
    assert len(answer.names) == len(set(answer.names))


@pytest.mark.parametrize("path", ["/a/one.txt", "/a/big.bin", "/empty.txt", "/", "/nope"])
def test_head_is_get_without_the_bytes(app: ASGIApp, path: str) -> None:
    whole = ask(app, path)
    head = ask(app, path, method="HEAD")

    assert (head.status, head.fields, head.body) == (whole.status, whole.fields, b"")
    assert int(whole.fields["content-length"]) == len(whole.body)


@pytest.mark.parametrize(
    ("name", "caching"),
    [
        ("resourcelist-20260102T030405000000Z-0012.xml", "max-age=31536000, immutable"),
        ("changelist_2026-01-02T030405Z.xml", "max-age=31536000, immutable"),
        ("resourcelist-about-0001.xml", "no-cache"),
        ("resourcelist.xml", "no-cache"),
        ("changelist-000001.xml", "no-cache"),
        ("changelist-000001-0001.xml", "no-cache"),
        ("resourcedump-20260102T030405000000Z-0001.zip", "max-age=31536000, immutable"),
        ("resourcedump-20260102T030405000000Z-0001-manifest.xml", "max-age=31536000, immutable"),
        ("changedump-000001.zip", "max-age=31536000, immutable"),
        ("changedump.xml", "no-cache"),
    ],
)
def test_only_names_that_are_never_written_again_are_kept_for_ever(
    root: Path, name: str, caching: str
) -> None:
    (root / "resourcesync" / name).write_bytes(b"<urlset/>")

    answer = ask(application(root), f"/resourcesync/{name}")

    assert answer.fields["cache-control"] == caching
    kind = "zip" if name.endswith(".zip") else "xml"
    assert answer.fields["content-type"] == f"application/{kind}"


def test_what_is_no_document_in_the_folder_of_documents_is_not_served(root: Path) -> None:
    folder = root / "resourcesync"
    for name in ("catalogue.db", "catalogue.db-wal", ".part.xml", "old.xml~", "xml"):
        (folder / name).write_bytes(b"secret")
    (root / "copy.txt").symlink_to("resourcesync/catalogue.db")
    (root / "loud.txt").symlink_to("RESOURCESYNC/catalogue.db")
    app = application(root)

    paths = ["catalogue.db", "catalogue.db-wal", ".part.xml", "old.xml~", "xml", ""]
    answers = [ask(app, f"/resourcesync/{name}") for name in paths]
    answers += [ask(app, "/RESOURCESYNC/catalogue.db"), ask(app, "/copy.txt")]
    answers += [ask(app, "/loud.txt"), ask(app, "/resourcesync")]

    assert [answer.status for answer in answers] == [404] * len(answers)


def test_documents_outside_the_tree_are_served_under_their_own_name(
    root: Path, tmp_path: Path
) -> None:
    lists = tmp_path / "lists"
    lists.mkdir()
    (lists / "capabilitylist.xml").write_bytes(b"<urlset/>")
    (lists / "description.xml").write_bytes(b"<here/>")
    served = ServedSource(
        root=root,
        documents=lists,
        well_known=lists / "description.xml",
        capability_list_uri=LIST_URI,
        media_type=media_type,
    )
    app = Application(served, clock=SystemClock())

    assert ask(app, "/lists/capabilitylist.xml").body == b"<urlset/>"
    assert ask(app, "/.well-known/resourcesync").body == b"<here/>"
    assert ask(app, "/a/one.txt").status == 200
    root.rename(root.with_name("away"))
    assert ask(app, "/a/one.txt").status == 503


@pytest.mark.parametrize("is_mount_point", [False, True])
def test_a_folder_whose_disk_is_away_is_a_fault(root: Path, *, is_mount_point: bool) -> None:
    app, away = application(root), root.with_name("away")
    root.rename(away)
    if is_mount_point:
        root.mkdir()

    for path in ("/a/one.txt", "/resourcesync/changelist.xml", "/.well-known/resourcesync"):
        assert ask(app, path).status == 503, "404 is deleted for mirrors"


def test_a_folder_is_its_page_in_every_answer(root: Path) -> None:
    (root / "a" / "index.html").write_bytes(b"<p>deeper")
    os.utime(root / "a" / "index.html", (1_600_000_000, 1_600_000_000))
    app = application(root, settled())
    page = ask(app, "/a/index.html")
    asked: list[dict[str, str]] = [
        {},
        {"range": "bytes=1-2"},
        {"range": "bytes=99-"},
        {"if-none-match": page.fields["etag"]},
        {"if-modified-since": page.fields["last-modified"]},
        {"if-match": '"other"'},
    ]

    for method in ("GET", "HEAD"):
        for fields in asked:
            folder = ask(app, "/a/", method=method, fields=fields)
            assert folder == ask(app, "/a/index.html", method=method, fields=fields)
    assert page.fields["link"] == LINK


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_folder_without_its_slash_is_redirected_to(root: Path, method: str) -> None:
    for name in ("a", "b c:d", "\xfc"):
        (root / name).mkdir(exist_ok=True)
        (root / name / "index.html").write_bytes(b"<p>")
    app = application(root)

    found = {
        path: ask(app, path, method=method)
        for path in ("/a", "/b%20c:d", "/%C3%BC", "http://evil.example/a")
    }
    below = ask(app, "/base/a", method=method, root_path="/base")

    assert {answer.status for answer in (*found.values(), below)} == {301}
    assert [answer.fields["location"] for answer in found.values()] == [
        "./a/",
        "./b%20c%3Ad/",
        "./%C3%BC/",
        "./a/",
    ]
    assert below.fields["location"] == "./a/"


def test_a_folder_without_a_page_is_absent_and_never_listed(root: Path) -> None:
    (root / "a" / "sub").mkdir()
    (root / "a" / "sub" / "index.html").mkdir()
    (root / ".hidden").mkdir()
    (root / ".hidden" / "index.html").write_bytes(b"<p>")
    (root / "resourcesync" / "index.html").write_bytes(b"<p>")
    app = application(root)

    for path in ("a", "a/sub", ".hidden", "resourcesync", ".well-known", "a/one.txt", "nope"):
        assert ask(app, f"/{path}/").status == 404, path
    for path in ("/a", "/a/sub", "/.hidden", "/resourcesync", "/.well-known", "//", "/a//", "//a"):
        assert ask(app, path).status == 404, path
    assert ask(app, "/a/one.txt").status == 200


def test_the_host_of_a_request_appears_nowhere(app: ASGIApp) -> None:
    fields = {"host": "evil.example", "x-forwarded-host": "evil.example", "forwarded": "host=evil"}

    for path in ("/", "/a/one.txt", "/nope", "http://evil.example/a/one.txt"):
        answer = ask(app, path, fields=fields)
        assert b"evil" not in answer.body
        assert "evil" not in str(answer.fields)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "get"])
def test_only_reading_is_allowed(app: ASGIApp, method: str) -> None:
    answer = ask(app, "/a/one.txt", method=method)

    assert answer.status == 405
    assert answer.fields["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"content-length": "1"}, 400),
        ({"content-length": "1000000000000"}, 400),
        ({"transfer-encoding": "chunked"}, 400),
        ({"content-length": "0"}, 200),
    ],
)
def test_a_request_with_a_body_is_refused_and_the_connection_ends(
    app: ASGIApp, fields: dict[str, str], status: int
) -> None:
    answer = ask(app, "/a/one.txt", fields=fields)

    assert answer.status == status
    assert (answer.fields.get("connection") == "close") is (status == 400)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(start=st.integers(0, len(BIG) + 9), length=st.integers(1, len(BIG)))
def test_a_range_of_a_file_is_the_slice_of_its_bytes(app: ASGIApp, start: int, length: int) -> None:
    answer = ask(app, "/a/big.bin", fields={"range": f"bytes={start}-{start + length - 1}"})

    expected = BIG[start : start + length]
    if expected:
        assert answer.status == 206
        assert answer.body == expected
        last = start + len(expected) - 1
        assert answer.fields["content-range"] == f"bytes {start}-{last}/{len(BIG)}"
        assert answer.fields["content-length"] == str(len(expected))
    else:
        assert (answer.status, answer.body) == (416, b"")
        assert answer.fields["content-range"] == f"bytes */{len(BIG)}"


def test_a_request_is_logged_in_one_line_that_it_cannot_shape(
    app: ASGIApp, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "resourcesync.server")

    ask(app, b"/a\r\n\x1b[2Jroot logged in\x9b", fields={"user-agent": "\x1b[31m"})

    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 1
    assert messages[0].isprintable()
    assert "404" in messages[0]


@pytest.mark.parametrize(
    "uri",
    ["", "/relative.xml", "ftp://x/y", 'http://x/">', "http://x/\r\nSet-Cookie: a", "http://é/"],
)
def test_an_address_that_cannot_stand_in_a_header_is_refused(root: Path, uri: str) -> None:
    with pytest.raises(ConfigurationError):
        served_source(root, capability_list_uri=uri)


def test_the_application_lives_and_ends_with_its_server(app: ASGIApp) -> None:
    answer: list[str] = []
    messages = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> Message:
        return {"type": next(messages)}

    async def send(message: Message) -> None:
        answer.append(message["type"])

    async def drive() -> None:
        await app({"type": "lifespan"}, receive, send)
        await app({"type": "websocket", "path": "/"}, receive, send)

    asyncio.run(drive())

    assert answer == ["lifespan.startup.complete", "lifespan.shutdown.complete", "websocket.close"]


@pytest.fixture
def served(tmp_path: Path) -> ServedSource:
    return served_source(plant(tmp_path / "tree"))


def make(served: ServedSource, **mounts: ASGIApp) -> Application:
    paths = {"/" + name.replace("_", "/"): app for name, app in mounts.items()}
    return Application(served, clock=SystemClock(), mounts=paths)


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
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
    app = Application(served, clock=SystemClock(), links=lambda _: (value,))

    assert isinstance(ask(app, "/empty.txt").error, ConfigurationError)
