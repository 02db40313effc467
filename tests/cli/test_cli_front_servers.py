"""What ``config nginx`` and ``config caddy`` print is read by the real servers, and serves."""

import contextlib
import http.client
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.serving.applications import find_tree
from resourcesync.cli.main import run
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.commands.command_line import Said
from tests.support.commands.run import free_port

NGINX = """\
{user}
worker_processes 1;
daemon off;
pid {run}/nginx.pid;
error_log {run}/error.log crit;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {run}/body;
  proxy_temp_path {run}/proxy;
  fastcgi_temp_path {run}/fastcgi;
  uwsgi_temp_path {run}/uwsgi;
  scgi_temp_path {run}/scgi;
  types {{ text/html html; text/plain txt; }}
  include {run}/site.conf;
}}
"""
KINDS = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            kind,
            marks=pytest.mark.skipif(
                shutil.which(kind) is None, reason=f"{kind} is not installed (Debian package)"
            ),
        )
        for kind in ("nginx", "caddy")
    ],
)


def commands(kind: str, folder: Path, text: str) -> tuple[list[str], list[str]]:
    """Write the configuration; return the commands that check it and that run the server."""
    if kind == "caddy":
        file = folder / "Caddyfile"
        file.write_text("{\n\tadmin off\n\tauto_https off\n}\n" + text)
        words = ["--config", str(file), "--adapter", "caddyfile"]
        return ["caddy", "validate", *words], ["caddy", "run", *words]
    (folder / "site.conf").write_text(text)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(NGINX.format(user=user, run=folder))
    words = ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    return [*words, "-t"], words


@contextlib.contextmanager
def front(kind: str, folder: Path, text: str, port: int) -> Iterator[None]:
    folder.mkdir()
    check, serve = commands(kind, folder, text)
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    checked = subprocess.run(check, check=False, capture_output=True, text=True, env=environment)
    assert checked.returncode == 0, checked.stderr
    with (
        (folder / "said").open("wb") as said,
        subprocess.Popen(serve, stdin=subprocess.DEVNULL, stderr=said, env=environment) as process,
    ):
        try:
            wait_for(port, process)
            yield
        finally:
            process.terminate()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    limit = time.monotonic() + 20
    while time.monotonic() < limit and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
    raise AssertionError("the server did not start")


def ask(port: int, path: str, **fields: str) -> tuple[int, bytes, dict[str, str]]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(client):
        client.request("GET", path, headers={k.replace("_", "-"): v for k, v in fields.items()})
        response = client.getresponse()
        fields = {name.lower(): value for name, value in response.getheaders()}
        return response.status, response.read(), fields


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def tree(tmp_path: Path, port: int, said: Said) -> Path:
    """A published tree with a space in its name."""
    tree = tmp_path / "my tree"
    (tree / "shelf").mkdir(parents=True)
    for number in range(12):
        (tree / "shelf" / f"{number} é.txt").write_text(f"{number}" * 100)
    (tree / ".secret").write_text("secret")
    (tree / "draft.txt~").write_text("draft")
    assert run(["publish", str(tree), "--url", f"http://127.0.0.1:{port}/", "--quiet"]) == 0
    said.readouterr()
    return tree


@contextlib.contextmanager
def both(kind: str, tree: Path, port: int, said: Said) -> Iterator[None]:
    """Run the web server with the printed configuration, and ours behind it."""
    found = find_tree(tree)
    with ServerThread(found.application(SystemClock())) as ours:
        backend = ours.uri.removeprefix("http://").rstrip("/")
        assert run(["config", kind, "--tree", str(tree), "--bind", backend]) == 0
        text = said.readouterr().out
        with front(kind, tree.parent / "front", text, port):
            yield


@KINDS
def test_a_publication_behind_the_printed_configuration_is_valid_and_in_sync(
    kind: str, tree: Path, port: int, said: Said
) -> None:
    url = f"http://127.0.0.1:{port}/"
    with both(kind, tree, port, said):
        validated = run(["validate", url, "--live", "--fail-on", "warning"])
        pulled = run(["pull", url, str(tree.parent / "copy"), "--quiet"])
        audited = run(["audit", str(tree.parent / "copy"), "--quiet"])
        (tree / "shelf" / "new.txt").write_text("new")
        run(["publish", str(tree), "--quiet"])
        again = run(["pull", str(tree.parent / "copy"), "--quiet"])

    assert (validated, pulled, audited, again) == (0, 0, 0, 0), said.readouterr()
    assert (tree.parent / "copy" / "shelf" / "new.txt").read_text() == "new"


@KINDS
def test_types_caching_and_links_are_those_of_serve(
    kind: str, tree: Path, port: int, said: Said
) -> None:
    with both(kind, tree, port, said):
        description = ask(port, "/.well-known/resourcesync")
        listed = ask(port, "/resourcesync/resourcelist.xml")
        again = ask(port, "/resourcesync/resourcelist.xml", if_none_match=listed[2]["etag"])
        packed = ask(port, "/resourcesync/resourcelist.xml", accept_encoding="gzip")
        resource = ask(port, "/shelf/1%20%C3%A9.txt")
        part = ask(port, "/shelf/1%20%C3%A9.txt", range="bytes=1-3")
        page = ask(port, "/")
        robots = ask(port, "/robots.txt")

    for document in (description, listed):
        assert document[0] == 200
        assert document[2]["content-type"] == "application/xml"
        assert document[2]["cache-control"] == "no-cache"
    assert again[0] == 304
    assert packed[2]["content-encoding"] == "gzip"
    assert len(packed[1]) < len(listed[1])
    assert (resource[0], resource[1]) == (200, b"1" * 100)
    assert resource[2]["link"].endswith('/resourcesync/capabilitylist.xml>; rel="resourcesync"')
    assert (part[0], part[1]) == (206, b"111")
    assert b"resourcelist.xml" in page[1]
    assert b"resourcelist.xml" in robots[1]


@KINDS
def test_a_stream_of_activities_has_the_type_and_the_fields_of_serve(
    kind: str, tree: Path, port: int, said: Said
) -> None:
    assert run(["publish", str(tree), "--iiif", "Manifest", "--quiet"]) == 0
    (tree / "resourcesync" / "other.json").write_text("{}")
    with both(kind, tree, port, said):
        names = ("activities.json", "activities-000001.json")
        answers = [ask(port, f"/resourcesync/{name}") for name in names]
        packed = ask(port, f"/resourcesync/{names[1]}", accept_encoding="gzip")
        other = ask(port, "/resourcesync/other.json")

    for name, (status, body, fields) in zip(names, answers, strict=True):
        assert (status, body) == (200, (tree / "resourcesync" / name).read_bytes())
        assert fields["content-type"] == (
            'application/ld+json;profile="http://iiif.io/api/discovery/1/context.json"'
        )
        assert fields["access-control-allow-origin"] == "*"
        assert fields["cache-control"] == "no-cache"
    assert packed[2]["content-encoding"] == "gzip"
    assert other[0] == 404


@KINDS
def test_what_is_not_published_is_absent_and_a_folder_that_is_gone_is_a_fault(
    kind: str, tree: Path, port: int, said: Said
) -> None:
    hidden: tuple[str, ...] = (
        "/.secret",
        "/draft.txt~",
        "/.resourcesync/catalogue.sqlite",
        "/shelf/no.txt",
    )
    (tree / "resourcesync" / ".hidden.xml").write_text("hidden")
    (tree / "resourcesync" / "note.txt").write_text("note")
    hidden += "/resourcesync/.hidden.xml", "/resourcesync/note.txt", "/shelf"
    with both(kind, tree, port, said):
        absent = {path: ask(port, path)[0] for path in hidden}
        tree.rename(tree.parent / "elsewhere")
        gone = ask(port, "/shelf/1%20%C3%A9.txt")[0], ask(port, "/resourcesync/changelist.xml")[0]

    assert set(absent.values()) == {404}, absent
    assert gone == (503, 503)


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_a_link_is_served_only_where_it_is_published(tree: Path, port: int, said: Said) -> None:
    outside = tree.parent / "outside"
    outside.mkdir()
    (outside / "private.txt").write_text("private")
    (tree / "out.txt").symlink_to(outside / "private.txt")
    (tree / "folder").symlink_to(outside)
    (tree / "in.txt").symlink_to("shelf/1 é.txt")
    assert run(["publish", str(tree), "--quiet"]) == 0
    with both("nginx", tree, port, said):
        found = {path: ask(port, path)[:2] for path in ("/out.txt", "/folder/private.txt")}
        inside = ask(port, "/in.txt")

    assert {status for status, _ in found.values()} == {404}, found
    assert inside[:2] == (200, b"1" * 100)


@KINDS
def test_a_folder_is_its_page_and_never_a_listing(
    kind: str, tree: Path, port: int, said: Said
) -> None:
    (tree / "pages of" / "sub").mkdir(parents=True)
    (tree / "pages of" / "index.html").write_text("<p>page")
    assert run(["publish", str(tree), "--quiet"]) == 0
    with both(kind, tree, port, said):
        page = ask(port, "/pages%20of/")
        lost = ask(port, "/pages%20of?x=1")
        absent = [ask(port, path)[0] for path in ("/shelf/", "/shelf", "/pages%20of/sub/")]

    assert page[:2] == (200, b"<p>page")
    assert page[2]["content-type"].startswith("text/html")
    assert page[2]["link"].endswith('rel="resourcesync"')
    assert lost[0] in {301, 308}
    assert unquote(urlsplit(lost[2]["location"]).path) == "/pages of/"
    assert absent == [404, 404, 404]


@KINDS
def test_a_publication_that_leaves_files_out_is_passed_on(
    kind: str, tree: Path, port: int, said: Said
) -> None:
    assert run(["publish", str(tree), "--exclude", "shelf/1 *", "--quiet"]) == 0
    with both(kind, tree, port, said):
        excluded = ask(port, "/shelf/1%20%C3%A9.txt")[0]
        other = ask(port, "/shelf/2%20%C3%A9.txt")[:2]

    assert excluded == 404
    assert other == (200, b"2" * 100)


@pytest.mark.parametrize("kind", ["nginx", "caddy"])
def test_a_host_with_tls_and_a_base_below_a_path_are_written(
    kind: str, tree: Path, said: Said
) -> None:
    assert run(["publish", str(tree), "--url", "https://museum.example/data/", "--quiet"]) == 0
    said.readouterr()

    assert run(["config", kind, "--tree", str(tree)]) == 0

    text = said.readouterr().out
    assert "127.0.0.1:8080" in text
    assert "/data/" in text
    assert {"nginx": "listen 443 ssl;", "caddy": "https://museum.example:443 {"}[kind] in text


def test_the_web_server_and_serve_have_two_ports(tree: Path, said: Said) -> None:
    run(["publish", str(tree), "--url", "http://127.0.0.1:8080/"])

    assert run(["config", "nginx", "--tree", str(tree)]) == 2
    assert "--bind HOST:PORT" in said.readouterr().err
    assert run(["config", "nginx", "--tree", str(tree), "--bind", "127.0.0.1:8081"]) == 0
    assert run(["config", "nginx", "--tree", "nowhere"]) == 2
    assert "there is no folder nowhere" in said.readouterr().err


def test_a_folder_that_was_not_published_has_no_configuration(said: Said, tmp_path: Path) -> None:
    assert run(["config", "nginx", "--tree", str(tmp_path)]) == 2
    assert "is not published" in said.readouterr().err
    assert run(["config", "show", "--tree", str(tmp_path)]) == 2
