"""``doctor``: what it looks at, on a real machine, in a real mirror, at a real server."""

import os
import sqlite3
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from resourcesync.adapters.mirror.mirror_folder import MirrorFolder
from resourcesync.adapters.system import SystemClock
from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows
from tests.support.commands.settings_file import AUTH, museum, put
from tests.support.servers.tiny_source import Answer, TinySource, dead_address


def verdicts(said: Said) -> dict[str, dict[str, Any]]:
    return {row["check"]: row for row in rows(said) if row["type"] == "verdict"}


def files_in(mirror: str) -> list[str]:
    # SQLite's own two files beside the memory come and go with whoever reads it.
    return sorted(str(path) for path in Path(mirror).rglob("*") if "state.db-" not in path.name)


@pytest.fixture
def mirror(source: TinySource, said: Said) -> str:
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()
    return "museum"


def test_the_machine_alone_is_looked_at(said: Said) -> None:
    assert run(["doctor", "--json"]) == 0

    found = verdicts(said)
    assert {"python", "libcurl", "sqlite", "expat", "descriptors", "temporary"} < found.keys()
    assert found["sqlite"]["text"] == f"SQLite {sqlite3.sqlite_version}"
    assert found["configuration"]["level"] == "ok"
    assert all(fields["next"] for fields in found.values() if fields["level"] != "ok")


def test_a_good_mirror_and_its_source_have_no_problem(
    source: TinySource, mirror: str, said: Said
) -> None:
    before = files_in(mirror)
    source.has_clock = True

    assert run(["doctor", mirror, "--json"]) == 0

    found = verdicts(said)
    for check in ("writing", "names", "room", "memory", "lock", "reach", "clock", "robots"):
        assert found[check]["level"] == "ok", check
    assert found["tls"]["level"] == "warning"
    assert source.url in found["reach"]["text"]
    assert files_in(mirror) == before


def test_a_damaged_memory_is_a_problem(mirror: str, said: Said) -> None:
    state = Path(mirror, ".resourcesync/state.db")
    with sqlite3.connect(state) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'copy'").fetchone()
    db.close()
    data = bytearray(state.read_bytes())
    data[(page - 1) * 4096 : page * 4096] = b"\x55" * 4096  # nothing else of it is read
    state.write_bytes(data)

    assert run(["doctor", mirror, "--json"]) == 1
    assert verdicts(said)["memory"]["level"] == "problem"


def test_another_folder_than_the_remembered_one_is_a_problem(mirror: str, said: Said) -> None:
    Path(mirror, ".resourcesync/marker").write_text("another")

    assert run(["doctor", mirror, "--json"]) == 1
    assert verdicts(said)["marker"]["level"] == "problem"


def test_who_holds_the_mirror_is_named(mirror: str, said: Said) -> None:
    with MirrorFolder(Path(mirror), SystemClock()):
        assert run(["doctor", mirror, "--json"]) == 0

    lock = verdicts(said)["lock"]
    assert lock["level"] == "warning"
    assert f"pid {os.getpid()} on " in lock["text"]


def test_where_no_folder_can_be_made_is_a_problem(said: Said) -> None:
    Path("file").write_text("in the way")

    assert run(["doctor", "file/museum", "--json"]) == 1
    assert "Not a directory" in verdicts(said)["writing"]["text"]


def test_a_source_that_does_not_answer_is_a_problem(said: Said) -> None:
    with dead_address() as address:
        assert run(["doctor", address, "--json"]) == 1

    assert verdicts(said)["reach"]["level"] == "problem"


def test_a_source_whose_robots_keep_us_out_is_a_problem(source: TinySource, said: Said) -> None:
    source.answers["/robots.txt"] = Answer(body=b"User-agent: *\nDisallow: /\n")

    assert run(["doctor", source.url, "--json"]) == 1
    assert verdicts(said)["robots"]["level"] == "problem"
    assert {asked.target for asked in source.asked} == {"/robots.txt"}


def test_a_robots_file_that_is_unavailable_is_a_problem(source: TinySource, said: Said) -> None:
    source.answers["/robots.txt"] = Answer(status=502, body=b"<html>")

    assert run(["doctor", source.url, "--json"]) == 1

    assert verdicts(said)["robots"]["text"] == (
        "robots.txt is unavailable: HTTP 502; no list is looked for"
    )


def test_a_configured_mirror_is_looked_at_by_its_name(source: TinySource, said: Said) -> None:
    put(museum(source, 'auth = "key"') + AUTH)

    assert run(["doctor", "museum", "--json"]) == 0  # its folder is not there yet

    found = verdicts(said)
    assert found["writing"]["level"] == "ok"
    assert found["reach"]["level"] == "ok"
    said.readouterr()
    assert run(["doctor", "museum"]) == 0
    assert "THE_TOKEN" in said.readouterr().out


def test_a_proxy_of_the_environment_is_said_without_its_secret(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@proxy.example:3128")

    run(["doctor", "--json"])

    captured = said.readouterr().out
    assert "secret" not in captured
    assert "proxy" in captured


# --- TLS ---


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing."""


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def secure(authority: trustme.CA) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_certificate_is_read_and_its_days_are_counted(
    secure: str, authority: trustme.CA, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority.cert_pem.write_to_path("ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", "ca.pem")

    assert run(["doctor", secure, "--json"]) == 0

    tls = verdicts(said)["tls"]
    assert tls["level"] == "ok"
    assert tls["text"].startswith("TLSv1.3, the certificate expires in ")


def test_a_certificate_that_nobody_vouches_for_is_a_problem(secure: str, said: Said) -> None:
    assert run(["doctor", secure, "--json"]) == 1

    tls = verdicts(said)["tls"]
    assert (tls["level"], "self-signed" in tls["text"] or "issuer" in tls["text"]) == (
        "problem",
        True,
    )
